import {
  and,
  arrayContained,
  count as countOf,
  desc,
  eq,
  not,
  sql,
  arrayContains,
} from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";

import type { DbOrTx, Tx } from "../../db/client.ts";
import { instantBefore } from "../../db/conditions.ts";
import { companies } from "../../db/schema/companies.ts";
import { oauthClients, authorizationCodes } from "../../db/schema/tokens.ts";
import type { Page } from "../http/list.ts";
import type { OAuthClient, AuthorizationCode } from "./model.ts";

const { clientId, companyId, createdAt } = oauthClients;

export async function findClient(db: DbOrTx, id: string): Promise<OAuthClient | undefined> {
  const [row] = await db.select().from(oauthClients).where(eq(clientId, id));
  return row;
}

/** Branding of the pages that a client's users see. It comes from the client's tenant. */
export interface Branding {
  readonly name: string;
  readonly primaryColor: string;
  readonly logoUrl: string | null;
}

export interface ActiveClient extends OAuthClient {
  readonly branding: Branding;
}

/** Finds an OAuth client whose tenant is active. A client of the platform gets the platform's branding. */
export async function findActiveClient(db: DbOrTx, id: string): Promise<ActiveClient | undefined> {
  const platforms = alias(companies, "platforms");
  const platform = db
    .select({ id: platforms.id })
    .from(platforms)
    .where(eq(platforms.type, "platform"))
    .orderBy(platforms.id)
    .limit(1);
  const { name, primaryColor, logoUrl, whiteLabelEnabled, brandName } = companies;
  const [row] = await db
    .select({
      client: oauthClients,
      tenant: { name, primaryColor, logoUrl, whiteLabelEnabled, brandName },
    })
    .from(oauthClients)
    .innerJoin(companies, eq(companies.id, sql`coalesce(${companyId}, ${platform})`))
    .where(and(eq(clientId, id), companies.isActive));
  return row && { ...row.client, branding: brandingOf(row.tenant) };
}

function brandingOf({
  name,
  primaryColor,
  logoUrl,
  whiteLabelEnabled,
  brandName,
}: Branding & { whiteLabelEnabled: boolean; brandName: string | null }): Branding {
  return { name: (whiteLabelEnabled ? brandName : null) ?? name, primaryColor, logoUrl };
}

/** Filter that restricts the list of OAuth clients to those that a caller may see. */
interface ClientFilter {
  /** The tenant of the listed clients; undefined if the caller sees the clients of every tenant. */
  readonly tenantId: number | undefined;
  readonly scopes: ReadonlySet<string>;
  /**
   * The third-party client whose token requests the list: it sees only the clients that it created. Null for all other
   * callers.
   */
  readonly thirdParty: string | null;
}

/**
 * Lists the OAuth clients that `authorityToSee` lets the caller see, newest first. `page.after` is a sort key that
 * `clientKey` has returned.
 */
export function clientsOf(
  db: DbOrTx,
  { tenantId, scopes, thirdParty }: ClientFilter,
  page: Page,
): Promise<OAuthClient[]> {
  const { firstParty, createdBy } = oauthClients;
  const isNarrow = !scopes.has("*");
  const conditions = [
    tenantId === undefined ? undefined : eq(companyId, tenantId),
    isNarrow ? arrayContained(oauthClients.scopes, [...scopes]) : undefined,
    thirdParty === null ? undefined : eq(createdBy, thirdParty),
    isNarrow || thirdParty !== null ? not(firstParty) : undefined,
    instantBefore(createdAt, clientId, page.after),
  ];
  return db
    .select()
    .from(oauthClients)
    .where(and(...conditions))
    .orderBy(desc(createdAt), desc(clientId))
    .limit(page.limit + 1);
}

export async function insertClient(tx: Tx, client: OAuthClient): Promise<void> {
  await tx.insert(oauthClients).values(client);
}

export async function countClients(tx: Tx, tenantId: number): Promise<number> {
  const [row] = await tx
    .select({ clients: countOf() })
    .from(oauthClients)
    .where(eq(companyId, tenantId));
  return row?.clients ?? 0;
}

/**
 * Locks the OAuth client until the commit, so that a concurrent change waits and then starts from the result of this
 * transaction.
 */
export async function holdClient(tx: Tx, id: string): Promise<OAuthClient | undefined> {
  const [row] = await tx.select().from(oauthClients).where(eq(clientId, id)).for("no key update");
  return row;
}

/** Updates an OAuth client. Its type (confidential or public), tenant and creator never change. */
export async function updateClient(tx: Tx, client: OAuthClient): Promise<void> {
  const { name, secretHash, firstParty, redirectUris, scopes, grantTypes, updatedAt } = client;
  const { requirePkce } = client;
  const fields = { name, secretHash, firstParty, redirectUris, scopes, grantTypes, requirePkce };
  await tx
    .update(oauthClients)
    .set({ ...fields, updatedAt })
    .where(eq(clientId, client.clientId));
}

/**
 * Removes all grant types of an OAuth client. After the commit no token is issued to the client any more. Returns
 * false if no client has the id.
 */
export async function endGrants(tx: DbOrTx, id: string): Promise<boolean> {
  const { count } = await tx.update(oauthClients).set({ grantTypes: [] }).where(eq(clientId, id));
  return count > 0;
}

/** Deletes an OAuth client; foreign keys delete its tokens and codes. Returns false if no client has the id. */
export async function deleteClient(tx: Tx, id: string): Promise<boolean> {
  const { count } = await tx.delete(oauthClients).where(eq(clientId, id));
  return count > 0;
}

const { secretHash } = authorizationCodes;

/**
 * Inserts an authorization code and locks the client with a shared lock, so that its deletion waits for the commit.
 * Returns false if the client was deleted or may not use the code flow any more.
 */
export async function insertAuthorizationCode(
  tx: Tx,
  code: Omit<AuthorizationCode, "familyId">,
): Promise<boolean> {
  const mayUseCodes = arrayContains(oauthClients.grantTypes, ["authorization_code"]);
  const held = await tx
    .select({ clientId })
    .from(oauthClients)
    .where(and(eq(clientId, code.clientId), mayUseCodes))
    .for("key share");
  if (held.length === 0) return false;
  await tx.insert(authorizationCodes).values(code);
  return true;
}

export async function findAuthorizationCode(
  db: DbOrTx,
  hash: string,
): Promise<AuthorizationCode | undefined> {
  const [row] = await db.select().from(authorizationCodes).where(eq(secretHash, hash));
  return row;
}

/**
 * Locks an authorization code until the commit, so that a concurrent redemption waits and then sees the result of this
 * transaction.
 */
export async function holdAuthorizationCode(
  tx: Tx,
  hash: string,
): Promise<AuthorizationCode | undefined> {
  const [row] = await tx
    .select()
    .from(authorizationCodes)
    .where(eq(secretHash, hash))
    .for("update");
  return row;
}

export async function redeemAuthorizationCode(
  tx: Tx,
  code: { secretHash: string; familyId: string; now: Date },
): Promise<void> {
  await tx
    .update(authorizationCodes)
    .set({ state: "redeemed", redeemedAt: code.now, familyId: code.familyId })
    .where(eq(secretHash, code.secretHash));
}

/** Deletes an authorization code. Returns false if the code no longer existed. */
export async function deleteAuthorizationCode(tx: Tx, hash: string): Promise<boolean> {
  const { count } = await tx.delete(authorizationCodes).where(eq(secretHash, hash));
  return count > 0;
}
