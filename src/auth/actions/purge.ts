import type { Db, Tx } from "../../../db/client.ts";
import { takeTurn } from "../../../db/turn.ts";
import { recordAudit } from "../../audit/actions.ts";
import { addMs, type Clock } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import { errorFields, type Log } from "../../lib/log.ts";
import { CODE_LIMITS_WINDOW_MS, FORGET_FAILURES_AFTER_MS } from "../decide.ts";
import {
  deleteDeadAuthorizationCodes,
  deleteDeadCodes,
  deleteDeadPortalLinks,
  deleteDeadSsoCodes,
  deleteDeadSsoStates,
  deleteExpiredTokens,
  deleteForgottenLocks,
  deleteIdleKeys,
  deleteOldCodeLimits,
  deleteOldCodeTries,
  purgeTime,
} from "../queries/purge.ts";

interface PurgeDeps {
  readonly db: Db;
  readonly config: Pick<Config, "otpCooldownS">;
}

/** The rows of one transaction, few enough that no request waits long for it. */
export const PURGE_BATCH = 500;
/** How long ended rows are kept: by the clock of another machine they may still live. */
export const PURGE_MARGIN_MS = 60_000;
/** How long a retired key is kept: a process that has not heard of the rotation still signs with it. */
export const KEEP_RETIRED_KEY_MS = 3_600_000;
/** How long a redeemed authorization code is kept: so long its second use is recognised as one. */
const KEEP_REDEEMED_CODE_MS = 24 * 3_600_000;
const EVERY_MS = 60_000;

/** How many rows were removed. */
interface Purged {
  readonly tokens: number;
  readonly codes: number;
  readonly authorizationCodes: number;
  readonly codeLimits: number;
  readonly codeTries: number;
  readonly ssoStates: number;
  readonly ssoCodes: number;
  readonly portalLinks: number;
  readonly locks: number;
  readonly keys: number;
}

/** Removes rows that have ended by `now`, batch by batch; removes none while another process does it. */
export async function purge(deps: PurgeDeps, now: Date): Promise<Purged> {
  const before = addMs(now, -PURGE_MARGIN_MS);
  const issuedBefore = addMs(before, -deps.config.otpCooldownS * 1000);
  const inBatches = (remove: (tx: Tx) => Promise<number>) => removeInBatches(deps, remove);
  return {
    tokens: await inBatches((tx) => deleteExpiredTokens(tx, before, PURGE_BATCH)),
    codes: await inBatches((tx) =>
      deleteDeadCodes(tx, { expiredBefore: before, issuedBefore }, PURGE_BATCH),
    ),
    authorizationCodes: await inBatches((tx) => {
      const redeemedBefore = addMs(before, -KEEP_REDEEMED_CODE_MS);
      return deleteDeadAuthorizationCodes(
        tx,
        { expiredBefore: before, redeemedBefore },
        PURGE_BATCH,
      );
    }),
    codeLimits: await inBatches((tx) =>
      deleteOldCodeLimits(tx, addMs(before, -CODE_LIMITS_WINDOW_MS), PURGE_BATCH),
    ),
    codeTries: await inBatches((tx) =>
      deleteOldCodeTries(tx, addMs(before, -CODE_LIMITS_WINDOW_MS), PURGE_BATCH),
    ),
    ssoStates: await inBatches((tx) => deleteDeadSsoStates(tx, before, PURGE_BATCH)),
    ssoCodes: await inBatches((tx) => deleteDeadSsoCodes(tx, before, PURGE_BATCH)),
    portalLinks: await inBatches((tx) => deleteDeadPortalLinks(tx, before, PURGE_BATCH)),
    locks: await inBatches((tx) => {
      const failedBefore = addMs(before, -FORGET_FAILURES_AFTER_MS);
      return deleteForgottenLocks(tx, { failedBefore, now }, PURGE_BATCH);
    }),
    // Keys come last, because the tokens that were just removed need them no more.
    keys: await inBatches((tx) => dropKeys(tx, now)),
  };
}

/** Each batch is its own transaction, so that a stop in between loses nothing and holds nobody up. */
async function removeInBatches(
  { db }: PurgeDeps,
  remove: (tx: Tx) => Promise<number>,
): Promise<number> {
  for (let removed = 0; ;) {
    const count = await db.transaction(async (tx) =>
      (await takeTurn(tx, "auth-purge")) ? remove(tx) : 0,
    );
    removed += count;
    if (count < PURGE_BATCH) return removed;
  }
}

async function dropKeys(tx: Tx, now: Date): Promise<number> {
  const kids = await deleteIdleKeys(tx, addMs(now, -KEEP_RETIRED_KEY_MS), PURGE_BATCH);
  for (const kid of kids)
    await recordAudit(tx, {
      at: now,
      action: "KEY_DROPPED",
      actor: null,
      call: null,
      details: { kid },
    });
  return kids.length;
}

/** Purges once a minute until the signal aborts, by Postgres' clock. */
export async function runPurge(
  deps: PurgeDeps & {
    readonly clock: Clock;
    readonly log: Log;
    /** Whether this machine's clock and Postgres' agree: of two that differ one is wrong. */
    readonly mayKeep: () => boolean;
  },
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    await deps.clock.sleep(EVERY_MS, signal);
    if (signal.aborted) return;
    if (!deps.mayKeep()) continue;
    try {
      const purged = await purge(deps, await purgeTime(deps.db));
      const total = Object.values(purged).reduce((sum, count) => sum + count, 0);
      if (total > 0) deps.log.info("auth.purged", { ...purged });
    } catch (error) {
      // The next round tries again.
      deps.log.warn("auth.purge_failed", errorFields(error));
    }
  }
}
