import {
  and,
  count as countOf,
  desc,
  eq,
  getTableColumns,
  gt,
  inArray,
  isNull,
  sql,
  type SQL,
} from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { anyOf, instantBefore } from "../../../db/conditions.ts";
import { companies, users } from "../../../db/schema/companies.ts";
import { authenticationEvents, oauthClients, tokens } from "../../../db/schema/tokens.ts";
import { neverNull } from "../../../db/statement.ts";
import type { Page } from "../../http/list.ts";
import { isPartnerOfCompany, isUserActive, partners } from "../access/queries.ts";

type Token = typeof tokens.$inferSelect;
export type TokenRow = Omit<Token, "name" | "sealedToken" | "lastUsedAt" | "redeemedAt">;
/** A new token's row. `name` and `sealedToken` are filled only for the two kinds of personal access token. */
type NewToken = Omit<Token, "lastUsedAt" | "redeemedAt">;

const { lastUsedAt, redeemedAt, name, sealedToken, ...issued } = getTableColumns(tokens);
const { jti, kind, userId, familyId, scope, issuedAt, expiresAt } = issued;

export async function insertToken(tx: DbOrTx, row: NewToken): Promise<void> {
  await tx.insert(tokens).values(row);
}

const madeTokens = alias(tokens, "made");

/**
 * Ends the tokens that match `where`, and every token that was created by a token that matches `makers` (contract
 * 4.23). Returns the number of ended tokens.
 * Rows are locked in a fixed order, makers first and then by `jti`, so that two such deletions cannot deadlock. The
 * foreign key would also delete the created tokens, but in no defined order.
 * The tokens are found by one statement and locked by another. A single statement could miss a row. While it waits for
 * a lock, another transaction may change the locked row, for example stamp its last use. PostgreSQL then evaluates the
 * union again with the new version of that row only.
 */
export async function endTokens(
  db: DbOrTx,
  where: SQL | undefined,
  makers: SQL | undefined = where,
): Promise<number> {
  const madeByThem = db
    .select({ jti: madeTokens.jti })
    .from(madeTokens)
    .innerJoin(tokens, eq(jti, madeTokens.parentJti))
    .where(makers);
  const found = await db.select({ jti }).from(tokens).where(where).unionAll(madeByThem);
  if (found.length === 0) return 0;
  const held = db
    .select({ jti })
    .from(tokens)
    .where(
      anyOf(
        jti,
        found.map((row) => row.jti),
      ),
    )
    .orderBy(sql`${tokens.parentJti} is not null`, jti)
    .for("update");
  const { count } = await db.delete(tokens).where(inArray(jti, held));
  return count;
}

/** Revokes a token and every token that was created with it. Returns false if the token no longer existed. */
export async function deleteToken(tx: DbOrTx, id: string): Promise<boolean> {
  return (await endTokens(tx, eq(jti, id))) > 0;
}

/**
 * Sets `last_used_at` of a token to `at`, if the column is still equal to `seen`, which was read with the token. So
 * only one of several concurrent requests writes. Returns whether this request wrote the value.
 */
export async function stampLastUse(
  db: DbOrTx,
  id: string,
  { seen, at }: { seen: Date | null; at: Date },
): Promise<boolean> {
  const { count } = await db
    .update(tokens)
    .set({ lastUsedAt: at })
    .where(and(eq(jti, id), sql`${lastUsedAt} is not distinct from ${seen}`));
  return count > 0;
}

/**
 * Locks a token until the commit, so that its revocation waits, and then also finds the tokens created with the token.
 * Returns false if the token has ended. Users must be locked first, as in every transaction that ends tokens.
 */
export async function holdToken(tx: Tx, id: string): Promise<boolean> {
  const rows = await tx.select({ jti }).from(tokens).where(eq(jti, id)).for("key share");
  return rows.length > 0;
}

export type DashboardToken = NonNullable<Awaited<ReturnType<typeof findDashboardToken>>>;

export async function findDashboardToken(db: DbOrTx, ownerId: number) {
  const [row] = await db
    .select({ jti, sealedToken, issuedAt, lastUsedAt })
    .from(tokens)
    .where(and(eq(userId, ownerId), eq(kind, "dashboard_pat")));
  return row && { ...row, sealedToken: neverNull(row.sealedToken) };
}

const apiTokenColumns = { jti, userId, name, scope, issuedAt, expiresAt, lastUsedAt };
type ApiTokenColumns = Pick<Token, keyof typeof apiTokenColumns>;

/** A personal access token that was issued through the API, as the database stores it. */
export type ApiTokenRow = ReturnType<typeof apiTokenOf>;

function apiTokenOf(row: ApiTokenColumns) {
  return { ...row, name: neverNull(row.name), expiresAt: neverNull(row.expiresAt) };
}

/**
 * Lists the personal access tokens that a caller with these scopes could have created, newest first. `page.after` is
 * a key of `apiTokenKey`.
 */
export async function apiTokensOf(
  db: DbOrTx,
  caller: { readonly userId: number; readonly scopes: ReadonlySet<string> },
  { now, page }: { now: Date; page: Page },
): Promise<ApiTokenRow[]> {
  const rows = await db
    .select(apiTokenColumns)
    .from(tokens)
    .where(
      and(
        eq(userId, caller.userId),
        isLiveApiToken(now),
        hasScopesWithin(caller.scopes),
        instantBefore(issuedAt, jti, page.after),
      ),
    )
    .orderBy(desc(issuedAt), desc(jti))
    .limit(page.limit + 1);
  return rows.map(apiTokenOf);
}

const hasScopesWithin = (scopes: ReadonlySet<string>) =>
  scopes.has("*")
    ? undefined
    : sql`string_to_array(${scope}, ' ') <@ string_to_array(${[...scopes].join(" ")}, ' ')`;

export async function countApiTokens(tx: Tx, ownerId: number, now: Date): Promise<number> {
  const [row] = await tx
    .select({ live: countOf() })
    .from(tokens)
    .where(and(eq(userId, ownerId), isLiveApiToken(now)));
  return row?.live ?? 0;
}

const isLiveApiToken = (now: Date) => and(eq(kind, "api_pat"), gt(expiresAt, now));

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

/** A refresh token together with the state of the user that it signs in. */
export type RefreshRow = NonNullable<Awaited<ReturnType<typeof findRefreshToken>>>;

export async function findRefreshToken(db: DbOrTx, id: string) {
  const [row] = await db
    .select({
      ...issued,
      redeemedAt,
      signedInAt: authenticationEvents.at,
      companyId: users.companyId,
      isActive: isUserActive,
    })
    .from(tokens)
    .leftJoin(authenticationEvents, eq(authenticationEvents.id, familyId))
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
    .where(and(eq(jti, id), isNull(redeemedAt)));
}

/**
 * Locks an OAuth client with a shared lock, so that its deletion waits for tokens that are being issued to it. Returns
 * false if the client was deleted or lacks the grant. A deletion first removes the grants of the client, so that a
 * stream of refreshes cannot delay the deletion forever.
 */
export async function shareClient(tx: Tx, id: string, grant = "refresh_token"): Promise<boolean> {
  const rows = await tx
    .select({ id: oauthClients.clientId })
    .from(oauthClients)
    .where(
      and(eq(oauthClients.clientId, id), sql`${grant}::text = any(${oauthClients.grantTypes})`),
    )
    .for("key share");
  return rows.length > 0;
}

const isOfServices = (ids: readonly number[]) =>
  and(anyOf(tokens.userId, ids), eq(tokens.kind, "service"));
const isLiveToken = (ids: readonly number[], now: Date) =>
  and(isOfServices(ids), gt(tokens.expiresAt, now));

/** Lists the tokens of services that have not ended, newest first: one page, or all, of which each service has few. */
export async function tokensOfServices(
  db: DbOrTx,
  ids: readonly number[],
  { now, page }: { readonly now: Date; readonly page?: Page },
) {
  const listed = db
    .select({
      id: tokens.jti,
      serviceId: tokens.userId,
      name: tokens.name,
      createdAt: tokens.issuedAt,
      expiresAt: tokens.expiresAt,
      lastUsedAt: tokens.lastUsedAt,
    })
    .from(tokens)
    .where(and(isLiveToken(ids, now), instantBefore(tokens.issuedAt, tokens.jti, page?.after)))
    .orderBy(desc(tokens.issuedAt), desc(tokens.jti));
  const rows = await (page === undefined ? listed : listed.limit(page.limit + 1));
  return rows.map((row) => ({
    ...row,
    name: neverNull(row.name),
    expiresAt: neverNull(row.expiresAt),
  }));
}

export function countTokensOfService(db: DbOrTx, serviceId: number, now: Date): Promise<number> {
  return db.$count(tokens, isLiveToken([serviceId], now));
}

/** Returns whether the service has a token with this id. */
export async function hasToken(db: DbOrTx, serviceId: number, wanted: string): Promise<boolean> {
  return (await db.$count(tokens, and(isOfServices([serviceId]), eq(jti, wanted)))) > 0;
}
