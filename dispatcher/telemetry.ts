import { Counter, Histogram, type Registry } from "prom-client";

import type { Clock } from "../src/lib/clock.ts";
import { DURATION_BUCKETS_S, readCounter, readGauge, type Reading } from "../src/lib/metrics.ts";
import { memoize } from "../src/lib/memoize.ts";
import type { Spans } from "../src/lib/spans.ts";
import type { Deliver } from "./delivery/deliver.ts";
import type { Dispatcher } from "./dispatcher.ts";
import type { EndedRun } from "./maintenance/loop.ts";
import { type Figures, FIGURES_AT_MOST } from "./maintenance/queries.ts";
import type { DispatchStore } from "./store/store.ts";

const FIGURES_KEPT_MS = 1_000;
const JOB_BUCKETS_S = [0.01, 0.1, 1, 10, 60, 600, 3_600];
const GROUP_BUCKETS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

type WorkloadGauge = readonly [help: string, read: (workload: Dispatcher["workload"]) => number];

const WORKLOAD_GAUGES: Readonly<Record<string, WorkloadGauge>> = {
  shards: ["Shards that this dispatcher holds, of 64.", ({ shards }) => shards],
  actors: ["Subscriptions that have an actor in memory.", ({ actors }) => actors],
  subscriptions_waiting: [
    "Subscriptions that wait for their turn to get an actor, or are parked because their host is saturated.",
    ({ waiting }) => waiting,
  ],
  commit_backlog: ["Attempt records that wait for their commit.", ({ backlog }) => backlog],
  commit_quarantined_subscriptions: [
    "Quarantined subscriptions, whose attempt records cannot be committed. They are retried separately.",
    ({ quarantinedSubscriptions }) => quarantinedSubscriptions,
  ],
  lag_seconds: ["Wait of the oldest due delivery at the last sweep.", ({ lagMs }) => lagMs / 1_000],
  outage: [
    "1 while the machine, egress proxy, DNS or network of this dispatcher keeps it from reaching receivers, so that attempts are postponed and not counted; else 0.",
    ({ hasOutage }) => Number(hasOutage),
  ],
  lanes_quarantined: [
    "Quarantined lanes. GET /admin/dispatcher lists them with the reason.",
    ({ quarantinedLanes }) => quarantinedLanes,
  ],
  deliveries_quarantined_total: [
    "Attempts that were postponed because the review_history row of the delivery is missing. Each such delivery is retried every 30 s.",
    ({ quarantinedEntries }) => quarantinedEntries,
  ],
};

const BOUND = `counted up to ${FIGURES_AT_MOST}`;

/** Gauges of the whole database, which have equal values in every dispatcher. */
const FIGURES: Readonly<Record<string, readonly [help: string, of: (known: Figures) => Reading]>> =
  {
    backlog_deliveries: [
      `Deliveries in the outbox by state, ${BOUND}: pending, waiting for a retry, held by a disabled subscription.`,
      ({ backlog }) => backlog.map(({ state, entries }) => [{ state }, entries]),
    ],
    backlog_age_seconds: [
      "Age of the oldest counted delivery, by state.",
      ({ backlog }) => backlog.map(({ state, ageS }) => [{ state }, ageS]),
    ],
    mails_queued: [`Mails that wait for an SMTP server, ${BOUND}.`, ({ mails }) => [[{}, mails]]],
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
    const attempts = this.#counter("attempts_total", "Recorded attempts by outcome.", ["outcome"]);
    const help = "Commits of attempt records, including failed ones.";
    const durations = this.#histogram("commit_duration_seconds", help);
    const sizes = this.#histogram("commit_attempts", "Attempts per commit.", [], GROUP_BUCKETS);
    const disabled = this.#counter(
      "subscriptions_disabled_total",
      "Subscriptions that were disabled after 20 permanent failures in a row.",
    );
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
          sizes.observe(records.length);
          disabled.inc(result.disabled.length);
          for (const { eventId, subscriptionId: id, decision } of records) {
            const { kind } = decision;
            if (!result.fenced) attempts.inc({ outcome: kind });
            end?.({
              eventId,
              name: "record",
              attributes: { "reviewrelay.subscription_id": id, "reviewrelay.outcome": kind },
            });
          }
          return result;
        } finally {
          durations.observe((this.#clock.monotonicMs() - startedMs) / 1_000);
        }
      },
    };
  }

  /** Returns a function that counts an attempt to send a mail by its outcome. */
  mails(): (outcome: string) => void {
    const help = "Attempts to send a mail by outcome.";
    const mails = this.#counter("mails_total", help, ["outcome"]);
    return (outcome) => mails.inc({ outcome });
  }

  /** Returns a function that counts and times a run of a maintenance job. */
  jobs(): (run: EndedRun) => void {
    const help =
      "Runs of maintenance jobs by this dispatcher, by name and result: succeeded, failed.";
    const durations = this.#histogram(
      "maintenance_duration_seconds",
      help,
      ["name", "result"],
      JOB_BUCKETS_S,
    );
    const handled = this.#counter(
      "maintenance_rows_total",
      "Rows that maintenance jobs have removed, counted or made.",
      ["name"],
    );
    // The label is `name`, because Prometheus uses `job` for its scrape targets.
    return ({ job: name, result, rows, durationMs }) => {
      durations.observe({ name, result }, durationMs / 1_000);
      handled.inc({ name }, rows);
    };
  }

  watch(dispatcher: Pick<Dispatcher, "workload">): void {
    for (const [name, [help, read]] of Object.entries(WORKLOAD_GAUGES)) {
      const declare = name.endsWith("_total") ? readCounter : readGauge;
      declare(this.#registry, describe(name, help), () => [[{}, read(dispatcher.workload)]]);
    }
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

  #counter(name: string, help: string, labelNames?: string[]) {
    return new Counter({ ...describe(name, help, labelNames), registers: [this.#registry] });
  }

  #histogram(name: string, help: string, labelNames?: string[], buckets = DURATION_BUCKETS_S) {
    const description = describe(name, help, labelNames);
    return new Histogram({ ...description, buckets, registers: [this.#registry] });
  }
}

function describe(name: string, help: string, labelNames: string[] = []) {
  return { name: `reviewrelay_${name}`, help, labelNames };
}
