import type { RawDb } from "../../db/client.ts";
import { hourlyJobs } from "../../dispatcher/maintenance/jobs.ts";
import {
  Maintenance,
  type Done,
  type Job,
  type LoopDeps,
} from "../../dispatcher/maintenance/loop.ts";
import type { Old } from "../../dispatcher/maintenance/removal-queries.ts";
import { systemClock } from "../../src/lib/clock.ts";
import type { Log } from "../../src/lib/log.ts";
import { silentLog } from "./dispatch.ts";

/** Runs a job chunk by chunk until it has no next one; answers the total number of rows. */
export async function allChunks(chunk: (reached: string) => Promise<Done>): Promise<number> {
  let rows = 0;
  for (let reached: Done["next"] = ""; reached != null;) {
    const done: Done = await chunk(reached);
    rows += done.rows;
    reached = done.next;
  }
  return rows;
}

/** Removes all rows older than `days`, chunk by chunk; answers their number. */
export function removeAll(
  remove: (db: RawDb, old: Old) => Promise<Done>,
  db: RawDb,
  days: number,
): Promise<number> {
  return allChunks((reached) => remove(db, { days, reached }));
}

/** Ends the leases of jobs, which those of killed processes would otherwise hold for 15 s. */
export async function endLeases(db: RawDb): Promise<void> {
  await db.sql`
    update maintenance_jobs set leased_until = now() - interval '1 second' where holder is not null`;
}

interface JobOptions {
  readonly db: RawDb;
  readonly log?: Log;
  readonly retentionDays?: number;
  readonly auditRetentionDays?: number;
  readonly signInRetentionDays?: number;
  readonly historyRetentionDays?: number;
}

/**
 * Builds the hourly jobs on one connection. `retentionDays` is 30 and all other retention is off, unless a test sets
 * it.
 */
export function hourly({ db, log = silentLog, ...days }: JobOptions): Job[] {
  const off = { auditRetentionDays: 0, signInRetentionDays: 0, historyRetentionDays: 0 };
  return hourlyJobs({ retentionDays: 30, ...off, ...days, db, indexDb: db, log });
}

/** Runs each hourly removal job once, in sequence, whether or not it is due. */
export async function removeOnce(given: JobOptions): Promise<void> {
  for (const job of hourly(given).filter(({ isRemoval }) => isRemoval))
    await allChunks((reached) => job.run({ reached }));
}

/** Builds the maintenance loop of one process; tests replace the parts that they observe. */
export function maintenanceOf(
  given: Pick<LoopDeps, "db" | "jobs"> & Partial<LoopDeps>,
  stop = new AbortController().signal,
): Maintenance {
  const own = { clock: systemClock, log: silentLog, clocksAgree: () => true };
  return new Maintenance({ ...own, ...given }, stop);
}

/** Ticks the maintenance loop once and waits until all jobs that it started have ended. */
export async function tickOnce(given: Parameters<typeof maintenanceOf>[0]): Promise<void> {
  const maintenance = maintenanceOf(given);
  await maintenance.tick();
  await maintenance.idle();
}
