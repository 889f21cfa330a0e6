import { Counter, Histogram, type Registry } from "prom-client";

import type { Clock } from "../src/lib/clock.ts";
import { DURATION_BUCKETS_S, readGauge, type Reading } from "../src/lib/metrics.ts";
import { memoize } from "../src/lib/memoize.ts";
import type { Spans } from "../src/lib/spans.ts";
import type { Deliver } from "./delivery/deliver.ts";
import type { Dispatcher } from "./dispatcher.ts";
import { type Figures, FIGURES_AT_MOST } from "./maintenance/queries.ts";
import type { DispatchStore } from "./store/store.ts";

const FIGURES_KEPT_MS = 1_000;

type WorkloadGauge = readonly [help: string, read: (workload: Dispatcher["workload"]) => number];

const WORKLOAD_GAUGES: Readonly<Record<string, WorkloadGauge>> = {
  shards: ["Shards that this dispatcher holds, of 64.", ({ shards }) => shards],
  subscriptions_waiting: [
    "Subscriptions that wait for their turn to get an actor, or are parked because their host is saturated.",
    ({ waiting }) => waiting,
  ],
  lag_seconds: ["Wait of the oldest due delivery at the last sweep.", ({ lagMs }) => lagMs / 1_000],
  outage: [
    "1 while the machine, egress proxy, DNS or network of this dispatcher keeps it from reaching receivers, so that attempts are postponed and not counted; else 0.",
    ({ hasOutage }) => Number(hasOutage),
  ],
};

/** Gauges of the whole database, which have equal values in every dispatcher. */
const FIGURES: Readonly<Record<string, readonly [help: string, of: (known: Figures) => Reading]>> =
  {
    backlog_deliveries: [
      `Deliveries in the outbox by state, counted up to ${FIGURES_AT_MOST}: pending, waiting for a retry, held by a disabled subscription.`,
      ({ backlog }) => backlog.map(({ state, entries }) => [{ state }, entries]),
    ],
    mail_overdue_seconds: [
      "Time by which the first due mail is overdue; 0 if none is due.",
      ({ mailOverdueS }) => [[{}, mailOverdueS]],
    ],
    maintenance_age_seconds: [
      "Time since the last success of each maintenance job, in any dispatcher.",
      ({ jobs }) => jobs.map(({ name, ageS }) => [{ name }, ageS]),
    ],
  };

/**
 * Measures the calls of the dispatcher to other systems. `deliver` and `store` return a dependency of the dispatcher
 * with counted calls. With `spans` they also add three spans to the trace of an event: the load of the delivery, the
 * attempt, and the commit of its attempt record.
 */
export class DispatcherTelemetry {
  readonly #registry: Registry;
  readonly #clock: Clock;
  readonly #spans: Spans | undefined;

  constructor(registry: Registry, clock: Clock, spans?: Spans) {
    this.#registry = registry;
    this.#clock = clock;
    this.#spans = spans;
  }

  deliver(deliver: Deliver): Deliver {
    const durations = this.#histogram(
      "attempt_duration_seconds",
      "Attempts (POSTs to receivers) by result: accepted, rejected, gone, failed, aborted, unsent, withheld.",
      ["result"],
    );
    return async (request, control) => {
      const end = this.#spans?.begin();
      const result = await deliver(request, control);
      durations.observe({ result: result.kind }, result.durationMs / 1_000);
      end?.({
        eventId: request.headers["X-SVC-Delivery"] ?? "",
        name: "POST",
        kind: "client",
        failed: result.kind !== "accepted",
        attributes: {
          "server.address": URL.parse(request.url)?.host ?? "",
          "reviewrelay.attempt": Number(request.headers["X-SVC-Attempt"]),
          "reviewrelay.result": result.kind,
          ...("statusCode" in result && { "http.response.status_code": result.statusCode }),
        },
      });
      return result;
    };
  }

  store(store: DispatchStore): DispatchStore {
    const help = "Commits of attempt records, including failed ones.";
    const durations = this.#histogram("commit_duration_seconds", help);
    const disabled = new Counter({
      ...describe(
        "subscriptions_disabled_total",
        "Subscriptions that were disabled after 20 permanent failures in a row.",
      ),
      registers: [this.#registry],
    });
    return {
      ...store,
      load: async (requests) => {
        const end = this.#spans?.begin();
        const loaded = await store.load(requests);
        if (end === undefined) return loaded;
        for (const { request, found } of loaded) {
          const attributes = { "reviewrelay.subscription_id": request.id };
          for (const { eventId } of [...(found?.entries ?? []), ...(found?.tests ?? [])])
            end({ eventId, name: "load", attributes });
        }
        return loaded;
      },
      commit: async (dispatcherId, records) => {
        const startedMs = this.#clock.monotonicMs();
        const end = this.#spans?.begin();
        try {
          const result = await store.commit(dispatcherId, records);
          disabled.inc(result.disabled.length);
          for (const { eventId, subscriptionId: id, decision } of records) {
            const attributes = {
              "reviewrelay.subscription_id": id,
              "reviewrelay.outcome": decision.kind,
            };
            end?.({ eventId, name: "record", attributes });
          }
          return result;
        } finally {
          durations.observe((this.#clock.monotonicMs() - startedMs) / 1_000);
        }
      },
    };
  }

  watch(dispatcher: Pick<Dispatcher, "workload">): void {
    for (const [name, [help, read]] of Object.entries(WORKLOAD_GAUGES))
      readGauge(this.#registry, describe(name, help), () => [[{}, read(dispatcher.workload)]]);
    const help = "Quarantined lanes by reason. GET /admin/dispatcher lists them.";
    readGauge(this.#registry, describe("lanes_quarantined", help, ["reason"]), () => {
      const lanes = Map.groupBy(dispatcher.workload.quarantinedLanes, ({ reason }) => reason);
      return Array.from(lanes, ([reason, { length }]) => [{ reason }, length]);
    });
  }

  /** Adds the gauges of `FIGURES`. They are left out of a scrape while PostgreSQL does not answer. */
  figures(read: () => Promise<Figures>): void {
    // The reading is cached for a second, so that all gauges of one scrape come from one reading.
    const readIn = memoize((_second: number) => read().catch(() => undefined), 1);
    const figures = () => readIn(Math.floor(this.#clock.monotonicMs() / FIGURES_KEPT_MS));
    for (const [name, [help, of]] of Object.entries(FIGURES))
      readGauge(this.#registry, describe(name, help, ["state", "name"]), async () => {
        const known = await figures();
        return known === undefined ? [] : of(known);
      });
  }

  #histogram(name: string, help: string, labelNames?: string[]) {
    const description = describe(name, help, labelNames);
    return new Histogram({
      ...description,
      buckets: DURATION_BUCKETS_S,
      registers: [this.#registry],
    });
  }
}

function describe(name: string, help: string, labelNames: string[] = []) {
  return { name: `reviewrelay_${name}`, help, labelNames };
}
