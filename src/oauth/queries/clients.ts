import { and, desc, eq, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { instantBefore } from "../../../db/conditions.ts";
import { companies } from "../../../db/schema/companies.ts";
import { oauthClients } from "../../../db/schema/oauth.ts";
import type { Page } from "../../http/list.ts";
import type { OAuthClient } from "../model.ts";

const { clientId, companyId, createdAt } = oauthClients;

export async function findClient(db: DbOrTx, id: string): Promise<OAuthClient | undefined> {
  const [row] = await db.select().from(oauthClients).where(eq(clientId, id));
  return row;
}

/** What the pages of a client look like, from its tenant. */
export interface Branding {
  readonly name: string;
  readonly primaryColor: string;
  readonly logoUrl: string | null;
}

export interface ActiveClient extends OAuthClient {
  readonly branding: Branding;
}

/** A client whose tenant is active; a client of the platform takes the platform's looks. */
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

/** Newest first. `after` is an instant in ms and a client id, with a dot between. */
export function clientsOf(
  db: DbOrTx,
  tenantId: number | undefined,
  page: Page,
): Promise<OAuthClient[]> {
  const ofTenant = tenantId === undefined ? undefined : eq(companyId, tenantId);
  return db
    .select()
    .from(oauthClients)
    .where(and(ofTenant, instantBefore(createdAt, clientId, page.after)))
    .orderBy(desc(createdAt), desc(clientId))
    .limit(page.limit + 1);
}

/** The builder takes lists that may change. */
const valuesOf = (client: OAuthClient) => ({
  ...client,
  redirectUris: [...client.redirectUris],
  scopes: [...client.scopes],
  grantTypes: [...client.grantTypes],
});

export async function insertClient(tx: Tx, client: OAuthClient): Promise<void> {
  await tx.insert(oauthClients).values(valuesOf(client));
}

/** Holds the client, so that of two changes each is made on what the other left. */
export async function holdClient(tx: Tx, id: string): Promise<OAuthClient | undefined> {
  const [row] = await tx.select().from(oauthClients).where(eq(clientId, id)).for("no key update");
  return row;
}

/** What a client is and whose it is stays as it was made. */
export async function updateClient(tx: Tx, client: OAuthClient): Promise<void> {
  const { name, secretHash, firstParty, redirectUris, scopes, grantTypes, updatedAt } =
    valuesOf(client);
  await tx
    .update(oauthClients)
    .set({ name, secretHash, firstParty, redirectUris, scopes, grantTypes, updatedAt })
    .where(eq(clientId, client.clientId));
}

/** From its commit on nothing more is issued to the client; false if there is none. */
export async function endGrants(tx: DbOrTx, id: string): Promise<boolean> {
  const { count } = await tx.update(oauthClients).set({ grantTypes: [] }).where(eq(clientId, id));
  return count > 0;
}

/** Its tokens and codes go with it. */
export async function deleteClient(tx: Tx, id: string): Promise<boolean> {
  const { count } = await tx.delete(oauthClients).where(eq(clientId, id));
  return count > 0;
}
