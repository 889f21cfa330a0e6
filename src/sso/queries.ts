import type { DbOrTx, Tx } from "../../db/client.ts";
import type { Page } from "../http/list.ts";
import type { KnownUser, StoredCode, StoredState } from "./decide.ts";
import type { Connection } from "./model.ts";

/** A connection with what the sign-in itself needs. */
export interface LiveConnection extends Connection {
  readonly sealedClientSecret: string;
}

const columns = (db: DbOrTx) => db.sql`
  s.id, s.company_id as "companyId", s.issuer, s.client_id as "clientId",
  array(select domain from sso_domains d where d.connection_id = s.id order by domain) as domains,
  s.password_login as "passwordLogin", s.is_active as "isActive",
  s.created_at as "createdAt", s.updated_at as "updatedAt"`;

/** One that signs in now: it, its company and the partner above are active. */
export async function findLiveConnection(
  db: DbOrTx,
  by: { id: string } | { domain: string },
): Promise<LiveConnection | undefined> {
  const wanted =
    "id" in by
      ? db.sql`s.id = ${by.id}`
      : db.sql`s.id = (select connection_id from sso_domains where domain = ${by.domain})`;
  const [row] = await db.sql<LiveConnection[]>`
    select ${columns(db)}, s.sealed_client_secret as "sealedClientSecret"
    from sso_connections s
    join companies c on c.id = s.company_id
    left join companies p on p.id = c.partner_id
    where ${wanted} and s.is_active and c.is_active and coalesce(p.is_active, true)`;
  return row;
}

/** Until the commit the connection stays as it is; false if it does not sign in any more. */
export async function shareConnection(tx: Tx, id: string): Promise<boolean> {
  const rows = await tx.sql`
    select 1 from sso_connections where id = ${id} and is_active for key share`;
  return rows.length > 0;
}

export interface NewState {
  readonly stateHash: string;
  readonly connectionId: string;
  readonly browserHash: string;
  readonly returnTo: string;
  readonly codeChallenge: string | null;
  readonly createdAt: Date;
  readonly expiresAt: Date;
}

export async function insertState(db: DbOrTx, state: NewState): Promise<void> {
  await db.sql`
    insert into sso_states
      (state_hash, connection_id, browser_hash, return_to, code_challenge, created_at, expires_at)
    values (${state.stateHash}, ${state.connectionId}, ${state.browserHash}, ${state.returnTo},
      ${state.codeChallenge}, ${state.createdAt}, ${state.expiresAt})`;
}

export type StateRow = StoredState & Pick<NewState, "returnTo" | "codeChallenge">;

/** Held until the commit, so that of two callbacks with one state the second sees it used. */
export async function holdState(tx: Tx, stateHash: string): Promise<StateRow | undefined> {
  const [row] = await tx.sql<StateRow[]>`
    select connection_id as "connectionId", browser_hash as "browserHash", return_to as "returnTo",
      code_challenge as "codeChallenge", expires_at as "expiresAt", consumed_at as "consumedAt"
    from sso_states where state_hash = ${stateHash} for update`;
  return row;
}

export async function consumeState(tx: Tx, stateHash: string, now: Date): Promise<void> {
  await tx.sql`update sso_states set consumed_at = ${now} where state_hash = ${stateHash}`;
}

/** Somebody who may be signed in, as far as rows tell. */
export interface SsoUser extends KnownUser {
  readonly id: number;
  readonly email: string;
  /** The partner whose tree it is; null for the platform. */
  readonly partnerId: number | null;
}

const userColumns = (db: DbOrTx) => db.sql`
  u.id, u.company_id as "companyId", u.email,
  case c.type when 'partner' then c.id else c.partner_id end as "partnerId",
  u.role = 'super_admin' or c.type = 'platform' as "isSuperAdmin",
  c.is_active and coalesce(p.is_active, true) as "isCompanyActive"`;

export async function findLinkedUser(
  db: DbOrTx,
  { issuer, subject }: { issuer: string; subject: string },
): Promise<SsoUser | undefined> {
  const [row] = await db.sql<SsoUser[]>`
    select ${userColumns(db)}
    from sso_identities i
    join users u on u.id = i.user_id
    join companies c on c.id = u.company_id
    left join companies p on p.id = c.partner_id
    where i.issuer = ${issuer} and i.subject = ${subject}`;
  return row;
}

export async function findUser(db: DbOrTx, id: number): Promise<SsoUser | undefined> {
  const [row] = await db.sql<SsoUser[]>`
    select ${userColumns(db)}
    from users u
    join companies c on c.id = u.company_id
    left join companies p on p.id = c.partner_id
    where u.id = ${id}`;
  return row;
}

export async function findCandidate(
  db: DbOrTx,
  { email, issuer }: { email: string; issuer: string },
): Promise<(SsoUser & { isLinked: boolean }) | undefined> {
  const [row] = await db.sql<(SsoUser & { isLinked: boolean })[]>`
    select ${userColumns(db)},
      exists (select 1 from sso_identities i where i.user_id = u.id and i.issuer = ${issuer}) as "isLinked"
    from users u
    join companies c on c.id = u.company_id
    left join companies p on p.id = c.partner_id
    where u.email = ${email}`;
  return row;
}

/** False if the subject or the user was linked meanwhile. */
export async function insertIdentity(
  tx: Tx,
  link: { issuer: string; subject: string; userId: number; connectionId: string; now: Date },
): Promise<boolean> {
  const result = await tx.sql`
    insert into sso_identities (issuer, subject, user_id, connection_id, linked_at)
    values (${link.issuer}, ${link.subject}, ${link.userId}, ${link.connectionId}, ${link.now})
    on conflict do nothing`;
  return result.count > 0;
}

export async function insertCode(
  tx: Tx,
  code: {
    codeHash: string;
    userId: number;
    connectionId: string;
    codeChallenge: string | null;
    createdAt: Date;
    expiresAt: Date;
  },
): Promise<void> {
  await tx.sql`
    insert into sso_codes (code_hash, user_id, connection_id, code_challenge, created_at, expires_at)
    values (${code.codeHash}, ${code.userId}, ${code.connectionId}, ${code.codeChallenge},
      ${code.createdAt}, ${code.expiresAt})`;
}

export interface CodeRow extends StoredCode {
  readonly userId: number;
  readonly connectionId: string;
}

export async function findCode(db: DbOrTx, codeHash: string): Promise<CodeRow | undefined> {
  const [row] = await db.sql<CodeRow[]>`
    select user_id as "userId", connection_id as "connectionId", code_challenge as "codeChallenge",
      expires_at as "expiresAt", consumed_at as "consumedAt"
    from sso_codes where code_hash = ${codeHash}`;
  return row;
}

/** True for the one who uses the code up. */
export async function consumeCode(tx: Tx, codeHash: string, now: Date): Promise<boolean> {
  const result = await tx.sql`
    update sso_codes set consumed_at = ${now} where code_hash = ${codeHash} and consumed_at is null`;
  return result.count > 0;
}

/** Newest first. */
export async function listConnections(
  db: DbOrTx,
  companyId: number | undefined,
  page: Page,
): Promise<Connection[]> {
  return db.sql<Connection[]>`
    select ${columns(db)} from sso_connections s
    where true ${companyId === undefined ? db.sql`` : db.sql`and s.company_id = ${companyId}`}
      ${page.after === undefined ? db.sql`` : db.sql`and s.id < ${page.after}`}
    order by s.id desc limit ${page.limit + 1}`;
}

export async function findConnection(db: DbOrTx, id: string): Promise<Connection | undefined> {
  const [row] = await db.sql<Connection[]>`
    select ${columns(db)} from sso_connections s where s.id = ${id}`;
  return row;
}

/** Held until the commit: updates and the deletion of one connection come one after the other. */
export async function holdConnection(tx: Tx, id: string): Promise<Connection | undefined> {
  const [row] = await tx.sql<Connection[]>`
    select ${columns(tx)} from sso_connections s where s.id = ${id} for update of s`;
  return row;
}

export type ConnectionColumns = Omit<Connection, "domains">;

export async function insertConnection(
  tx: Tx,
  row: ConnectionColumns & { sealedClientSecret: string },
): Promise<void> {
  await tx.sql`
    insert into sso_connections (id, company_id, issuer, client_id, sealed_client_secret, password_login,
      is_active, created_at, updated_at)
    values (${row.id}, ${row.companyId}, ${row.issuer}, ${row.clientId}, ${row.sealedClientSecret},
      ${row.passwordLogin}, ${row.isActive}, ${row.createdAt}, ${row.updatedAt})`;
}

/** Without a new secret the old one stays. */
export async function updateConnection(
  tx: Tx,
  row: ConnectionColumns & { sealedClientSecret: string | null },
): Promise<void> {
  await tx.sql`
    update sso_connections set issuer = ${row.issuer}, client_id = ${row.clientId},
      sealed_client_secret = coalesce(${row.sealedClientSecret}, sealed_client_secret),
      password_login = ${row.passwordLogin}, is_active = ${row.isActive}, updated_at = ${row.updatedAt}
    where id = ${row.id}`;
}

/** With its domains, links, and whatever is under way. */
export async function deleteConnection(tx: Tx, id: string): Promise<void> {
  await tx.sql`delete from sso_connections where id = ${id}`;
}

export async function deleteDomains(tx: Tx, connectionId: string): Promise<void> {
  await tx.sql`delete from sso_domains where connection_id = ${connectionId}`;
}

/** Answers those that were free; in one order, so that two that overlap do not wait for each other. */
export async function insertDomains(
  tx: Tx,
  connectionId: string,
  domains: readonly string[],
): Promise<string[]> {
  const rows = await tx.sql<{ domain: string }[]>`
    insert into sso_domains (domain, connection_id)
    select domain, ${connectionId} from unnest(${[...domains]}::text[]) as domain order by domain
    on conflict do nothing returning domain`;
  return rows.map((row) => row.domain);
}

/** Which of these domains have another connection than this one. */
export async function domainsOfOthers(
  db: DbOrTx,
  domains: readonly string[],
  ownId: string | undefined,
): Promise<string[]> {
  const rows = await db.sql<{ domain: string }[]>`
    select domain from sso_domains
     where domain = any(${[...domains]}::text[]) and connection_id <> ${ownId ?? ""} order by domain`;
  return rows.map((row) => row.domain);
}

export async function findCompanyType(db: DbOrTx, id: number): Promise<string | undefined> {
  const [row] = await db.sql<{ type: string }[]>`select type from companies where id = ${id}`;
  return row?.type;
}
