import type { Clock } from "../src/lib/clock.ts";
import { DURATION_BUCKETS_S, type Metrics, type Reading } from "../src/lib/metrics.ts";
import { remember } from "../src/lib/batches.ts";
import type { Deliver } from "./delivery/deliver.ts";
import type { Dispatcher } from "./dispatcher.ts";
import type { DispatchStore } from "./store/store.ts";
import type { EndedRun } from "./maintenance/loop.ts";
import { FIGURES_AT_MOST, type Figures } from "./maintenance/queries.ts";

const FIGURES_KEPT_MS = 1_000;
const JOB_BUCKETS_S = [0.01, 0.1, 1, 10, 60, 600, 3_600];
const GROUP_BUCKETS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

type Shown = readonly [help: string, read: (workload: Dispatcher["workload"]) => number];

const WORKLOAD: Readonly<Record<string, Shown>> = {
  shards: ["Shards that this dispatcher holds, of 64.", ({ shards }) => shards],
  actors: ["Subscriptions in memory, because they have something to do.", ({ actors }) => actors],
  subscriptions_waiting: [
    "Subscriptions that have something to do and wait for their turn, known by name alone.",
    ({ waiting }) => waiting,
  ],
  commit_backlog: ["Outcomes that wait for their commit.", ({ backlog }) => backlog],
  commit_apart: [
    "Subscriptions whose outcomes cannot be committed: they stand still, the others go on.",
    ({ apart }) => apart,
  ],
  lag_seconds: [
    "How long the oldest due entry had waited at the last sweep.",
    ({ lagMs }) => lagMs / 1_000,
  ],
  entries_quarantined_total: [
    "Sends that were put off because the entry's row of review_history is missing; each such entry is tried again every 30 s.",
    ({ quarantined }) => quarantined,
  ],
};

const BOUND = `counted up to ${FIGURES_AT_MOST}`;

/** What the whole database holds. */
const FIGURES: Readonly<Record<string, readonly [help: string, of: (known: Figures) => Reading]>> =
  {
    backlog_entries: [
      `Entries of the outbox by state, ${BOUND}: pending, waiting for a retry, held by a disabled subscription.`,
      ({ backlog }) => backlog.map(({ state, entries }) => [{ state }, entries]),
    ],
    backlog_age_seconds: [
      "How long ago the oldest of the counted entries was recorded, by state.",
      ({ backlog }) => backlog.map(({ state, ageS }) => [{ state }, ageS]),
    ],
    mails_queued: [`Mails that wait for an SMTP server, ${BOUND}.`, ({ mails }) => [[{}, mails]]],
    mail_overdue_seconds: [
      "For how long the first of the mails could have been sent; 0 if none could.",
      ({ mailOverdueS }) => [[{}, mailOverdueS]],
    ],
    maintenance_age_seconds: [
      "How long ago each maintenance job last succeeded, in whichever dispatcher.",
      ({ jobs }) => jobs.map(({ name, ageS }) => [{ name }, ageS]),
    ],
  };

/** Counts at the edges of the dispatcher: each method wraps one of them in a measured one that takes its place. */
export class DispatcherMetrics {
  readonly #metrics: Metrics;
  readonly #clock: Clock;

  constructor(metrics: Metrics, clock: Clock) {
    this.#metrics = metrics;
    this.#clock = clock;
  }

  deliver(deliver: Deliver): Deliver {
    const durations = this.#histogram(
      "post_duration_seconds",
      "POSTs to receivers by what came of them: accepted, rejected, gone, failed, aborted, unsent, withheld.",
    );
    // Finding a series by its labels costs more than counting in it, so each is kept.
    const durationsOf = remember((result: string) => durations({ result }));
    return async (request, leave) => {
      const outcome = await deliver(request, leave);
      durationsOf(outcome.kind).observe(outcome.durationMs / 1_000);
      return outcome;
    };
  }

  store(store: DispatchStore): DispatchStore {
    const attempts = this.#counter("attempts_total", "Recorded attempts by outcome.");
    const attemptsOf = remember((outcome: string) => attempts({ outcome }));
    const help = "Commits of outcomes, failed ones too.";
    const durations = this.#histogram("commit_duration_seconds", help)();
    const sizes = this.#histogram("commit_attempts", "Attempts per commit.", GROUP_BUCKETS)();
    const disabled = this.#counter(
      "subscriptions_disabled_total",
      "Subscriptions that were disabled after 20 permanent failures in a row.",
    )();
    return {
      ...store,
      commit: async (dispatcherId, records) => {
        const startedMs = this.#clock.monotonicMs();
        try {
          const result = await store.commit(dispatcherId, records);
          sizes.observe(records.length);
          disabled.value += result.disabled.length;
          if (!result.fenced)
            for (const { decision } of records) attemptsOf(decision.kind).value += 1;
          return result;
        } finally {
          durations.observe((this.#clock.monotonicMs() - startedMs) / 1_000);
        }
      },
    };
  }

  /** Counts an attempt to send a mail. */
  mails(): (outcome: string) => void {
    const mails = this.#counter("mails_total", "Attempts to send a mail by outcome.");
    return (outcome) => void (mails({ outcome }).value += 1);
  }

  /** Measures the runs of maintenance jobs. */
  jobs(): (run: EndedRun) => void {
    const help =
      "Runs of maintenance jobs by this dispatcher, by name and result: succeeded, failed.";
    const durations = this.#histogram("maintenance_duration_seconds", help, JOB_BUCKETS_S);
    const handled = this.#counter(
      "maintenance_rows_total",
      "Rows that maintenance jobs have handled: removed, counted, made.",
    );
    // Prometheus itself calls what it scrapes a job.
    return ({ job: name, result, rows, durationMs }) => {
      durations({ name, result }).observe(durationMs / 1_000);
      handled({ name }).value += rows;
    };
  }

  watch(dispatcher: Pick<Dispatcher, "workload">): void {
    for (const [name, [help, read]] of Object.entries(WORKLOAD))
      this.#metrics.read(
        name.endsWith("_total") ? "counter" : "gauge",
        { name: `reviewrelay_${name}`, help },
        () => [[{}, read(dispatcher.workload)]],
      );
  }

  /** Shows `FIGURES`: every dispatcher tells the same. They are left out while Postgres does not answer. */
  figures(read: () => Promise<Figures>): void {
    // All families of one scrape are of one reading.
    const readIn = remember((_second: number) => read().catch(() => undefined), 1);
    const figures = () => readIn(Math.floor(this.#clock.monotonicMs() / FIGURES_KEPT_MS));
    for (const [name, [help, of]] of Object.entries(FIGURES))
      this.#metrics.read("gauge", { name: `reviewrelay_${name}`, help }, async () => {
        const known = await figures();
        return known === undefined ? [] : of(known);
      });
  }

  #counter(name: string, help: string) {
    return this.#metrics.counter({ name: `reviewrelay_${name}`, help });
  }

  #histogram(name: string, help: string, buckets = DURATION_BUCKETS_S) {
    return this.#metrics.histogram({ name: `reviewrelay_${name}`, help }, buckets);
  }
}
