/** The labels of a series, such as `{ outcome: "delivered" }`. A label has few values and never contains an id. */
type Labels = Readonly<Record<string, string>>;
export type Reading = readonly (readonly [labels: Labels, value: number])[];

interface Description {
  readonly name: string;
  readonly help: string;
}

interface Family extends Description {
  readonly type: "counter" | "gauge" | "histogram";
  lines(): Promise<string[]> | string[];
}

/** The value of a counter; it only grows. */
export interface Count {
  value: number;
}

/** Histogram buckets in seconds, from a millisecond to the deadline of a request. */
export const DURATION_BUCKETS_S = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15,
];

/**
 * The metrics of one process, in the text format of Prometheus. Counting only adds to a number; the text is made when
 * a scrape asks for it.
 */
export class Metrics {
  readonly #families: Family[] = [];

  /**
   * Declares a counter. The returned function returns the count for a set of labels. The series appears in scrapes
   * once its count was requested.
   */
  counter(description: Description): (labels?: Labels) => Count {
    const counts = new Map<string, Count>();
    this.#families.push({
      ...description,
      type: "counter",
      lines: () => [...counts].map(([key, { value }]) => line(description.name + key, value)),
    });
    return (labels = {}) => getOrMake(counts, render(labels), () => ({ value: 0 }));
  }

  histogram(description: Description, buckets: readonly number[]): (labels?: Labels) => Histogram {
    const histograms = new Map<string, Histogram>();
    this.#families.push({
      ...description,
      type: "histogram",
      lines: () => [...histograms.values()].flatMap((one) => one.lines(description.name)),
    });
    return (labels = {}) =>
      getOrMake(histograms, render(labels), () => new Histogram(labels, buckets));
  }

  /** Declares a metric whose value is read at each scrape. If `read` rejects, so does the scrape. */
  read(
    type: "counter" | "gauge",
    description: Description,
    read: () => Promise<Reading> | Reading,
  ) {
    this.#families.push({
      ...description,
      type,
      lines: async () =>
        (await read()).map(([labels, value]) => line(description.name + render(labels), value)),
    });
  }

  async text(): Promise<string> {
    const parts = await Promise.all(
      this.#families.map(async (family) => {
        const { name, help, type } = family;
        const lines = await family.lines();
        return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines];
      }),
    );
    return `${parts.flat().join("\n")}\n`;
  }
}

export class Histogram {
  readonly #labels: Labels;
  readonly #buckets: readonly number[];
  readonly #counts: number[];
  #sum = 0;

  constructor(labels: Labels, buckets: readonly number[]) {
    this.#labels = labels;
    this.#buckets = buckets;
    this.#counts = Array.from({ length: buckets.length + 1 }, () => 0);
  }

  observe(value: number): void {
    this.#sum += value;
    let at = 0;
    while (at < this.#buckets.length && value > (this.#buckets[at] ?? 0)) at += 1;
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
  }

  lines(name: string): string[] {
    let count = 0;
    const buckets = this.#counts.map((own, at) => {
      count += own;
      const le = String(this.#buckets[at] ?? "+Inf");
      return line(`${name}_bucket${render({ ...this.#labels, le })}`, count);
    });
    const labels = render(this.#labels);
    return [
      ...buckets,
      line(`${name}_sum${labels}`, this.#sum),
      line(`${name}_count${labels}`, count),
    ];
  }
}

function getOrMake<T>(map: Map<string, T>, key: string, make: () => T): T {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}

function line(series: string, value: number): string {
  return `${series} ${value}`;
}

function render(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escape(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escape(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
