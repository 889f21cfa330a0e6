import type { RawDb, RawTx } from "./client.ts";
import { isLockTimeout } from "./errors.ts";

/**
 * Making or dropping a partition waits so long for a lock, and so often: whoever reads or writes the table meanwhile
 * waits behind it. Where a dump holds the table for minutes, the next pass tries again.
 */
const LOCK_MS = 100;
const LOCK_TRIES = 5;
const PAUSE_S = 0.05;
/** The longest of one statement here: one of a few thousand rows, on a loaded server. */
const STATEMENT_MS = 60_000;

export const LOCK_WAIT = `set local lock_timeout = ${LOCK_MS}`;
/** Of a transaction that makes or drops a partition. */
export const LOCK_LIMITS = `${LOCK_WAIT}; set local statement_timeout = ${STATEMENT_MS}`;

/** Runs `work` in a transaction; undefined if a lock that it needs is not to be had. */
export async function underLocks<T>(
  db: RawDb,
  work: (tx: RawTx) => Promise<T>,
): Promise<T | undefined> {
  try {
    return await db.transaction(work);
  } catch (error) {
    if (isLockTimeout(error)) return undefined;
    throw error;
  }
}

/**
 * A statement that tries others again when they have waited for a lock for too long, without losing what was done before.
 * Between two tries those who had queued behind it get their turn.
 */
export function patiently(statements: string): string {
  return `do $$ begin
    for tried in 1..${LOCK_TRIES} loop
      begin
        ${statements}
        return;
      exception when lock_not_available then
        if tried = ${LOCK_TRIES} then raise; end if;
      end;
      perform pg_sleep(${PAUSE_S});
    end loop;
  end $$`;
}
