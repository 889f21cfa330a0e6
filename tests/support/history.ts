import type { RawDb, RawTx } from "../../db/client.ts";

/**
 * Changes or deletes rows of `review_history` with its triggers disabled, which only a superuser can do. The trigger
 * `review_history_fixed` rejects every update, `review_history_kept` the deletion of a row that is still queued.
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
