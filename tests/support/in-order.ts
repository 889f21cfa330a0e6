import type { RawDb } from "../../db/client.ts";
import { until } from "./network/receiver.ts";

/**
 * Runs two requests that lock the row of a user, in this order, and answers both. A transaction of the test holds the
 * lock until both wait for it, and PostgreSQL grants it in the order of their arrival.
 */
export async function inOrder<A, B>(
  db: RawDb,
  userId: number,
  first: () => Promise<A>,
  second: () => Promise<B>,
): Promise<[A, B]> {
  const begun = await db.transaction(async ({ sql }) => {
    await sql`select from users where id = ${userId} for update`;
    const one = first();
    await untilWaiting(db, 1);
    const two = second();
    await untilWaiting(db, 2);
    return { one, two };
  });
  return Promise.all([begun.one, begun.two]);
}

function untilWaiting({ sql }: RawDb, count: number): Promise<void> {
  return until(`${count} statements wait for a lock`, async () => {
    const waiting = await sql`
      select from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock'`;
    return waiting.length >= count;
  });
}
