import { and, arrayContained, count as countOf, desc, eq, not, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { instantBefore } from "../../../db/conditions.ts";
import { companies } from "../../../db/schema/companies.ts";
import { oauthClients } from "../../../db/schema/tokens.ts";
import type { Page } from "../../http/list.ts";
import type { OAuthClient } from "../model.ts";

const { clientId, companyId, createdAt } = oauthClients;

export async function findClient(db: DbOrTx, id: string): Promise<OAuthClient | undefined> {
  const [row] = await db.select().from(oauthClients).where(eq(clientId, id));
  return row;
}

/** The looks of a client's pages, which come from its tenant. */
export interface Branding {
  readonly name: string;
  readonly primaryColor: string;
  readonly logoUrl: string | null;
}

export interface ActiveClient extends OAuthClient {
  readonly branding: Branding;
}

/** Finds a client whose tenant is active. A client of the platform gets the platform's looks. */
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

/** Restricts the clients that a caller may see. */
interface ClientFilter {
  /** Undefined if the caller sees the clients of every tenant. */
  readonly tenantId: number | undefined;
  readonly scopes: ReadonlySet<string>;
  /** Set for a third-party token, which sees only the clients that it created. */
  readonly thirdParty: string | null;
}

/**
 * Lists the clients that `authorityToSee` lets the caller see, newest first. `page.after` is a key of `clientKey`.
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

/** Copies the lists, because Drizzle's builder wants mutable arrays. */
const valuesOf = (client: OAuthClient) => ({
  ...client,
  redirectUris: [...client.redirectUris],
  scopes: [...client.scopes],
  grantTypes: [...client.grantTypes],
});

export async function insertClient(tx: Tx, client: OAuthClient): Promise<void> {
  await tx.insert(oauthClients).values(valuesOf(client));
}

/** Locks the tenant, so that concurrent creations of its clients wait for each other and the limit holds. */
export async function holdTenant(tx: Tx, id: number): Promise<void> {
  const { id: tenantId } = companies;
  await tx.select({ tenantId }).from(companies).where(eq(tenantId, id)).for("no key update");
}

export async function countClients(tx: Tx, tenantId: number): Promise<number> {
  const [row] = await tx
    .select({ clients: countOf() })
    .from(oauthClients)
    .where(eq(companyId, tenantId));
  return row?.clients ?? 0;
}

/** Locks the client, so that a concurrent change waits and then starts from this one's result. */
export async function holdClient(tx: Tx, id: string): Promise<OAuthClient | undefined> {
  const [row] = await tx.select().from(oauthClients).where(eq(clientId, id)).for("no key update");
  return row;
}

/** Updates a client. Its type (confidential or public), tenant and creator never change. */
export async function updateClient(tx: Tx, client: OAuthClient): Promise<void> {
  const { name, secretHash, firstParty, redirectUris, scopes, grantTypes, updatedAt } =
    valuesOf(client);
  await tx
    .update(oauthClients)
    .set({ name, secretHash, firstParty, redirectUris, scopes, grantTypes, updatedAt })
    .where(eq(clientId, client.clientId));
}

/**
 * Removes all grant types. After the commit nothing is issued to the client any more. Returns false if there is no
 * such client.
 */
export async function endGrants(tx: DbOrTx, id: string): Promise<boolean> {
  const { count } = await tx.update(oauthClients).set({ grantTypes: [] }).where(eq(clientId, id));
  return count > 0;
}

/** Deletes a client; foreign keys delete its tokens and codes. Returns false if there is no such client. */
export async function deleteClient(tx: Tx, id: string): Promise<boolean> {
  const { count } = await tx.delete(oauthClients).where(eq(clientId, id));
  return count > 0;
}
