import { randomUUID } from "node:crypto";

import type { Db } from "../../../db/client.ts";
import { recordAudit } from "../../audit/actions.ts";
import type { AuditAction } from "../../audit/model.ts";
import { recordDenial } from "../../auth/actions/record-denial.ts";
import type { Caller } from "../../http/principal.ts";
import { faultsOf } from "../../http/rules.ts";
import type { Page } from "../../http/list.ts";
import type { Clock } from "../../lib/clock.ts";
import { invalid, Problem } from "../../lib/problem.ts";
import { hashSecret, newSecret } from "../../lib/random-secret.ts";
import { clientFaults } from "../input.ts";
import type { ClientChanges, NewClientBody, OAuthClient } from "../model.ts";
import * as queries from "../queries/clients.ts";

export interface ClientDeps {
  readonly db: Db;
  readonly clock: Clock;
}

interface ClientAdministrator extends Caller {
  /** Whether the clients of every tenant are theirs to administrate, or only those of their own. */
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
  return queries.clientsOf(db, isPlatform ? undefined : principal.companyId, page);
}

/** The key of a client's place in the list, which `clientsOf` reads. */
export function clientKey({ createdAt, clientId }: OAuthClient): string {
  return `${createdAt.getTime()}.${clientId}`;
}

const UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
const CLIENT_ID = new RegExp(`^${UUID}$`);
const CLIENT_KEY = new RegExp(`^\\d{1,15}\\.${UUID}$`);
export const isClientKey = (key: string): boolean => CLIENT_KEY.test(key);

/** 404 where there is none, 403 and an AUTHZ_DENIED row where it is another tenant's (contract 2.6). */
export async function findOwnClient(
  deps: ClientDeps,
  { principal, call, isPlatform }: ClientAdministrator,
  clientId: string,
): Promise<OAuthClient> {
  const client = CLIENT_ID.test(clientId) ? await queries.findClient(deps.db, clientId) : undefined;
  if (client === undefined) throw new Problem("not_found");
  if (isPlatform || client.companyId === principal.companyId) return client;
  const details = { client_id: clientId, reason: "foreign_record" };
  await recordDenial(deps, principal, { call, details });
  throw new Problem("forbidden");
}

export async function createClient(
  { db, clock }: ClientDeps,
  caller: ClientAdministrator,
  body: NewClientBody,
): Promise<ClientWithSecret> {
  const now = clock.now();
  const confidential = body.confidential ?? true;
  const secret = confidential ? newSecret() : null;
  const client: OAuthClient = {
    clientId: randomUUID(),
    companyId: caller.isPlatform ? null : caller.principal.companyId,
    name: body.name,
    secretHash: secret === null ? null : hashSecret(secret),
    confidential,
    firstParty: body.first_party ?? false,
    redirectUris: body.redirect_uris ?? [],
    scopes: body.scopes ?? ["*"],
    grantTypes: body.grant_types ?? ["authorization_code", "refresh_token"],
    createdAt: now,
    updatedAt: now,
  };
  await db.transaction(async (tx) => {
    await queries.insertClient(tx, client);
    await audit(tx, caller, { action: "CLIENT_CREATED", clientId: client.clientId, at: now });
  });
  return { client, secret };
}

export async function changeClient(
  { db, clock }: ClientDeps,
  caller: ClientAdministrator,
  { clientId, changes }: { clientId: string; changes: ClientChanges },
): Promise<OAuthClient> {
  const now = clock.now();
  return db.transaction(async (tx) => {
    const before = await queries.holdClient(tx, clientId);
    if (before === undefined) throw new Problem("not_found");
    // Checked again with the row locked: a partner may keep what the client has now, not what it had before.
    const faults = faultsOf(clientFaults(changes, { isPlatform: caller.isPlatform, before }));
    if (Object.keys(faults).length > 0) throw invalid(faults);
    const client: OAuthClient = {
      ...before,
      name: changes.name ?? before.name,
      firstParty: changes.first_party ?? before.firstParty,
      redirectUris: changes.redirect_uris ?? before.redirectUris,
      scopes: changes.scopes ?? before.scopes,
      grantTypes: changes.grant_types ?? before.grantTypes,
      updatedAt: now,
    };
    await queries.updateClient(tx, client);
    const fields = Object.keys(changes);
    await audit(tx, caller, { action: "CLIENT_UPDATED", clientId, at: now, more: { fields } });
    return client;
  });
}

/** The old secret stops working with the commit; the client's tokens stay. */
export async function rotateClientSecret(
  { db, clock }: ClientDeps,
  caller: ClientAdministrator,
  clientId: string,
): Promise<ClientWithSecret> {
  const now = clock.now();
  const secret = newSecret();
  return db.transaction(async (tx) => {
    const before = await queries.holdClient(tx, clientId);
    if (before === undefined) throw new Problem("not_found");
    if (!before.confidential)
      throw invalid({ confidential: ["is false: a public client has no secret"] });
    const client = { ...before, secretHash: hashSecret(secret), updatedAt: now };
    await queries.updateClient(tx, client);
    await audit(tx, caller, { action: "CLIENT_SECRET_ROTATED", clientId, at: now });
    return { client, secret };
  });
}

/** Takes two commits: after the first no token is issued, so that the second waits only for those under way. */
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
  tx: Parameters<typeof recordAudit>[0],
  { principal: actor, call }: ClientAdministrator,
  change: {
    action: AuditAction;
    clientId: string;
    at: Date;
    more?: Readonly<Record<string, unknown>>;
  },
): Promise<void> {
  const details = { client_id: change.clientId, ...change.more };
  await recordAudit(tx, { at: change.at, action: change.action, actor, call, details });
}
