import { and, desc, eq, exists, gt, inArray, isNull, lte, or, sql } from "drizzle-orm";

import { anyOf, instantBefore } from "../../../db/conditions.ts";
import type { DbOrTx } from "../../../db/client.ts";
import { tokens, tokenUses } from "../../../db/schema/tokens.ts";
import { users } from "../../../db/schema/companies.ts";
import type { Page } from "../../http/list.ts";
import type { TeamToken } from "../token-model.ts";

/** The newest pairs of route and address that are kept of a token. */
export const USES_KEPT = 100;

const { jti, route, ip, lastUsedAt } = tokenUses;

/** True if it is new. A token that has ended since has no uses any more. */
export async function saveUse(
  db: DbOrTx,
  use: { readonly jti: string; readonly route: string; readonly ip: string; readonly at: Date },
): Promise<boolean> {
  const moved = await db
    .update(tokenUses)
    .set({ lastUsedAt: use.at })
    .where(and(eq(jti, use.jti), eq(route, use.route), eq(ip, use.ip)));
  if (moved.count > 0) return false;
  const { at, ...key } = use;
  await db
    .insert(tokenUses)
    .select(
      db
        .select({
          jti: tokens.jti,
          route: sql`${key.route}`.as("route"),
          ip: sql`${key.ip}`.as("ip"),
          firstUsedAt: sql`${at}`.as("first_used_at"),
          lastUsedAt: sql`${at}`.as("last_used_at"),
        })
        .from(tokens)
        .where(eq(tokens.jti, key.jti)),
    )
    .onConflictDoNothing();
  return true;
}

/** An address that changes with every request must not fill the table. */
export async function keepNewestUses(db: DbOrTx, id: string): Promise<void> {
  const firstTooMany = db
    .select({ at: lastUsedAt })
    .from(tokenUses)
    .where(eq(jti, id))
    .orderBy(desc(lastUsedAt))
    .offset(USES_KEPT)
    .limit(1);
  await db
    .delete(tokenUses)
    .where(and(eq(jti, id), exists(firstTooMany), lte(lastUsedAt, sql`(${firstTooMany})`)));
}

/** The pairs of route and address that a list shows of a token. */
const USES_SHOWN = 10;

const TEAM_KINDS = ["dashboard_pat", "api_pat", "impersonation"] as const;
/** The person who acts by a token, for another or as itself. */
const holder = sql`coalesce(${tokens.impersonatorId}, ${tokens.userId})`;
const isLive = (now: Date) => or(isNull(tokens.expiresAt), gt(tokens.expiresAt, now));

/** A token that lives apart from a sign-in, with the person who acts by it. */
export async function findTeamToken(db: DbOrTx, id: string, now: Date) {
  const [row] = await db
    .select({
      jti: tokens.jti,
      kind: tokens.kind,
      holderId: users.id,
      holderCompanyId: users.companyId,
    })
    .from(tokens)
    .innerJoin(users, eq(users.id, holder))
    .where(and(eq(tokens.jti, id), inArray(tokens.kind, TEAM_KINDS), isLive(now)));
  return row;
}

/** Of the people of a company, those that act for others included; newest first. */
export async function tokensOfTeam(
  db: DbOrTx,
  companyId: number,
  { now, page }: { readonly now: Date; readonly page: Page },
): Promise<TeamToken[]> {
  const team = db.select({ id: users.id }).from(users).where(eq(users.companyId, companyId));
  const found = await db
    .select({
      jti: tokens.jti,
      kind: tokens.kind,
      name: tokens.name,
      scope: tokens.scope,
      issuedAt: tokens.issuedAt,
      expiresAt: tokens.expiresAt,
      lastUsedAt: tokens.lastUsedAt,
      userId: users.id,
      userName: users.name,
    })
    .from(tokens)
    .innerJoin(users, eq(users.id, holder))
    .where(
      and(
        or(inArray(tokens.userId, team), inArray(tokens.impersonatorId, team)),
        inArray(tokens.kind, TEAM_KINDS),
        isLive(now),
        instantBefore(tokens.issuedAt, tokens.jti, page.after),
      ),
    )
    .orderBy(desc(tokens.issuedAt), desc(tokens.jti))
    .limit(page.limit + 1);
  const uses = await newestUses(
    db,
    found.map((one) => one.jti),
  );
  return found.map((one) => ({ ...one, uses: uses.get(one.jti) ?? [] }));
}

async function newestUses(db: DbOrTx, ids: readonly string[]) {
  const newest = db
    .select()
    .from(tokenUses)
    .where(eq(jti, tokens.jti))
    .orderBy(desc(lastUsedAt))
    .limit(USES_SHOWN)
    .as("newest");
  const rows = await db
    .select({
      jti: newest.jti,
      route: newest.route,
      ip: newest.ip,
      firstUsedAt: newest.firstUsedAt,
      lastUsedAt: newest.lastUsedAt,
    })
    .from(tokens)
    .crossJoinLateral(newest)
    .where(anyOf(tokens.jti, ids))
    .orderBy(desc(newest.lastUsedAt));
  return Map.groupBy(rows, (row) => row.jti);
}
