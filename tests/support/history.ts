import type { RawDb, RawTx } from "../../db/client.ts";

/**
 * Changes or removes rows of the history past the triggers that refuse it: `review_history_fixed` every update,
 * `review_history_kept` the delete of a row that is still queued. Only a superuser can switch them off.
 */
export async function forceHistory(
  db: RawDb,
  work: (sql: RawTx["sql"]) => PromiseLike<unknown>,
): Promise<void> {
  await db.transaction(async ({ sql }) => {
    await sql`set local session_replication_role = replica`;
    await work(sql);
  });
}
