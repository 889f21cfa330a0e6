import { Registry, Counter, Gauge } from "prom-client";

import type { Clock } from "./clock.ts";
import { type Checks, showReadiness, type Readiness } from "./readiness.ts";
import { COMMIT, VERSION } from "./version.ts";

/** Values of one metric by their labels. A label has a small number of values and never contains an id. */
export type Reading = readonly (readonly [
  labels: Readonly<Record<string, string>>,
  value: number,
])[];

/** Upper bounds of the histogram buckets in seconds, from 1 ms to the time limit of a request. */
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
      // The reset sets a gauge without labels to 0. Its value is then removed, because a gauge without a reading must
      // not be exported.
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

/** Matches the path of a URL. A URL parser would throw if the `Host` header is invalid. */
const PATH = /^(?:https?:\/\/[^/?#]*)?(\/[^?#]*)/;
const PING_TIMEOUT_MS = 1_000;

/** The metric of a connection pool (`PoolWatch`). */
interface PoolFigures {
  readonly pool: string;
  readonly waitedMs: number;
}

/**
 * Creates the metrics that every process has: the state of PostgreSQL, Redis and keys, the connection pools, and the
 * resource usage of the process.
 */
export function createProcessMetrics(deps: {
  readonly clock: Clock;
  readonly checks: Checks;
  /** Returns the time in ms by which this machine's clock is ahead of PostgreSQL's; absent if it is not measured. */
  readonly clockSkewMs?: () => number;
  readonly pools?: readonly PoolFigures[];
}): Registry {
  const { clock, checks, clockSkewMs, pools = [] } = deps;
  const registry = new Registry();
  showProcess(registry, clock);
  showPools(registry, pools);
  readGauge(
    registry,
    {
      name: "reviewrelay_store_up",
      help: "1 if the store responds, or if the master key decrypts the sealed columns; else 0.",
      labelNames: ["store"],
    },
    () =>
      Promise.all(
        Object.entries(checks).map(async ([store, check]) => {
          const answered = check().then(
            () => 1,
            () => 0,
          );
          const late = clock.sleep(PING_TIMEOUT_MS).then(() => 0);
          return [{ store }, await Promise.race([answered, late])] as const;
        }),
      ),
  );
  if (clockSkewMs !== undefined)
    readGauge(
      registry,
      {
        name: "reviewrelay_clock_skew_seconds",
        help: "Seconds by which this machine's clock is ahead of Postgres; negative if it is behind.",
      },
      () => [[{}, clockSkewMs() / 1_000]],
    );
  return registry;
}

function showProcess(registry: Registry, clock: Clock): void {
  readGauge(
    registry,
    {
      name: "reviewrelay_build_info",
      help: "Always 1; the labels name the versions.",
      labelNames: ["version", "commit", "bun"],
    },
    () => [[{ version: VERSION, commit: COMMIT, bun: Bun.version }, 1]],
  );
  const startedS = clock.now().getTime() / 1_000;
  readGauge(
    registry,
    { name: "process_start_time_seconds", help: "Start of the process in seconds since 1970." },
    () => [[{}, startedS]],
  );
  readGauge(
    registry,
    { name: "process_resident_memory_bytes", help: "Resident memory size in bytes." },
    () => [[{}, process.memoryUsage.rss()]],
  );
  readCounter(
    registry,
    { name: "process_cpu_seconds_total", help: "User and system CPU time in seconds." },
    () => {
      const { user, system } = process.cpuUsage();
      return [[{}, (user + system) / 1e6]];
    },
  );
}

function showPools(registry: Registry, pools: readonly PoolFigures[]): void {
  readCounter(
    registry,
    {
      name: "reviewrelay_pool_wait_seconds_total",
      help: "Total time that transactions have waited for a connection.",
      labelNames: ["pool"],
    },
    () =>
      pools.map(({ pool, waitedMs }) => [
        { pool: pool.replace(/^reviewrelay-/, "") },
        waitedMs / 1_000,
      ]),
  );
}

/** The state of a process that operators can read over HTTP. */
interface Operations {
  readonly metrics: Registry;
  readonly readiness: () => Promise<Readiness>;
}

/**
 * Serves `/metrics`, `/healthz` and `/readyz` on a separate port that is not public (contract 2.12). Throws if the
 * port is taken.
 */
export function serveOperations(
  { metrics, readiness }: Operations,
  at: { readonly port: number; readonly host: string },
): { port: number; stop(): void } {
  const pages: Readonly<Record<string, () => Promise<Response>>> = {
    "/metrics": async () =>
      new Response(await metrics.metrics(), { headers: { "Content-Type": metrics.contentType } }),
    "/healthz": async () => Response.json({ status: "ok" }),
    "/readyz": async () => {
      const { status, body } = showReadiness(await readiness());
      return Response.json(body, { status });
    },
  };
  const server = Bun.serve({
    hostname: at.host,
    port: at.port,
    async fetch(request) {
      const page = pages[PATH.exec(request.url)?.[1] ?? ""];
      if (page === undefined)
        return new Response(`Not found. This server has ${Object.keys(pages).join(", ")}.\n`, {
          status: 404,
        });
      if (request.method !== "GET" && request.method !== "HEAD")
        return new Response(null, { status: 405, headers: { Allow: "GET, HEAD" } });
      return page();
    },
  });
  return { port: server.port ?? at.port, stop: () => void server.stop(true) };
}
