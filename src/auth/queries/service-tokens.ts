import { and, desc, eq, gt } from "drizzle-orm";

import { instantBefore } from "../../../db/conditions.ts";
import type { DbOrTx } from "../../../db/client.ts";
import { tokens } from "../../../db/schema/tokens.ts";
import { neverNull } from "../../../db/statement.ts";
import type { Page } from "../../http/list.ts";

const isOf = (serviceId: number) => and(eq(tokens.userId, serviceId), eq(tokens.kind, "service"));
const isLive = (serviceId: number, now: Date) => and(isOf(serviceId), gt(tokens.expiresAt, now));

/** Lists the tokens of a service that have not ended, newest first. */
export async function tokensOfService(
  db: DbOrTx,
  serviceId: number,
  { now, page }: { readonly now: Date; readonly page: Page },
) {
  const rows = await db
    .select({
      id: tokens.jti,
      name: tokens.name,
      createdAt: tokens.issuedAt,
      expiresAt: tokens.expiresAt,
      lastUsedAt: tokens.lastUsedAt,
    })
    .from(tokens)
    .where(and(isLive(serviceId, now), instantBefore(tokens.issuedAt, tokens.jti, page.after)))
    .orderBy(desc(tokens.issuedAt), desc(tokens.jti))
    .limit(page.limit + 1);
  return rows.map((row) => ({
    ...row,
    name: neverNull(row.name),
    expiresAt: neverNull(row.expiresAt),
  }));
}

export function countTokensOfService(db: DbOrTx, serviceId: number, now: Date): Promise<number> {
  return db.$count(tokens, isLive(serviceId, now));
}

/** Returns whether the service has a token with this id. */
export async function hasToken(db: DbOrTx, serviceId: number, jti: string): Promise<boolean> {
  return (await db.$count(tokens, and(isOf(serviceId), eq(tokens.jti, jti)))) > 0;
}
