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

/** Runs chunk after chunk; answers how many rows they have handled. */
export async function allChunks(chunk: (reached: string) => Promise<Done>): Promise<number> {
  let rows = 0;
  for (let reached: Done["next"] = ""; reached != null;) {
    const done: Done = await chunk(reached);
    rows += done.rows;
    reached = done.next;
  }
  return rows;
}

/** Removes all that is older than so many days. */
export function removeAll(
  remove: (db: RawDb, old: Old) => Promise<Done>,
  db: RawDb,
  days: number,
): Promise<number> {
  return allChunks((reached) => remove(db, { days, reached }));
}

interface Given {
  readonly db: RawDb;
  readonly log?: Log;
  readonly retentionDays?: number;
  readonly auditRetentionDays?: number;
  readonly signInRetentionDays?: number;
  readonly historyRetentionDays?: number;
}

/** The jobs of an hour, on one connection. */
export function hourly({ db, log = silentLog, ...days }: Given): Job[] {
  const off = { auditRetentionDays: 0, signInRetentionDays: 0, historyRetentionDays: 0 };
  return hourlyJobs({ retentionDays: 30, ...off, ...days, db, indexDb: db, log });
}

/** Runs the jobs of an hour that remove something once, one after another, whether or not they are due. */
export async function removeOnce(given: Given): Promise<void> {
  for (const job of hourly(given).filter(({ isRemoval }) => isRemoval))
    await allChunks((reached) => job.run({ reached }));
}

/** The maintenance of a process. */
export function maintenanceOf(
  given: Pick<LoopDeps, "db" | "jobs"> & Partial<LoopDeps>,
  stop = new AbortController().signal,
): Maintenance {
  const own = { clock: systemClock, log: silentLog, clocksAgree: () => true, ended: () => {} };
  return new Maintenance({ ...own, ...given }, stop);
}

/** A tick of a process, and the end of all that it began. */
export async function tickOnce(given: Parameters<typeof maintenanceOf>[0]): Promise<void> {
  const maintenance = maintenanceOf(given);
  await maintenance.tick();
  await maintenance.idle();
}
