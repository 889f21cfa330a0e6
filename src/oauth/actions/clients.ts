import { randomUUID } from "node:crypto";

import type { Db, Tx } from "../../../db/client.ts";
import { changeDetails } from "../../audit/changes.ts";
import { recordAudit } from "../../audit/queries.ts";
import type { AuditAction } from "../../audit/model.ts";
import { recordAccessDenied, refuseExcess } from "../../auth/access/access-denied.ts";
import {
  type Authority,
  authorityOf,
  excessOf,
  SERVICE_AUTHORITY,
} from "../../auth/access/authority.ts";
import { creating } from "../../auth/keyed-requests.ts";
import { holdTenant } from "../../auth/user-queries.ts";
import type { Page } from "../../http/list.ts";
import type { Caller } from "../../http/principal.ts";
import { toFieldErrors } from "../../http/rules.ts";
import type { Clock } from "../../lib/clock.ts";
import { invalid, Problem } from "../../lib/problem.ts";
import { hashSecret, newSecret } from "../../lib/secrets.ts";
import { clientErrors } from "../redirect-uri.ts";
import {
  CLIENT_ID_PATTERN,
  type ClientChanges,
  DEFAULT_GRANTS,
  type NewClientBody,
  type OAuthClient,
} from "../model.ts";
import * as queries from "../queries.ts";

export interface ClientDeps {
  readonly db: Db;
  readonly clock: Clock;
}

interface ClientAdministrator extends Caller {
  /**
   * True if the caller administers the OAuth clients of every tenant, false if only those of the caller's own tenant.
   */
  readonly isPlatform: boolean;
}

export interface ClientWithSecret {
  readonly client: OAuthClient;
  readonly secret: string | null;
}

export function listClients(
  { db }: ClientDeps,
  { principal, isPlatform }: ClientAdministrator,
  page: Page,
): Promise<OAuthClient[]> {
  const tenantId = isPlatform ? undefined : principal.companyId;
  const { thirdParty } = authorityOf(principal);
  return queries.clientsOf(db, { tenantId, scopes: principal.scopes, thirdParty }, page);
}

/**
 * Returns the sort key of an OAuth client for the list cursor, as `<created at in ms>.<client id>`. `clientsOf`
 * parses this key.
 */
export function clientKey({ createdAt, clientId }: OAuthClient): string {
  return `${createdAt.getTime()}.${clientId}`;
}

const CLIENT_ID = new RegExp(CLIENT_ID_PATTERN);
export const isClientKey = (key: string): boolean =>
  /^\d{1,15}\./.test(key) && CLIENT_ID.test(key.slice(key.indexOf(".") + 1));

/**
 * Loads an OAuth client for its administrator. Throws 404 if no client has the id. Throws 403 and writes an
 * AUTHZ_DENIED row if the client belongs to another tenant (contract 2.6), or if the caller lacks the authority that
 * `authorityToSee` or `authorityOfClient` requires for the `purpose` (contract 3.9).
 */
export async function findOwnClient(
  deps: ClientDeps,
  { principal, requestContext, isPlatform }: ClientAdministrator,
  { clientId, purpose }: { clientId: string; purpose: "see" | "change" },
): Promise<OAuthClient> {
  const client = CLIENT_ID.test(clientId) ? await queries.findClient(deps.db, clientId) : undefined;
  if (client === undefined) throw new Problem("not_found");
  const details = { client_id: clientId };
  if (!isPlatform && client.companyId !== principal.companyId) {
    const reason = "foreign_record";
    await recordAccessDenied(deps, principal, { requestContext, details: { ...details, reason } });
    throw new Problem("forbidden");
  }
  const measured = purpose === "see" ? authorityToSee(client) : authorityOfClient(client);
  await refuseExcess(deps, { principal, requestContext }, measured, details);
  return client;
}

/** Creates an OAuth client. Without `scopes` in the body, the client gets the scopes of the caller's token. */
export async function createClient(
  deps: ClientDeps,
  caller: ClientAdministrator,
  body: NewClientBody,
): Promise<ClientWithSecret> {
  const { principal, isPlatform } = caller;
  const now = deps.clock.now();
  const confidential = body.confidential ?? true;
  const secret = confidential ? newSecret() : null;
  const client: OAuthClient = {
    clientId: randomUUID(),
    companyId: isPlatform ? null : principal.companyId,
    name: body.name,
    secretHash: secret === null ? null : hashSecret(secret),
    confidential,
    firstParty: body.first_party ?? false,
    redirectUris: body.redirect_uris ?? [],
    scopes: body.scopes ?? [...principal.scopes],
    grantTypes: body.grant_types ?? [...DEFAULT_GRANTS],
    requirePkce: body.require_pkce ?? true,
    createdBy: authorityOf(principal).thirdParty,
    createdAt: now,
    updatedAt: now,
  };
  const details = { scopes: client.scopes, first_party: client.firstParty };
  await refuseExcess(deps, caller, authorityOfClient(client), details);
  await creating(deps.db, caller, async (tx) => {
    await enforceClientLimit(tx, client);
    await queries.insertClient(tx, client);
    const more = client.requirePkce ? {} : { require_pkce: false };
    await audit(tx, caller, { action: "CLIENT_CREATED", clientId: client.clientId, at: now, more });
  });
  return { client, secret };
}

/** The highest number of OAuth clients that one partner may have (contract 3.7). */
const CLIENTS_PER_PARTNER = 50;

async function enforceClientLimit(tx: Tx, { companyId }: OAuthClient): Promise<void> {
  if (companyId === null) return;
  await holdTenant(tx, companyId);
  if ((await queries.countClients(tx, companyId)) >= CLIENTS_PER_PARTNER)
    throw new Problem("limit_reached");
}

export async function changeClient(
  deps: ClientDeps,
  caller: ClientAdministrator,
  { client, changes }: { client: OAuthClient; changes: ClientChanges },
): Promise<OAuthClient> {
  const now = deps.clock.now();
  const { clientId } = client;
  const details = { client_id: clientId, fields: Object.keys(changes) };
  await refuseExcess(deps, caller, authorityOfClient(changedClient(client, changes)), details);
  return deps.db.transaction(async (tx) => {
    const before = await holdOwnClient(tx, caller, clientId);
    // The changes are validated again after the client is locked, because another request may have changed the client
    // since it was loaded.
    const fieldErrors = toFieldErrors(
      clientErrors(changes, { isPlatform: caller.isPlatform, before }),
    );
    if (Object.keys(fieldErrors).length > 0) throw invalid(fieldErrors);
    const after = { ...changedClient(before, changes), updatedAt: now };
    denyExcess(caller, after);
    await queries.updateClient(tx, after);
    const more = changeDetails(details.fields, before, after);
    await audit(tx, caller, { action: "CLIENT_UPDATED", clientId, at: now, more });
    return after;
  });
}

function changedClient(before: OAuthClient, changes: ClientChanges): OAuthClient {
  return {
    ...before,
    name: changes.name ?? before.name,
    firstParty: changes.first_party ?? before.firstParty,
    redirectUris: changes.redirect_uris ?? before.redirectUris,
    scopes: changes.scopes ?? before.scopes,
    grantTypes: changes.grant_types ?? before.grantTypes,
    requirePkce: changes.require_pkce ?? before.requirePkce,
  };
}

/**
 * Locks the OAuth client and loads its current state. Throws an error without an audit row if the client may now do
 * more than the caller; `findOwnClient` checked this before the lock and wrote the row then.
 */
async function holdOwnClient(
  tx: Tx,
  caller: ClientAdministrator,
  clientId: string,
): Promise<OAuthClient> {
  const client = await queries.holdClient(tx, clientId);
  if (client === undefined) throw new Problem("not_found");
  denyExcess(caller, client);
  return client;
}

function denyExcess({ principal }: ClientAdministrator, client: OAuthClient): void {
  const excess = excessOf(principal, authorityOfClient(client));
  if (excess !== undefined) throw new Problem(excess);
}

/**
 * Replaces the secret of an OAuth client. The old secret stops working at the commit; tokens of the client stay
 * valid.
 */
export async function rotateClientSecret(
  { db, clock }: ClientDeps,
  caller: ClientAdministrator,
  clientId: string,
): Promise<ClientWithSecret> {
  const now = clock.now();
  const secret = newSecret();
  return db.transaction(async (tx) => {
    const before = await holdOwnClient(tx, caller, clientId);
    if (!before.confidential)
      throw invalid({ confidential: ["must be true: a public client has no secret"] });
    const client = { ...before, secretHash: hashSecret(secret), updatedAt: now };
    await queries.updateClient(tx, client);
    await audit(tx, caller, { action: "CLIENT_SECRET_ROTATED", clientId, at: now });
    return { client, secret };
  });
}

/**
 * Deletes an OAuth client in two transactions. After the first one commits, no token is issued to the client any more.
 * So the second one waits only for requests that were already in progress.
 */
export async function deleteClient(
  { db, clock }: ClientDeps,
  caller: ClientAdministrator,
  clientId: string,
): Promise<void> {
  const at = clock.now();
  await queries.endGrants(db, clientId);
  await db.transaction(async (tx) => {
    if (!(await queries.deleteClient(tx, clientId))) throw new Problem("not_found");
    await audit(tx, caller, { action: "CLIENT_DELETED", clientId, at });
  });
}

async function audit(
  tx: Tx,
  { principal: actor, requestContext }: ClientAdministrator,
  change: {
    action: AuditAction;
    clientId: string;
    at: Date;
    more?: Readonly<Record<string, unknown>>;
  },
): Promise<void> {
  const details = { client_id: change.clientId, ...change.more };
  await recordAudit(tx, { at: change.at, action: change.action, actor, requestContext, details });
}

/**
 * Returns the authority that a caller needs to create or change an OAuth client. A first-party client has the authority
 * of the service: it acts without the user's consent and may handle passwords. So only a super-admin in person may
 * create or change such a client.
 */
function authorityOfClient(client: OAuthClient): Authority {
  if (client.firstParty) return SERVICE_AUTHORITY;
  const { companyId: partnerId, scopes, createdBy } = client;
  return { partnerId, accountId: null, scopes, thirdParty: createdBy, inPerson: false };
}

/** Returns the authority that a caller needs to see an OAuth client. A tenant also sees its own first-party clients. */
function authorityToSee(client: OAuthClient): Authority {
  return { ...authorityOfClient(client), partnerId: client.companyId, inPerson: false };
}
