import { and, desc, eq, exists, gt, inArray, isNull, lte, or, sql } from "drizzle-orm";

import { anyOf, instantBefore } from "../../../db/conditions.ts";
import type { DbOrTx } from "../../../db/client.ts";
import { tokens, tokenUses } from "../../../db/schema/tokens.ts";
import { users } from "../../../db/schema/companies.ts";
import type { Page } from "../../http/list.ts";
import type { TeamToken } from "./model.ts";

/** Number of the newest uses (pairs of route and address) that the database keeps for each token. */
export const USES_KEPT = 100;

const { jti, route, ip, lastUsedAt } = tokenUses;

/**
 * Stores the use of a token on a route from an address. Returns true if this pair of route and address is new for the
 * token. If the token has been deleted since the request was authenticated, no row is stored.
 */
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

/**
 * Deletes all but the `USES_KEPT` newest uses of a token. Otherwise a client that changes its address with every
 * request would fill the table.
 */
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

/** Number of uses that the list of tokens shows for each token. */
const USES_SHOWN = 10;

const TEAM_KINDS = ["dashboard_pat", "api_pat", "impersonation"] as const;
/** SQL expression for the person acting with a token: the impersonator if there is one, otherwise the user. */
const holderOfToken = sql`coalesce(${tokens.impersonatorId}, ${tokens.userId})`;
const isLiveToken = (now: Date) => or(isNull(tokens.expiresAt), gt(tokens.expiresAt, now));

/** Finds a live token outside of a sign-in session, together with the person acting with it. */
export async function findTeamToken(db: DbOrTx, id: string, now: Date) {
  const [row] = await db
    .select({
      jti: tokens.jti,
      kind: tokens.kind,
      holderId: users.id,
      holderCompanyId: users.companyId,
    })
    .from(tokens)
    .innerJoin(users, eq(users.id, holderOfToken))
    .where(and(eq(tokens.jti, id), inArray(tokens.kind, TEAM_KINDS), isLiveToken(now)));
  return row;
}

/**
 * Lists the tokens of a company's users, newest first. The list includes the impersonation tokens with which these
 * users act for other users.
 */
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
    .innerJoin(users, eq(users.id, holderOfToken))
    .where(
      and(
        or(inArray(tokens.userId, team), inArray(tokens.impersonatorId, team)),
        // This condition excludes the tokens with which the partner's users act for this company.
        eq(users.companyId, companyId),
        inArray(tokens.kind, TEAM_KINDS),
        isLiveToken(now),
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
