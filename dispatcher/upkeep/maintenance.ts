import type { RawDb } from "../../db/client.ts";
import { dropExpiredPartitions, ensurePartitions } from "../../db/partitions.ts";
import { addMs, type Clock } from "../../src/lib/clock.ts";
import { errorFields, type Log } from "../../src/lib/log.ts";
import { purgeMails } from "../mail/queries.ts";
import { expireHeldBatchEntries, expireHeldEntries } from "./queries.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** How many held entries one statement settles, so that it does not hold its locks for long. */
export const EXPIRE_GROUP = 1_000;

interface MaintenanceDeps {
  readonly db: RawDb;
  readonly clock: Clock;
  readonly log: Log;
  readonly retentionDays: number;
}

/**
 * Once an hour makes the partitions of the week ahead, and ends what is older than the retention time. A missed hour
 * costs nothing.
 */
export async function keepHouse(deps: MaintenanceDeps, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    try {
      await maintain(deps);
    } catch (error) {
      deps.log.warn("maintenance.failed", errorFields(error));
    }
    await deps.clock.sleep(HOUR_MS, stop);
  }
}

/** One round of it. Several dispatchers may do it at the same time. */
export async function maintain({ db, clock, log, retentionDays }: MaintenanceDeps): Promise<void> {
  const now = clock.now();
  const cutoff = addMs(now, -retentionDays * DAY_MS);
  const made = await ensurePartitions(db, now);
  const dropped = await dropExpiredPartitions(db, now, retentionDays);
  let expired = 0;
  for (let count = EXPIRE_GROUP; count === EXPIRE_GROUP; expired += count)
    count = await expireHeldEntries(db, cutoff, now, EXPIRE_GROUP);
  expired += await expireHeldBatchEntries(db, cutoff);
  await purgeMails(db, cutoff);
  if (made.length + dropped.length + expired > 0)
    log.info("house.kept", { made, dropped, expired });
}
