import type { RawDb, RawTx } from "../../db/client.ts";

/** Runs `lock` in a transaction that stays open, with its locks, until the returned function is called. */
export async function holding(
  db: RawDb,
  lock: (tx: RawTx) => PromiseLike<unknown>,
): Promise<() => Promise<void>> {
  const [held, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const transaction = db.transaction(async (tx) => {
    await lock(tx);
    held.resolve();
    await released.promise;
  });
  await Promise.race([held.promise, transaction]);
  return async () => {
    released.resolve();
    await transaction;
  };
}
