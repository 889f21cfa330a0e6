import type { DbOrTx, Tx } from "../../../db/client.ts";
import type { Page } from "../../http/list.ts";
import type { OAuthClient } from "../model.ts";

const columns = (db: DbOrTx) => db.sql`
  o.client_id as "clientId", o.company_id as "companyId", o.name, o.secret_hash as "secretHash", o.confidential,
  o.first_party as "firstParty", o.redirect_uris as "redirectUris", o.scopes, o.grant_types as "grantTypes",
  o.created_at as "createdAt", o.updated_at as "updatedAt"`;

export async function findClient(db: DbOrTx, clientId: string): Promise<OAuthClient | undefined> {
  const [row] = await db.sql<OAuthClient[]>`
    select ${columns(db)} from oauth_clients o where o.client_id = ${clientId}`;
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
export async function findActiveClient(
  db: DbOrTx,
  clientId: string,
): Promise<ActiveClient | undefined> {
  const [row] = await db.sql<(OAuthClient & { branding: Branding })[]>`
    select ${columns(db)}, json_build_object(
      'name', case when c.white_label_enabled then coalesce(c.brand_name, c.name) else c.name end,
      'primaryColor', c.primary_color, 'logoUrl', c.logo_url) as branding
    from oauth_clients o
    join companies c on c.id = coalesce(o.company_id, (select id from companies where type = 'platform' order by id limit 1))
    where o.client_id = ${clientId} and c.is_active`;
  return row;
}

/** Newest first. `after` is an instant in ms and a client id, with a dot between. */
export async function clientsOf(
  db: DbOrTx,
  companyId: number | undefined,
  page: Page,
): Promise<OAuthClient[]> {
  const { sql } = db;
  const [createdMs = "", clientId = ""] = page.after?.split(".") ?? [];
  const tenant = companyId === undefined ? sql`` : sql`and o.company_id = ${companyId}`;
  const before =
    page.after === undefined
      ? sql``
      : sql`and (o.created_at, o.client_id) <
          (to_timestamp(${createdMs}::text::bigint / 1000.0)::timestamptz(3), ${clientId}::text::uuid)`;
  return sql<OAuthClient[]>`
    select ${columns(db)} from oauth_clients o where true ${tenant} ${before}
    order by o.created_at desc, o.client_id desc limit ${page.limit + 1}`;
}

export async function insertClient(tx: Tx, client: OAuthClient): Promise<void> {
  await tx.sql`
    insert into oauth_clients
      (client_id, company_id, name, secret_hash, confidential, first_party, redirect_uris, scopes, grant_types,
       created_at, updated_at)
    values
      (${client.clientId}, ${client.companyId}, ${client.name}, ${client.secretHash}, ${client.confidential},
       ${client.firstParty}, ${[...client.redirectUris]}::text[], ${[...client.scopes]}::text[],
       ${[...client.grantTypes]}::text[], ${client.createdAt}, ${client.updatedAt})`;
}

/** Holds the client, so that of two changes each is made on what the other left. */
export async function holdClient(tx: Tx, clientId: string): Promise<OAuthClient | undefined> {
  const [row] = await tx.sql<OAuthClient[]>`
    select ${columns(tx)} from oauth_clients o where o.client_id = ${clientId} for no key update`;
  return row;
}

export async function updateClient(tx: Tx, client: OAuthClient): Promise<void> {
  await tx.sql`
    update oauth_clients set name = ${client.name}, secret_hash = ${client.secretHash},
      first_party = ${client.firstParty}, redirect_uris = ${[...client.redirectUris]}::text[],
      scopes = ${[...client.scopes]}::text[], grant_types = ${[...client.grantTypes]}::text[],
      updated_at = ${client.updatedAt}
    where client_id = ${client.clientId}`;
}

/** From its commit on nothing more is issued to the client; false if there is none. */
export async function endGrants(tx: DbOrTx, clientId: string): Promise<boolean> {
  const result = await tx.sql`
    update oauth_clients set grant_types = '{}' where client_id = ${clientId}`;
  return result.count > 0;
}

/** Its tokens and codes go with it. */
export async function deleteClient(tx: Tx, clientId: string): Promise<boolean> {
  const result = await tx.sql`delete from oauth_clients where client_id = ${clientId}`;
  return result.count > 0;
}
