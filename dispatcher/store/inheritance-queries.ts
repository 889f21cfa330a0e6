import { inArray } from "drizzle-orm";

import type { Db } from "../../db/client.ts";
import { outboxSequences } from "../../db/schema/outbox.ts";

/** The last sequences given out: what has a later one came after a takeover. */
export async function lastSequencesOf(
  db: Db,
  subscriptionIds: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  if (subscriptionIds.length === 0) return new Map();
  const { subscriptionId, lastSequence } = outboxSequences;
  const found = await db
    .select({ subscriptionId, lastSequence })
    .from(outboxSequences)
    .where(inArray(subscriptionId, [...subscriptionIds]));
  return new Map(found.map((row) => [row.subscriptionId, row.lastSequence]));
}
