import { eq, lte } from "drizzle-orm";

import type { Db } from "../../../db/client.ts";
import { keyedRequests } from "../../../db/schema/sign-in.ts";
import type { KeyedRequest } from "../../http/idempotency.ts";

/** Returns the key of a request as its row has it; each user has keys of its own. */
export const rowKeyOf = ({ userId, key }: Pick<KeyedRequest, "userId" | "key">): string =>
  `${userId}:${key}`;

const isOf = (request: Pick<KeyedRequest, "userId" | "key">) =>
  eq(keyedRequests.key, rowKeyOf(request));

/** Inserts the key of a request, or takes over one from before `expiredBefore`. Returns false if the key is in use. */
export async function claimKey(
  db: Db,
  request: KeyedRequest,
  now: Date,
  expiredBefore: Date,
): Promise<boolean> {
  const { digest } = request;
  const values = { digest, sealedResponse: null, createdAt: now };
  const { count } = await db
    .insert(keyedRequests)
    .values({ key: rowKeyOf(request), ...values })
    .onConflictDoUpdate({
      target: keyedRequests.key,
      set: values,
      setWhere: lte(keyedRequests.createdAt, expiredBefore),
    });
  return count > 0;
}

export async function keyedRequestOf(db: Db, request: KeyedRequest) {
  const { digest, sealedResponse } = keyedRequests;
  const [row] = await db
    .select({ digest, sealedResponse })
    .from(keyedRequests)
    .where(isOf(request));
  return row;
}

export async function storeResponse(
  db: Db,
  request: KeyedRequest,
  sealedResponse: string,
): Promise<void> {
  await db.update(keyedRequests).set({ sealedResponse }).where(isOf(request));
}

export async function deleteKey(db: Db, request: KeyedRequest): Promise<void> {
  await db.delete(keyedRequests).where(isOf(request));
}
