import { ulid } from "ulid";

import type { Db, Tx } from "../../../db/client.ts";
import { changeDetails } from "../../audit/changes.ts";
import { recordAudit } from "../../audit/queries.ts";
import type { AuditAction } from "../../audit/model.ts";
import { creating } from "../../auth/keyed-requests.ts";
import { emailDomain } from "../../lib/email.ts";
import type { ValidParts } from "../../http/fields.ts";
import { type Page } from "../../http/list.ts";
import { isUlid } from "../../http/ids.ts";
import type { Caller } from "../../http/principal.ts";
import type { RuleErrors } from "../../http/rules.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import { checkNewWebhookUrl, type EgressPolicy } from "../../lib/egress.ts";
import { type Lookup, systemTxt, type TxtLookup } from "../../lib/name-resolver.ts";
import { invalid, Problem } from "../../lib/problem.ts";
import type { SecretBox } from "../../lib/secrets.ts";
import { placementErrors } from "../../tenants/actions/users.ts";
import {
  type Connection,
  type ConnectionUpdate,
  type NewConnection,
  proofRecord,
} from "../model.ts";
import * as queries from "../queries/connections.ts";
import { clientSecretContext } from "./deps.ts";

export interface ConnectionDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly box: SecretBox;
  readonly config: Pick<Config, "egress">;
  readonly lookup?: Lookup;
  /** Looks up TXT records. If it is absent, the system's resolver is used. */
  readonly lookupTxt?: TxtLookup;
}

export function listConnections(
  { db }: Pick<ConnectionDeps, "db">,
  companyId: number | undefined,
  page: Page,
): Promise<Connection[]> {
  return queries.listConnections(db, companyId, page);
}

/** Loads an SSO connection. A malformed id gives the same 404 as an unknown id (contract 2.6). */
export async function findConnection(
  { db }: Pick<ConnectionDeps, "db">,
  id: string,
): Promise<Connection> {
  const found = isUlid(id) ? await queries.findConnection(db, id) : undefined;
  if (found === undefined) throw new Problem("not_found");
  return found;
}

/** Validates the fields of a new SSO connection or, if `own` is given, of changes to that SSO connection. */
export async function connectionErrors(
  deps: Pick<ConnectionDeps, "db" | "config" | "lookup">,
  { company_id: companyId, issuer, domains = [], new_users: newUsers }: ValidParts<NewConnection>,
  own?: Pick<Connection, "id" | "companyId">,
): Promise<RuleErrors> {
  const ownId = own?.id;
  const employerId = own?.companyId ?? companyId;
  const readable = domains.flatMap((one) => (one !== undefined && isDomain(one) ? [one] : []));
  const [company_id, issuerText, taken] = await Promise.all([
    companyId === undefined ? undefined : companyError(deps.db, companyId),
    issuer === undefined ? undefined : issuerError(deps, issuer),
    queries.domainsOfOthers(deps.db, readDomains(readable), ownId),
  ]);
  return {
    company_id,
    issuer: issuerText,
    ...domainErrors(domains),
    domains: takenError(taken),
    ...(newUsers &&
      employerId !== undefined &&
      (await newUserErrors(deps.db, employerId, newUsers))),
  };
}

/**
 * Validates the role and stores that an SSO connection gives to users whom its sign-ins create. The rules are the same
 * as for a user whom an operator creates.
 */
async function newUserErrors(
  db: Db,
  companyId: number,
  newUsers: ValidParts<NonNullable<NewConnection["new_users"]>>,
): Promise<RuleErrors> {
  const { role, store_ids } = await placementErrors({ db }, companyId, newUsers);
  return { "new_users.role": role, "new_users.store_ids": store_ids };
}

/**
 * Returns an error unless the company of an SSO connection is a partner or an account, because users of the platform
 * never sign in through an identity provider (contract 4.13).
 */
async function companyError(db: Db, id: number): Promise<string | undefined> {
  const type = await queries.findCompanyType(db, id);
  const isFit = type === "partner" || type === "account";
  return isFit ? undefined : "must be a partner or an account";
}

/**
 * Creates an SSO connection from a valid body. If another SSO connection has taken one of the email domains since the
 * validation, the function throws the 422 that the validation would have given.
 */
export async function createConnection(
  deps: ConnectionDeps,
  caller: Caller,
  body: NewConnection,
): Promise<Connection> {
  const domains = readDomains(body.domains);
  const now = deps.clock.now();
  const row = {
    id: ulid(now.getTime()),
    companyId: body.company_id,
    issuer: body.issuer,
    clientId: body.client_id,
    passwordLogin: body.password_login ?? true,
    trustEmail: body.trust_email ?? false,
    isActive: body.is_active ?? true,
    ...newUsersOf(body.new_users ?? null),
    createdAt: now,
    updatedAt: now,
  };
  const sealedClientSecret = deps.box.seal(body.client_secret ?? "", clientSecretContext(row));
  await creating(deps.db, caller, async (tx) => {
    await queries.insertConnection(tx, { ...row, sealedClientSecret });
    await assignDomains(tx, row.id, domains);
    await audit(tx, caller, { action: "SSO_CONNECTION_CREATED", connection: row, now });
  });
  return { ...row, domains: domains.map((domain) => ({ domain, provedAt: null })) };
}

function newUsersOf(newUsers: NonNullable<NewConnection["new_users"]> | null) {
  return { newUserRole: newUsers?.role ?? null, newUserStoreIds: newUsers?.store_ids ?? [] };
}

export async function updateConnection(
  deps: ConnectionDeps,
  caller: Caller,
  { id, body }: { id: string; body: ConnectionUpdate },
): Promise<Connection> {
  const domains = body.domains && readDomains(body.domains);
  const now = deps.clock.now();
  return deps.db.transaction(async (tx) => {
    const old = await queries.holdConnection(tx, id);
    if (old === undefined) throw new Problem("not_found");
    const connection = { ...updatedConnection(old, body), updatedAt: now };
    const { client_secret: secret } = body;
    const sealedClientSecret =
      secret === undefined ? null : deps.box.seal(secret, clientSecretContext(old));
    await queries.updateConnection(tx, { ...connection, sealedClientSecret });
    if (domains !== undefined) {
      await queries.deleteDomains(tx, id, domains);
      const kept = old.domains.map(({ domain }) => domain);
      await assignDomains(
        tx,
        id,
        domains.filter((one) => !kept.includes(one)),
      );
    }
    const updated = orNotFound(await queries.findConnection(tx, id));
    const change = changeDetails(Object.keys(body), fieldsOf(old), fieldsOf(updated));
    await audit(tx, caller, { action: "SSO_CONNECTION_UPDATED", connection, now, change });
    return updated;
  });
}

/** Returns the fields of an SSO connection as a body of the API has them, for the audit log. */
function fieldsOf({ domains, newUserRole: role, newUserStoreIds: store_ids, ...rest }: Connection) {
  const newUsers = role === null ? null : { role, store_ids };
  return { ...rest, domains: domains.map(({ domain }) => domain), newUsers };
}

function orNotFound(connection: Connection | undefined): Connection {
  if (connection === undefined) throw new Problem("not_found");
  return connection;
}

/** Returns an error unless the body names a domain of the SSO connection. */
export function proofErrors({ domains }: Connection, domain: string | undefined): RuleErrors {
  const isOwn = domain !== undefined && domains.some((one) => one.domain === readDomain(domain));
  return {
    domain: domain === undefined || isOwn ? undefined : "is not a domain of the connection",
  };
}

/**
 * Looks up the TXT record of a domain and stores the time of the proof. If the TXT record does not exist, throws a 422
 * that names it. The proof stays until the domain is removed from the SSO connection.
 */
export async function proveDomain(
  deps: ConnectionDeps,
  caller: Caller,
  connection: Connection,
  text: string,
): Promise<Connection> {
  const domain = readDomain(text);
  const record = proofRecord(domain, connection);
  const found = await (deps.lookupTxt ?? systemTxt)(record.name);
  if (!found.includes(record.value))
    throw invalid({ domain: [`has no TXT record ${record.value} at ${record.name}`] });
  const now = deps.clock.now();
  const { id } = connection;
  return deps.db.transaction(async (tx) => {
    if (!(await queries.saveProof(tx, { id, domain, now }))) throw new Problem("not_found");
    const change = { fields: [domain] };
    await audit(tx, caller, { action: "SSO_DOMAIN_PROVED", connection, now, change });
    return orNotFound(await queries.findConnection(tx, id));
  });
}

export async function deleteConnection(
  deps: ConnectionDeps,
  caller: Caller,
  id: string,
): Promise<void> {
  const now = deps.clock.now();
  await deps.db.transaction(async (tx) => {
    const connection = await queries.holdConnection(tx, id);
    if (connection === undefined) throw new Problem("not_found");
    await queries.deleteConnection(tx, id);
    await audit(tx, caller, { action: "SSO_CONNECTION_DELETED", connection, now });
  });
}

function updatedConnection(old: Connection, body: ConnectionUpdate): Connection {
  return {
    ...old,
    issuer: body.issuer ?? old.issuer,
    clientId: body.client_id ?? old.clientId,
    passwordLogin: body.password_login ?? old.passwordLogin,
    trustEmail: body.trust_email ?? old.trustEmail,
    isActive: body.is_active ?? old.isActive,
    ...(body.new_users !== undefined && newUsersOf(body.new_users)),
  };
}

/**
 * Assigns email domains to an SSO connection. Throws a 422 for a domain of another SSO connection, because
 * `/auth/discover` returns only one SSO connection for a domain.
 */
async function assignDomains(tx: Tx, id: string, domains: readonly string[]): Promise<void> {
  const given = new Set(await queries.insertDomains(tx, id, domains));
  const taken = takenError(domains.filter((one) => !given.has(one)));
  if (taken !== undefined) throw invalid({ domains: [taken] });
}

function takenError(taken: readonly string[]): string | undefined {
  return taken.length === 0 ? undefined : `belong to another connection: ${taken.join(", ")}`;
}

async function audit(
  tx: Tx,
  { principal, requestContext }: Caller,
  written: {
    action: Extract<AuditAction, `SSO_CONNECTION_${string}` | "SSO_DOMAIN_PROVED">;
    connection: Pick<Connection, "id" | "companyId" | "issuer">;
    now: Date;
    change?: { readonly fields: readonly string[] };
  },
): Promise<void> {
  const { action, connection, now: at, change } = written;
  await recordAudit(tx, {
    at,
    action,
    actor: principal,
    requestContext,
    details: {
      connection_id: connection.id,
      connection_company_id: connection.companyId,
      issuer: connection.issuer,
      ...change,
    },
  });
}

/**
 * Matches a domain name of at least two labels. A single label is rejected, because no company owns a top-level domain.
 */
const DOMAIN_PATTERN =
  /^(?=.{1,253}$)([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{0,61}[a-z][a-z0-9-]*$/;

const isDomain = (text: string): boolean => DOMAIN_PATTERN.test(readDomain(text));

function readDomain(text: string): string {
  return emailDomain(`@${text.trim().toLowerCase()}`);
}

/** Returns the domains in ASCII form, sorted and without duplicates. */
function readDomains(texts: readonly string[]): string[] {
  return [...new Set(texts.map(readDomain))].toSorted();
}

/** Validates each domain. An undefined element is skipped: it is malformed, and the schema has already reported it. */
function domainErrors(texts: readonly (string | undefined)[]): RuleErrors {
  return Object.fromEntries(
    texts.flatMap((one, index) =>
      one === undefined || isDomain(one)
        ? []
        : [[`domains.${index}`, "must be a domain such as example.com"]],
    ),
  );
}

interface IssuerRules {
  readonly config: { readonly egress: EgressPolicy };
  readonly lookup?: Lookup | undefined;
}

/**
 * Validates the issuer: an https URL without query or fragment (OpenID Connect Discovery 1.0, 2) that does not lead
 * to a private address (contract 7).
 */
async function issuerError(
  { config, lookup }: IssuerRules,
  issuer: string,
): Promise<string | undefined> {
  if (issuer.includes("?")) return "must not contain a query";
  const check = await checkNewWebhookUrl(issuer, config.egress, { lookup });
  return check.kind === "refused" ? check.reason : undefined;
}
