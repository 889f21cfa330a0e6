// Contains raw SQL statements (db/statement.ts) for the bearer check, because it reads tokens with every request.
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
import { liveBearer, liveBearers } from "../../../db/bearers.ts";
import {
  anyOf,
  instantBefore,
  isPartnerOfCompany,
  isUserActive,
  partners,
} from "../../../db/conditions.ts";
import {
  instant,
  neverNull,
  list,
  nullable,
  statement,
  value,
  type ValuesOf,
} from "../../../db/statement.ts";
import { companies, services, users, userStores } from "../../../db/schema/companies.ts";
import { authenticationEvents, oauthClients, tokens } from "../../../db/schema/tokens.ts";
import type { Page } from "../../http/list.ts";
import type { Config } from "../../lib/config.ts";

type Token = typeof tokens.$inferSelect;
export type TokenRow = Omit<Token, "name" | "sealedToken" | "lastUsedAt" | "redeemedAt">;
/** A new token's row. The optional columns are filled only for the two kinds of personal access token. */
type NewToken = Omit<Token, "lastUsedAt" | "redeemedAt">;

const { lastUsedAt, redeemedAt, name, sealedToken, ...issued } = getTableColumns(tokens);
const { jti, kind, userId, clientId, familyId, impersonatorId, scope, pages, issuedAt, expiresAt } =
  issued;

export async function insertToken(tx: DbOrTx, row: NewToken): Promise<void> {
  await tx.insert(tokens).values(row);
}

const own = {
  kind,
  userId,
  clientId,
  familyId,
  impersonatorId,
  scope,
  pages,
  expiresAt,
  lastUsedAt,
};

const SESSION_LIMITS = {
  maxHours: nullable(value("integer")),
  idleMinutes: nullable(value("integer")),
};

const BEARER = {
  jti,
  ...own,
  sessionEndsAt: nullable(instant),
  signInMethod: nullable(authenticationEvents.method),
  signedInAt: nullable(authenticationEvents.at),
  factorAt: authenticationEvents.factorAt,
  requiresFactor: companies.requireSecondFactor,
  clientIsFirstParty: nullable(oauthClients.firstParty),
  clientScopes: nullable(oauthClients.scopes),
  userName: users.name,
  role: users.role,
  companyId: users.companyId,
  companyType: companies.type,
  companyPartnerId: companies.partnerId,
  storeIds: nullable(list(userStores.storeId)),
  serviceScopes: nullable(services.scopes),
  servicePartnerIds: services.partnerIds,
};

const bearer = statement({
  name: "findBearer",
  // Runs with every request: it takes 30 µs of CPU as a raw statement, and 39 µs as a prepared statement of Drizzle's
  // query builder.
  params: { jti, ...SESSION_LIMITS },
  columns: BEARER,
  text: (given) => liveBearer(given.jti, given),
});

const bearers = statement({
  name: "findBearers",
  // Looks up the tokens of several concurrent requests. For a single token this statement would be 25 % slower than
  // `findBearer`.
  params: { jtis: list(jti), ...SESSION_LIMITS },
  columns: BEARER,
  text: ({ jtis, ...limits }) => liveBearers(jtis, limits),
});

/** A live token with all data about its user and company that the handling of a request needs; `readToken` interprets it. */
export type BearerRow = ValuesOf<typeof BEARER>;

/**
 * Looks up tokens for the bearer check, by `jti`. A token that is not valid has no entry in the result, but one that has
 * ended by time may have one.
 */
export async function findBearers(
  db: DbOrTx,
  jtis: readonly string[],
  limits: Config["sessionLimits"],
): Promise<ReadonlyMap<string, BearerRow>> {
  const [first, ...others] = jtis;
  if (first === undefined) return new Map();
  const isAlone = others.length === 0;
  const found = await (isAlone
    ? db.run(bearer, { jti: first, ...limits })
    : db.run(bearers, { jtis, ...limits }));
  return new Map(found.map((row) => [row.jti, row]));
}

const made = alias(tokens, "made");

/**
 * Ends the tokens that match `where`, and every token that was created by a token that matches `makers`
 * (contract 4.23). Returns the number of ended tokens.
 * Rows are locked in a fixed order, makers first and then by `jti`, so that two such deletions cannot deadlock. The
 * foreign key would also delete the created tokens, but in no defined order.
 * A separate statement finds the tokens. A single statement that finds and locks them would miss a row that another
 * transaction changes while it waits (the stamp of a last use): PostgreSQL then evaluates the union again with the
 * new version of that row only.
 */
export async function endTokens(
  db: DbOrTx,
  where: SQL | undefined,
  makers: SQL | undefined = where,
): Promise<number> {
  const madeByThem = db
    .select({ jti: made.jti })
    .from(made)
    .innerJoin(tokens, eq(jti, made.parentJti))
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
 * Stamps the last use of a token, unless another request has stamped it since the token was read (`seen`): of several
 * concurrent requests only one writes. Returns whether this request wrote the stamp.
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
 * Locks a token until the commit, so that a revocation waits and then also finds the tokens created with it. Returns
 * false if the token has ended. Users must be locked first, as in every transaction that ends tokens.
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
 * Locks an OAuth client with a shared lock, so that its deletion waits for tokens that are being issued to it.
 * Returns false if the client was deleted or lacks the grant. A deletion first removes the grants, so that a stream
 * of refreshes cannot delay it forever.
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
