import { KEEP_KEY_MS } from "./keyed-requests.ts";
import type { Db } from "../../db/client.ts";
import { recordAudit } from "../audit/queries.ts";
import { addMs } from "../lib/clock.ts";
import type { Config } from "../lib/config.ts";
import { CODE_LIMITS_WINDOW_MS, FORGET_FAILURES_AFTER_MS } from "./decide.ts";
import { deleteEnded, deleteIdleKeys, purgeTime } from "./queries.ts";

interface PurgeDeps {
  readonly db: Db;
  readonly config: Pick<Config, "otpCooldownS">;
}

/**
 * Highest number of rows that one statement of the purge deletes; small enough that no request waits long for the
 * locks on these rows.
 */
export const PURGE_BATCH = 500;
/** Time in ms for which expired rows are kept, because they may still be valid by the clock of another machine. */
export const PURGE_MARGIN_MS = 60_000;
/**
 * Time in ms for which a retired signing key is kept, because a process that has not noticed the rotation yet still
 * signs with it.
 */
export const KEEP_RETIRED_KEY_MS = 3_600_000;
/** Time in ms for which a redeemed authorization code is kept, so that a second use is recognised as a replay. */
const KEEP_REDEEMED_CODE_MS = 24 * 3_600_000;

/**
 * Deletes one batch of ended rows of each kind, such as expired tokens and used codes. Returns the number of deleted
 * rows per kind.
 */
export async function purge(
  { db, config }: PurgeDeps,
  now: Date,
): Promise<Readonly<Record<string, number>>> {
  const before = addMs(now, -PURGE_MARGIN_MS);
  const moments = {
    now,
    expiredBefore: before,
    issuedBefore: addMs(before, -config.otpCooldownS * 1000),
    redeemedBefore: addMs(before, -KEEP_REDEEMED_CODE_MS),
    touchedBefore: addMs(before, -CODE_LIMITS_WINDOW_MS),
    failedBefore: addMs(before, -FORGET_FAILURES_AFTER_MS),
    retiredBefore: addMs(now, -KEEP_RETIRED_KEY_MS),
    keyedBefore: addMs(before, -KEEP_KEY_MS),
  };
  const ended = await deleteEnded(db, moments, PURGE_BATCH);
  // Signing keys are deleted last, because deleting tokens may have removed the last token that needs a key.
  const keys = await db.transaction(async (tx) => {
    const kids = await deleteIdleKeys(tx, moments, PURGE_BATCH);
    for (const kid of kids)
      await recordAudit(tx, {
        at: now,
        action: "KEY_DROPPED",
        actor: null,
        requestContext: null,
        details: { kid },
      });
    return kids.length;
  });
  return { ...ended, keys };
}

/**
 * Runs one chunk of the purge job: deletes one batch of each kind of ended rows, by the clock of PostgreSQL. `next`
 * is set if a batch was full, which means that more rows may be waiting.
 */
export async function purgeChunk(
  deps: PurgeDeps,
): Promise<{ readonly rows: number; readonly next: string | undefined }> {
  const purged = await purge(deps, await purgeTime(deps.db));
  const counts = Object.values(purged);
  const rows = counts.reduce((sum, count) => sum + count, 0);
  return { rows, next: counts.includes(PURGE_BATCH) ? "" : undefined };
}
