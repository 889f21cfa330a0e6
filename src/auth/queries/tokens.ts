import { and, arrayContains, desc, eq, gt, inArray, isNull, or, sql, type SQL } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { neverNull } from "../../../db/never-null.ts";
import { prepared } from "../../../db/prepared.ts";
import { companies } from "../../../db/schema/companies.ts";
import { oauthClients } from "../../../db/schema/oauth.ts";
import { authenticationEvents, tokens } from "../../../db/schema/tokens.ts";
import { users, userStores } from "../../../db/schema/users.ts";
import { isPartnerOfCompany, isTenantActive, isUserActive, partners } from "../../../db/tenancy.ts";
import type { Page } from "../../http/list.ts";

type Token = typeof tokens.$inferSelect;
export type TokenRow = Omit<Token, "name" | "sealedToken" | "lastUsedAt" | "redeemedAt">;
/** With what only the two kinds of personal access token have. */
type NewToken = Omit<Token, "lastUsedAt" | "redeemedAt">;

export async function insertToken(tx: DbOrTx, row: NewToken): Promise<void> {
  await tx.insert(tokens).values(row);
}

const impersonators = alias(users, "impersonators");

/** A live token with all that its use depends on, every join by primary key. */
const bearers = prepared({ jti: tokens.jti }, (db, { jti }) => {
  const { kind, userId, clientId, familyId, impersonatorId, scope, expiresAt, lastUsedAt } = tokens;
  const token = { kind, userId, clientId, familyId, impersonatorId, scope, expiresAt, lastUsedAt };
  const ownStores = db
    .select({ storeId: userStores.storeId })
    .from(userStores)
    .where(eq(userStores.userId, users.id))
    .orderBy(userStores.storeId);
  const mayImpersonate = and(
    impersonators.isActive,
    eq(impersonators.companyId, partners.id),
    inArray(impersonators.role, ["partner_owner", "partner_admin"]),
  );
  return db
    .select({
      ...token,
      signInMethod: authenticationEvents.method,
      clientIsFirstParty: oauthClients.firstParty,
      userName: users.name,
      role: users.role,
      companyId: users.companyId,
      companyType: companies.type,
      companyPartnerId: companies.partnerId,
      storeIds: sql<
        number[] | null
      >`case when ${eq(users.role, "location_user")} then array${ownStores} end`,
    })
    .from(tokens)
    .innerJoin(users, eq(users.id, userId))
    .innerJoin(companies, eq(companies.id, users.companyId))
    .leftJoin(partners, isPartnerOfCompany)
    .leftJoin(impersonators, eq(impersonators.id, impersonatorId))
    .leftJoin(authenticationEvents, eq(authenticationEvents.id, familyId))
    .leftJoin(oauthClients, eq(oauthClients.clientId, clientId))
    .where(
      and(
        eq(tokens.jti, jti),
        users.isActive,
        isTenantActive,
        or(isNull(impersonatorId), mayImpersonate),
      ),
    );
});

export type BearerRow = Awaited<ReturnType<typeof bearers>>[number];

/**
 * The one look-up of a bearer check. No row: the token was revoked, the user, the company or its partner is inactive,
 * or the impersonator is no active admin of the account's partner any more (decisions.md 2, revocation).
 */
export async function findBearer(db: DbOrTx, jti: string): Promise<BearerRow | undefined> {
  const [row] = await bearers(db, { jti });
  return row;
}

/** False if the token was gone already. */
export async function deleteToken(tx: DbOrTx, jti: string): Promise<boolean> {
  const { count } = await tx.delete(tokens).where(eq(tokens.jti, jti));
  return count > 0;
}

/** False if it was stamped since it was `seen`: of several requests at once one stamps. */
export async function stampLastUse(
  db: DbOrTx,
  jti: string,
  { seen, at }: { seen: Date | null; at: Date },
): Promise<boolean> {
  const isUnchanged = sql`${tokens.lastUsedAt} is not distinct from ${seen}`;
  const { count } = await db
    .update(tokens)
    .set({ lastUsedAt: at })
    .where(and(eq(tokens.jti, jti), isUnchanged));
  return count > 0;
}

export async function isTokenAlive(db: DbOrTx, jti: string): Promise<boolean> {
  const rows = await db.select({ jti: tokens.jti }).from(tokens).where(eq(tokens.jti, jti));
  return rows.length > 0;
}

/** All that the user has or is behind. In one order, so that two such deletions do not wait for each other. */
export async function deleteTokensOf(tx: Tx, userId: number): Promise<number> {
  const { jti } = tokens;
  const held = tx
    .select({ jti })
    .from(tokens)
    .where(or(eq(tokens.userId, userId), eq(tokens.impersonatorId, userId)))
    .orderBy(jti)
    .for("update");
  const { count } = await tx.delete(tokens).where(inArray(jti, held));
  return count;
}

export type DashboardToken = NonNullable<Awaited<ReturnType<typeof findDashboardToken>>>;

export async function findDashboardToken(db: DbOrTx, userId: number) {
  const { jti, sealedToken, issuedAt, lastUsedAt } = tokens;
  const [row] = await db
    .select({ jti, sealedToken, issuedAt, lastUsedAt })
    .from(tokens)
    .where(and(eq(tokens.userId, userId), eq(tokens.kind, "dashboard_pat")));
  return row && { ...row, sealedToken: neverNull(row.sealedToken) };
}

const { jti, userId, name, scope, issuedAt, expiresAt, lastUsedAt } = tokens;
const apiTokenColumns = { jti, userId, name, scope, issuedAt, expiresAt, lastUsedAt };
type ApiTokenColumns = Pick<Token, keyof typeof apiTokenColumns>;

/** A personal access token that was issued through the API. */
export type ApiTokenRow = ReturnType<typeof apiTokenOf>;

function apiTokenOf(row: ApiTokenColumns) {
  return { ...row, name: neverNull(row.name), expiresAt: neverNull(row.expiresAt) };
}

/** Newest first. `after` is an instant in ms and a jti, with a dot between. */
export async function apiTokensOf(
  db: DbOrTx,
  ownerId: number,
  { now, page }: { now: Date; page: Page },
): Promise<ApiTokenRow[]> {
  const rows = await db
    .select(apiTokenColumns)
    .from(tokens)
    .where(and(eq(userId, ownerId), isLiveApiToken(now), isBehind(page.after)))
    .orderBy(desc(issuedAt), desc(jti))
    .limit(page.limit + 1);
  return rows.map(apiTokenOf);
}

const isLiveApiToken = (now: Date) => and(eq(tokens.kind, "api_pat"), gt(expiresAt, now));

function isBehind(key: string | undefined): SQL | undefined {
  if (key === undefined) return undefined;
  const [issuedMs = "", lastJti = ""] = key.split(".");
  const issued = sql`to_timestamp(${issuedMs}::text::bigint / 1000.0)::timestamptz(3)`;
  return sql`(${issuedAt}, ${jti}) < (${issued}, ${lastJti})`;
}

export async function findApiToken(
  db: DbOrTx,
  id: string,
  now: Date,
): Promise<ApiTokenRow | undefined> {
  const [row] = await db
    .select(apiTokenColumns)
    .from(tokens)
    .where(and(eq(jti, id), isLiveApiToken(now)));
  return row && apiTokenOf(row);
}

/** A refresh token with the state of whom it would sign in. */
export interface RefreshRow extends TokenRow {
  readonly redeemedAt: Date | null;
  readonly companyId: number;
  readonly isActive: boolean;
}

export async function findRefreshToken(db: DbOrTx, id: string): Promise<RefreshRow | undefined> {
  const { kind, clientId, familyId, impersonatorId, kid, redeemedAt } = tokens;
  const from = { clientId, familyId, impersonatorId };
  const token = { jti, kind, userId, ...from, scope, kid, issuedAt, expiresAt, redeemedAt };
  const [row] = await db
    .select({
      ...token,
      companyId: users.companyId,
      isActive: isUserActive,
    })
    .from(tokens)
    .innerJoin(users, eq(users.id, userId))
    .innerJoin(companies, eq(companies.id, users.companyId))
    .leftJoin(partners, isPartnerOfCompany)
    .where(and(eq(jti, id), eq(kind, "refresh")));
  return row;
}

export async function redeemToken(tx: Tx, id: string, now: Date): Promise<void> {
  await tx
    .update(tokens)
    .set({ redeemedAt: now })
    .where(and(eq(jti, id), isNull(tokens.redeemedAt)));
}

/**
 * Makes the deletion of a client wait for what is issued to it. False if there is no such client any more, or it lacks
 * the grant: a deletion that takes the grants away first is not kept waiting by refreshes that go on and on.
 */
export async function shareClient(tx: Tx, id: string, grant = "refresh_token"): Promise<boolean> {
  const { clientId, grantTypes } = oauthClients;
  const rows = await tx
    .select({ clientId })
    .from(oauthClients)
    .where(and(eq(clientId, id), arrayContains(grantTypes, [grant])))
    .for("key share");
  return rows.length > 0;
}
