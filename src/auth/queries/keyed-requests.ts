import { and, eq, gt, lte } from "drizzle-orm";

import type { Db, Tx } from "../../../db/client.ts";
import { keyedRequests } from "../../../db/schema/sign-in.ts";
import type { KeyedRequest, KeyedResponse } from "../../http/creation.ts";

/** Returns the key of a request as its row has it; each user has keys of its own. */
export const rowKeyOf = ({ userId, key }: Pick<KeyedRequest, "userId" | "key">): string =>
  `${userId}:${key}`;

/**
 * Inserts a key with its response, or takes over an expired key. Waits for a transaction that inserts the same key.
 * Returns false if the key is in use.
 */
export async function insertResponse(tx: Tx, response: KeyedResponse): Promise<boolean> {
  const { digest, sealedResponse, createdAt, expired } = response;
  const values = { digest, sealedResponse, createdAt };
  const { count } = await tx
    .insert(keyedRequests)
    .values({ key: rowKeyOf(response), ...values })
    .onConflictDoUpdate({
      target: keyedRequests.key,
      set: values,
      setWhere: lte(keyedRequests.createdAt, expired),
    });
  return count > 0;
}

/** Returns the row of a key, unless it is from `expired` or before. */
export async function keyedRequestOf(db: Db, request: KeyedRequest, expired: Date) {
  const { digest, sealedResponse, key, createdAt } = keyedRequests;
  const [row] = await db
    .select({ digest, sealedResponse })
    .from(keyedRequests)
    .where(and(eq(key, rowKeyOf(request)), gt(createdAt, expired)));
  return row;
}
