import type { RawDb, RawTx } from "../../db/client.ts";

/** Changes or removes rows of the history, which a trigger and keys refuse to everybody but a superuser. */
export async function forceHistory(
  db: RawDb,
  work: (sql: RawTx["sql"]) => PromiseLike<unknown>,
): Promise<void> {
  await db.transaction(async ({ sql }) => {
    await sql`set local session_replication_role = replica`;
    await work(sql);
  });
}
