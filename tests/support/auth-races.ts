import type { RawDb } from "../../db/client.ts";

/**
 * Commits a password reset in the middle of `work`, at the worst moment. `work` has passed its bearer check and waits for
 * the lock on the user's row, which the reset holds. The reset then deletes all tokens of the user and commits, and `work`
 * continues. Answers the result of `work`.
 */
export async function behindReset<T>(
  db: RawDb,
  userId: number,
  work: () => Promise<T>,
): Promise<T> {
  let working: Promise<T> | undefined;
  await db.transaction(async ({ sql }) => {
    await sql`update users set updated_at = updated_at where id = ${userId}`;
    working = work();
    await untilSomebodyWaits(db);
    await sql`delete from tokens where user_id = ${userId} or impersonator_id = ${userId}`;
  });
  if (working === undefined) throw new Error("The work was not begun.");
  return working;
}

/** Resolves once a statement waits for a lock. */
export async function untilSomebodyWaits({ sql }: RawDb): Promise<void> {
  for (let i = 0; i < 10_000; i++) {
    const rows = await sql`
      select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    if (rows.length > 0) return;
    await Bun.sleep(5);
  }
  throw new Error("No statement waits for a lock.");
}
