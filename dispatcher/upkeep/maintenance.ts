import type { RawDb } from "../../db/client.ts";
import { indexEndedDays } from "../../db/ended-days.ts";
import { ensurePartitions } from "../../db/partitions.ts";
import { deleteExpiredStrays, dropExpiredPartition } from "../../db/retention.ts";
import { serverTime } from "../../db/server-time.ts";
import type { Clock } from "../../src/lib/clock.ts";
import { errorFields, type Log } from "../../src/lib/log.ts";
import { purgeIncidents } from "../alerts/queries.ts";
import { purgeMails } from "../mail/queries.ts";
import { removeOldHistory } from "./history-queries.ts";
import {
  expireHeldBatchEntries,
  expireHeldEntries,
  removeDroppedBatchEntries,
  removeSkipped,
  takePass,
} from "./queries.ts";
import { removeOldAudit, removeOldSignIns } from "./records-queries.ts";

/** How often a process looks whether a pass is due: one an hour is, of all processes together. */
const LOOK_MS = 600_000;
/** Rows that one pass deletes from each default partition, and in one statement. */
const STRAYS_AT_MOST = 100_000;
const STRAYS_AT_ONCE = 1_000;

interface MaintenanceDeps {
  readonly db: RawDb;
  readonly log: Log;
  readonly retentionDays: number;
  /** 0 or absent: for ever. */
  readonly auditRetentionDays?: number;
  readonly signInRetentionDays?: number;
  readonly historyRetentionDays?: number;
}

interface HouseDeps extends MaintenanceDeps {
  /** Asked whether a pass is due, so that only who keeps house has a connection for that. */
  readonly passDb: RawDb;
  /** Whose statements may take long. */
  readonly indexDb: RawDb;
  readonly clock: Clock;
  /** Whether this machine's clock and Postgres' agree (`PostgresClock`): if not, one of them is wrong. */
  readonly mayKeep: () => boolean;
}

/**
 * Once an hour, of all processes together, makes the partitions of the week ahead, and ends what is older than the
 * retention time. A missed hour costs nothing.
 */
export async function keepHouse(deps: HouseDeps, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    await keepOnce(deps);
    await deps.clock.sleep(LOOK_MS, stop);
  }
}

/** A pass, if it is due, and if the clocks leave no doubt of what is old. */
export async function keepOnce(deps: HouseDeps): Promise<void> {
  const { passDb, log, mayKeep } = deps;
  try {
    if (!mayKeep()) return log.warn("upkeep.skipped", { reason: "clock_skewed" });
    const pass = await takePass(passDb);
    if (pass === undefined) return;
    await prepare(deps);
    if (pass.isSteady) await remove(deps);
    else log.info("upkeep.deferred", { reason: "no_pass_within_two_hours" });
    await index(deps);
  } catch (error) {
    log.warn("upkeep.failed", errorFields(error));
  }
}

/** Makes room for what is to come. */
export async function prepare(deps: MaintenanceDeps): Promise<void> {
  const { db, log, retentionDays } = deps;
  await step(deps, "partitions", async () => {
    const made = await ensurePartitions(db, await serverTime(db), retentionDays);
    if (made.length > 0) log.info("partitions.made", { partitions: made });
  });
}

/** Makes the indexes of days that have ended, which may take long. */
export async function index(deps: Pick<HouseDeps, "log" | "indexDb">): Promise<void> {
  const { indexDb, log } = deps;
  await step(deps, "indexes", async () => {
    const made = await indexEndedDays(indexDb);
    if (made.length > 0) log.info("indexes.made", { partitions: made });
  });
}

/** Ends what is older than the retention time by Postgres' clock. */
export async function remove(deps: MaintenanceDeps): Promise<void> {
  const { db, log, retentionDays } = deps;
  // First: what an attempt that goes below was asked for meanwhile is queued by the next pass, and keeps its history.
  await removeChunked(deps, [{ removeOld: removeOldHistory, days: deps.historyRetentionDays }]);
  await step(deps, "retention", async () => {
    const dropped = await dropExpiredPartition(db, retentionDays);
    if (dropped === undefined) return;
    const { name, rows, isCounted } = dropped;
    log.warn("partition.dropped", { partition: name, rows, rows_counted: isCounted });
  });
  await step(deps, "strays", async () => {
    const removed = await removeStrays(db, retentionDays);
    if (removed > 0) log.warn("strays.removed", { rows: removed });
  });
  await removeChunked(deps, [
    { removeOld: expireHeldEntries, days: retentionDays },
    { removeOld: removeSkipped, days: retentionDays },
    { removeOld: expireHeldBatchEntries, days: retentionDays },
    { removeOld: removeDroppedBatchEntries, days: retentionDays },
    { removeOld: purgeMails, days: retentionDays },
    { removeOld: purgeIncidents, days: retentionDays },
    { removeOld: removeOldAudit, days: deps.auditRetentionDays },
    { removeOld: removeOldSignIns, days: deps.signInRetentionDays },
  ]);
}

interface Chunked {
  readonly removeOld: (db: RawDb, days: number) => Promise<number>;
  readonly days: number | undefined;
}

async function removeChunked(deps: MaintenanceDeps, chunked: readonly Chunked[]): Promise<void> {
  for (const { removeOld, days = 0 } of chunked.filter((one) => (one.days ?? 0) > 0))
    await step(deps, removeOld.name, async () => {
      const removed = await removeOld(deps.db, days);
      if (removed > 0) deps.log.info("house.kept", { step: removeOld.name, rows: removed });
    });
}

/** A step that fails keeps none of the others from their work: a user who may not make tables can still delete rows. */
async function step(
  { log }: Pick<MaintenanceDeps, "log">,
  name: string,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work();
  } catch (error) {
    log.warn("upkeep.failed", { step: name, ...errorFields(error) });
  }
}

async function removeStrays(db: RawDb, days: number): Promise<number> {
  let removed = 0;
  while (removed < STRAYS_AT_MOST) {
    const count = await deleteExpiredStrays(db, days, STRAYS_AT_ONCE);
    removed += count;
    if (count === 0) break;
  }
  return removed;
}
