import { hostname } from "node:os";

import type { Db, RawDb } from "../../db/client.ts";
import type { Clock } from "../../src/lib/clock.ts";
import { errorFields, type Log } from "../../src/lib/log.ts";
import { endLostSessions, endRun, saveProgress, claimJobs, type Begun } from "./queries.ts";

/** The progress of one chunk of a job. */
export interface Done {
  readonly rows: number;
  /** The position at which the next chunk continues; absent or null after the last one. */
  readonly next?: string | null | undefined;
}

export interface Job {
  readonly name: string;
  /** The time in seconds from the start of one run to the start of the next, over all processes. */
  readonly paceS: number;
  /**
   * The job lease in seconds, after which another process takes over a lost run. It is also the first pause after a
   * failed run. `LEASE_S` if absent.
   */
  readonly leaseS?: number;
  /** Names of jobs that must not be running, nor have begun within the last half hour, when this job starts. */
  readonly restsAfter?: readonly string[];
  /**
   * Whether the job removes data by age. A run of such a job removes nothing if the run before began more than two
   * hours ago.
   */
  readonly isRemoval?: boolean;
  /** Whether the job also runs while the clocks of this machine and PostgreSQL differ. */
  readonly anyClock?: boolean;
  /** The number of rows after which a run ends. */
  readonly rowsAtMost?: number;
  /**
   * The database connection of the job's chunks. Jobs that share one take turns, chunk by chunk. Absent for a job that
   * waits for an external server, so that it does not delay other jobs.
   */
  readonly db?: RawDb;
  /**
   * Handles one bounded chunk. The first chunk of a run gets "" as `reached`, each further chunk the `next` of the
   * chunk before.
   */
  readonly run: (at: { readonly reached: string }) => Promise<Done>;
  /** Returns work that a stopping process awaits, like the running chunk. */
  readonly drain?: () => Promise<unknown> | undefined;
}

export interface LoopDeps {
  /** The database connection for the table of jobs. */
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly jobs: readonly Job[];
  /** Whether the clocks of this machine and PostgreSQL agree (`PostgresClock`). If not, one of them is wrong. */
  readonly clocksAgree: () => boolean;
}

/** The interval in milliseconds at which a process claims due jobs. */
const TICK_MS = 5_000;
/** The job lease in seconds: the time for which a run belongs to its process. Each tick renews it. */
const LEASE_S = 15;
/** The pause in milliseconds between two chunks of a job, so that a long job does not occupy PostgreSQL. */
const PAUSE_MS = 50;
/** The time in milliseconds that a stopping process waits for the running chunks. */
const DRAIN_MS = 5_000;
/**
 * The time in seconds without its client after which a PostgreSQL session counts as lost, equal to the limit of an idle
 * transaction (`idleMs` in db/limits.ts).
 */
const LOST_AFTER_S = 10;
const ERROR_CHARS_SHOWN = 500;

/** Terminates the lost PostgreSQL sessions (`LOST_AFTER_S`) of the database user of `db`. */
export async function endLost(db: Db, log: Log): Promise<Done> {
  const lost = await endLostSessions(db, LOST_AFTER_S);
  for (const one of lost) log.warn("session.lost", { ...one });
  return { rows: lost.length };
}

/**
 * The maintenance loop of a process. Each tick claims the due jobs that no other process runs. The jobs run side by
 * side, chunk by chunk. A failed job is retried after a pause.
 */
export class Maintenance {
  readonly #deps: LoopDeps;
  readonly #stop: AbortSignal;
  readonly #holder = `${hostname()} ${process.pid} ${crypto.randomUUID().slice(0, 8)}`;
  readonly #running = new Map<string, Promise<void>>();
  /** The last queued chunk of each database connection. */
  readonly #lastChunks = new Map<RawDb, Promise<unknown>>();

  constructor(deps: LoopDeps, stop: AbortSignal) {
    this.#deps = deps;
    this.#stop = stop;
  }

  /** Runs until the signal aborts. Unfinished jobs are left to other processes. */
  async run(): Promise<void> {
    const { db, clock, log, jobs } = this.#deps;
    for (; !this.#stop.aborted; await clock.sleep(TICK_MS, this.#stop))
      try {
        // Every process ends lost sessions here and not in a job, because a lost session may lock the row of a job.
        await endLost(db, log);
        await this.tick();
      } catch (error) {
        log.warn("maintenance.tick_failed", errorFields(error));
      }
    const drained = Promise.all([this.idle(), ...jobs.map((job) => job.drain?.())]);
    await Promise.race([drained, clock.sleep(DRAIN_MS)]);
  }

  /** Claims the due jobs and starts them. */
  async tick(): Promise<void> {
    const agree = this.#deps.clocksAgree();
    const jobs = this.#deps.jobs.filter(({ anyClock }) => agree || anyClock);
    const asked = jobs.map(({ name, paceS, leaseS = LEASE_S, restsAfter = [] }) => ({
      name,
      pace: paceS,
      lease: leaseS,
      after: restsAfter,
      running: this.#running.has(name),
    }));
    const begun = await claimJobs(this.#deps.db, { jobs: asked, holder: this.#holder });
    // The jobs are started in the order of the list, in which the chunks of one database connection take turns.
    for (const job of jobs) {
      const one = begun.find(({ name }) => name === job.name);
      if (one === undefined) continue;
      const running = this.#runJob(job, one).finally(() => this.#running.delete(job.name));
      this.#running.set(job.name, running);
    }
  }

  /** Resolves when no job of this process runs. */
  async idle(): Promise<void> {
    await Promise.all(this.#running.values());
  }

  async #runJob(job: Job, begun: Begun): Promise<void> {
    const { db, clock, log } = this.#deps;
    const { name, paceS, leaseS = LEASE_S } = job;
    const run = { name, holder: this.#holder };
    const startedMs = clock.monotonicMs();
    const durationMs = () => Math.round(clock.monotonicMs() - startedMs);
    try {
      const done = await this.#runChunks(job, begun);
      if (done === undefined) return;
      const { rows } = done;
      await endRun(db, { ...run, rows: done.unsaved }, { durationMs: durationMs() });
      if (rows > 0) log[job.isRemoval ? "info" : "debug"]("maintenance.done", { job: name, rows });
    } catch (error) {
      const fields = errorFields(error);
      log.warn("maintenance.failed", { job: name, ...fields });
      const said = [fields["code"], fields["error"]].filter(Boolean).join(": ");
      const failed = { error: said.slice(0, ERROR_CHARS_SHOWN), paceS, leaseS };
      // If this statement fails, too, the job lease expires, and another process takes over the run.
      await endRun(db, { ...run, rows: 0 }, { durationMs: durationMs(), failed }).catch(() => {});
    }
  }

  /** Runs the chunks of a job. Returns undefined if the run was left to another process. */
  async #runChunks(job: Job, { isSteady, reached: begunAt }: Begun) {
    const { db, clock, log } = this.#deps;
    const { name, rowsAtMost = Infinity } = job;
    if (job.isRemoval && !isSteady) {
      log.info("maintenance.deferred", { job: name, reason: "no_run_within_two_hours" });
      return { rows: 0, unsaved: 0 };
    }
    let reached = begunAt ?? "";
    for (let rows = 0; ;) {
      const at = { reached };
      const done = await this.#inTurn(job.db, () => job.run(at));
      rows += done.rows;
      if (done.next == null || rows >= rowsAtMost) return { rows, unsaved: done.rows };
      reached = done.next;
      const isLeft = this.#stop.aborted;
      const run = { name, holder: this.#holder, rows: done.rows };
      if (!(await saveProgress(db, run, { reached, isLeft })) || isLeft) return undefined;
      await clock.sleep(PAUSE_MS);
    }
  }

  /** Runs a chunk after the earlier ones of the same database connection, also if one of them failed. */
  #inTurn<T>(db: RawDb | undefined, chunk: () => Promise<T>): Promise<T> {
    if (db === undefined) return chunk();
    const mine = (this.#lastChunks.get(db) ?? Promise.resolve()).then(chunk, chunk);
    this.#lastChunks.set(db, mine);
    return mine;
  }
}
