import { hostname } from "node:os";

import type { Db, RawDb } from "../../db/client.ts";
import type { Clock } from "../../src/lib/clock.ts";
import { errorFields, type Log } from "../../src/lib/log.ts";
import { endLostSessions, endRun, saveProgress, takeJobs, type Begun } from "./queries.ts";

/** What a chunk has done. */
export interface Done {
  readonly rows: number;
  /** Where the next chunk goes on; absent or null after the last one. */
  readonly next?: string | null | undefined;
}

export interface Job {
  readonly name: string;
  /** From the beginning of one run to that of the next, of all processes together. */
  readonly paceS: number;
  /**
   * After a holder was lost another process waits for so long before it takes over, and after a failure the job rests for
   * so long at first; `LEASE_S` if absent.
   */
  readonly leaseS?: number;
  /** Does not begin while one of these runs, or within half an hour after it began. */
  readonly restsAfter?: readonly string[];
  /** Removes data by age: a run does nothing if the one before began more than two hours ago. */
  readonly isRemoval?: boolean;
  /** Also runs while this machine's clock and Postgres' differ. */
  readonly anyClock?: boolean;
  /** A run ends after so many rows. */
  readonly rowsAtMost?: number;
  /** The connection of its chunks. Jobs that share one take turns, chunk by chunk. */
  readonly db: RawDb;
  /** Handles one bounded chunk. The first one of a run is given "" as `reached`, each other one what `next` was. */
  readonly run: (at: { readonly reached: string }) => Promise<Done>;
  /** Awaited by a stopping process, as is the chunk under way. */
  readonly drain?: () => Promise<unknown> | undefined;
}

export interface LoopDeps {
  /** For the table of jobs. */
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly jobs: readonly Job[];
  /** Whether this machine's clock and Postgres' agree (`PostgresClock`): if not, one of them is wrong. */
  readonly clocksAgree: () => boolean;
  /** Told the end of each run, for the metrics. */
  readonly ended: (run: EndedRun) => void;
}

export interface EndedRun {
  readonly job: string;
  readonly result: "succeeded" | "failed";
  readonly rows: number;
  readonly durationMs: number;
}

/** How often a process looks for jobs that are due. */
const TICK_MS = 5_000;
/** Renewed with each tick. */
const LEASE_S = 15;
/** Between two chunks of a job, so that a long one leaves Postgres to others. */
const PAUSE_MS = 50;
/** How long a stopping process waits for the chunks under way. */
const DRAIN_MS = 5_000;
/** As long as a transaction of ours may be left alone (`idleMs` in db/limits.ts). */
const LOST_AFTER_S = 10;
const ERROR_SHOWN = 500;

/** Ends lost sessions of the user of this connection. */
export async function endLost(db: Db, log: Log): Promise<Done> {
  const lost = await endLostSessions(db, LOST_AFTER_S);
  for (const one of lost) log.warn("session.lost", { ...one });
  return { rows: lost.length };
}

/**
 * The maintenance loop of a process. Each tick takes the jobs that are due and that no other process runs, and runs them
 * beside each other, chunk by chunk. A job that fails is tried again after a pause of its own.
 */
export class Maintenance {
  readonly #deps: LoopDeps;
  readonly #stop: AbortSignal;
  readonly #holder = `${hostname()} ${process.pid} ${crypto.randomUUID().slice(0, 8)}`;
  readonly #running = new Map<string, Promise<void>>();
  /** Ends with the last chunk that was put in line for a connection. */
  readonly #lanes = new Map<RawDb, Promise<unknown>>();

  constructor(deps: LoopDeps, stop: AbortSignal) {
    this.#deps = deps;
    this.#stop = stop;
  }

  /** Goes on until the signal aborts; jobs that are unfinished then are left to other processes. */
  async run(): Promise<void> {
    const { db, clock, log, jobs } = this.#deps;
    for (; !this.#stop.aborted; await clock.sleep(TICK_MS, this.#stop))
      try {
        // Every process does, whoever holds which job: a lost session may hold the row of one.
        await endLost(db, log);
        await this.tick();
      } catch (error) {
        log.warn("maintenance.tick_failed", errorFields(error));
      }
    const drained = Promise.all([this.idle(), ...jobs.map((job) => job.drain?.())]);
    await Promise.race([drained, clock.sleep(DRAIN_MS)]);
  }

  /** Takes what is due. */
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
    const begun = await takeJobs(this.#deps.db, { jobs: asked, holder: this.#holder });
    // In the order of the list, in which the chunks of a connection follow one another.
    for (const job of jobs) {
      const one = begun.find(({ name }) => name === job.name);
      if (one === undefined) continue;
      const running = this.#runJob(job, one).finally(() => this.#running.delete(job.name));
      this.#running.set(job.name, running);
    }
  }

  /** Resolves when no job runs. */
  async idle(): Promise<void> {
    await Promise.all(this.#running.values());
  }

  async #runJob(job: Job, begun: Begun): Promise<void> {
    const { db, clock, log, ended } = this.#deps;
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
      ended({ job: name, result: "succeeded", rows, durationMs: durationMs() });
    } catch (error) {
      const fields = errorFields(error);
      log.warn("maintenance.failed", { job: name, ...fields });
      ended({ job: name, result: "failed", rows: 0, durationMs: durationMs() });
      const said = [fields["code"], fields["error"]].filter(Boolean).join(": ");
      const failed = { error: said.slice(0, ERROR_SHOWN), paceS, leaseS };
      // If this fails, too, the lease ends by itself.
      await endRun(db, { ...run, rows: 0 }, { durationMs: durationMs(), failed }).catch(() => {});
    }
  }

  /** Undefined if the run was left to another process. */
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

  /** Runs a chunk after those that came before it for the same connection. */
  #inTurn<T>(db: RawDb, chunk: () => Promise<T>): Promise<T> {
    const mine = (this.#lanes.get(db) ?? Promise.resolve()).then(chunk);
    this.#lanes.set(
      db,
      mine.catch(() => undefined),
    );
    return mine;
  }
}
