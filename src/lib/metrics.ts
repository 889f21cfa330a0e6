import { Counter, Gauge, type Registry } from "prom-client";

/** Values of one metric by their labels. A label has few values and never contains an id. */
export type Reading = readonly (readonly [
  labels: Readonly<Record<string, string>>,
  value: number,
])[];

/** Histogram buckets in seconds, from a millisecond to the deadline of a request. */
export const DURATION_BUCKETS_S = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15,
];

interface Description {
  readonly name: string;
  readonly help: string;
  readonly labelNames?: string[];
}

/** Declares a gauge whose values are read at each scrape. If `read` rejects, so does the scrape. */
export function readGauge(
  registry: Registry,
  description: Description,
  read: () => Promise<Reading> | Reading,
): void {
  const gauge: Gauge = new Gauge({
    ...description,
    registers: [registry],
    async collect() {
      const reading = await read();
      gauge.reset();
      // A reset sets a gauge without labels to 0, but a gauge without a reading is not shown.
      gauge.remove({});
      for (const [labels, value] of reading) gauge.set(labels, value);
    },
  });
}

/** Declares a counter whose values are read at each scrape. */
export function readCounter(
  registry: Registry,
  description: Description,
  read: () => Reading,
): void {
  const counter: Counter = new Counter({
    ...description,
    registers: [registry],
    collect() {
      counter.reset();
      for (const [labels, value] of read()) counter.inc(labels, value);
    },
  });
}
