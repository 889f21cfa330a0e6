import { ulid } from "ulid";

import type { Db } from "../../db/client.ts";
import { recordAudit } from "../auth/queries/audit.ts";
import { endAccess } from "../auth/actions/sessions.ts";
import { issueToken } from "../auth/actions/open-session.ts";
import { claimsMatch, type KeyRing } from "../auth/key-ring.ts";
import { deleteToken, findBearers } from "../auth/queries/tokens.ts";
import { holdUser } from "../auth/queries/users.ts";
import type { ValidParts } from "../http/fields.ts";
import { findRow, type Page } from "../http/list.ts";
import type { Caller } from "../http/principal.ts";
import type { RuleErrors } from "../http/rules.ts";
import { addMs, type Clock, isoInstant, parseInstant } from "../lib/clock.ts";
import { Problem } from "../lib/problem.ts";
import type {
  IntrospectAnswer,
  NewService,
  NewServiceToken,
  Service,
  ServiceToken,
  ServiceUpdate,
} from "./model.ts";
import * as queries from "./queries.ts";
import type { Static } from "@sinclair/typebox";

export interface ServiceDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly keys: KeyRing;
}

const DAY_MS = 86_400_000;
/** The longest life of a service's token in days. */
const MAX_TOKEN_DAYS = 400;
/** The most tokens that a service has at the same time: enough for several places and an overlapping rotation. */
const TOKENS_PER_SERVICE = 20;

export function findService(
  { db }: Pick<ServiceDeps, "db">,
  id: string | undefined,
): Promise<Service> {
  return findRow(id, (rowId) => queries.serviceById(db, rowId));
}

/** Loads the service of a token, if it still has the scope. */
export async function actingService(
  { db }: Pick<ServiceDeps, "db">,
  { userId }: Caller["principal"],
  scope: string,
): Promise<Service> {
  const service = await queries.serviceById(db, userId);
  if (service === undefined) throw new Problem("unauthenticated");
  if (!service.scopes.includes(scope)) throw new Problem("insufficient_scope");
  return service;
}

export async function serviceErrors(
  { db }: Pick<ServiceDeps, "db">,
  { partner_ids: partnerIds }: ValidParts<ServiceUpdate>,
): Promise<RuleErrors> {
  const given = (partnerIds ?? []).flatMap((one) => one ?? []);
  const unknown = given.length === 0 ? [] : await queries.unknownPartners(db, given);
  const isFine = unknown.length === 0;
  return { partner_ids: isFine ? undefined : `are not all partners: ${unknown.join(", ")}` };
}

/** Creates a service, which belongs to the company of its operator, the platform. */
export async function createService(
  { db, clock }: Pick<ServiceDeps, "db" | "clock">,
  { principal, requestContext }: Caller,
  body: NewService,
): Promise<Service> {
  const now = clock.now();
  const one = {
    name: body.name,
    scopes: body.scopes,
    partnerIds: body.partner_ids ?? null,
    companyId: principal.companyId,
    key: ulid(now.getTime()).toLowerCase(),
    createdAt: now,
  };
  return db.transaction(async (tx) => {
    const id = await queries.insertService(tx, one);
    const details = { service_id: id };
    const audit = { at: now, actor: principal, requestContext };
    await recordAudit(tx, { ...audit, action: "SERVICE_CREATED", details });
    return orNotFound(await queries.serviceById(tx, id));
  });
}

function orNotFound<T>(row: T | undefined): T {
  if (row === undefined) throw new Problem("not_found");
  return row;
}

/**
 * Changes a service. From the next request on its tokens are limited to the new scopes and partners; a new scope needs a
 * new token.
 */
export async function updateService(
  { db, clock }: Pick<ServiceDeps, "db" | "clock">,
  { principal, requestContext }: Caller,
  { id }: Service,
  body: ServiceUpdate,
): Promise<Service> {
  const now = clock.now();
  return db.transaction(async (tx) => {
    await holdUser(tx, id);
    const old = orNotFound(await queries.serviceById(tx, id));
    const fields = Object.keys(body);
    if (fields.length === 0) return old;
    await queries.updateService(tx, id, {
      name: body.name ?? old.name,
      scopes: body.scopes ?? old.scopes,
      partnerIds: body.partner_ids === undefined ? old.partnerIds : body.partner_ids,
      updatedAt: now,
    });
    const details = { service_id: id, fields };
    const audit = { at: now, actor: principal, requestContext };
    await recordAudit(tx, { ...audit, action: "SERVICE_UPDATED", details });
    return orNotFound(await queries.serviceById(tx, id));
  });
}

/** Deletes a service: its tokens end at once. Its user stays without access, for the rows of the audit log. */
export async function deleteService(
  { db, clock }: Pick<ServiceDeps, "db" | "clock">,
  { principal, requestContext }: Caller,
  { id, name }: Service,
): Promise<void> {
  const now = clock.now();
  await db.transaction(async (tx) => {
    if (!(await queries.endService(tx, id, now))) throw new Problem("not_found");
    const revoked = await endAccess(tx, [id], now);
    const details = { service_id: id, name, revoked };
    const audit = { at: now, actor: principal, requestContext };
    await recordAudit(tx, { ...audit, action: "SERVICE_DELETED", details });
  });
}

export function tokenErrors(
  { clock }: Pick<ServiceDeps, "clock">,
  { expires_at: text }: ValidParts<NewServiceToken>,
): RuleErrors {
  const now = clock.now();
  const end = parseInstant(text);
  const isFine = end === undefined || (end > now && end <= addMs(now, MAX_TOKEN_DAYS * DAY_MS));
  return {
    expires_at: isFine ? undefined : `must lie in the future, at most ${MAX_TOKEN_DAYS} days ahead`,
  };
}

/** Issues a token to a service. Earlier tokens stay valid, so that they can be replaced without a gap. */
export async function issueServiceToken(
  { db, clock, keys }: ServiceDeps,
  { principal, requestContext }: Caller,
  { id: userId }: Service,
  { name, expires_at: end }: NewServiceToken,
): Promise<ServiceToken & { readonly accessToken: string }> {
  const now = clock.now();
  const expiresAt = parseInstant(end) ?? now;
  return db.transaction(async (tx) => {
    await holdUser(tx, userId);
    const service = orNotFound(await queries.serviceById(tx, userId));
    if ((await queries.countTokens(tx, userId, now)) >= TOKENS_PER_SERVICE)
      throw new Problem("limit_reached");
    const ttlS = (expiresAt.getTime() - now.getTime()) / 1000;
    const none = { familyId: null, clientId: null, impersonatorId: null };
    const scope = service.scopes.join(" ");
    const grant = { ...none, kind: "service", userId, scope, ttlS, now, name } as const;
    const issued = await issueToken(tx, keys, grant);
    const details = { kind: "service", jti: issued.jti, service_id: userId };
    const audit = { at: now, actor: principal, requestContext };
    await recordAudit(tx, { ...audit, action: "TOKEN_ISSUED", details });
    const { token: accessToken, jti: id } = issued;
    return { id, name, createdAt: now, expiresAt, lastUsedAt: null, accessToken };
  });
}

export function listServiceTokens(
  { db, clock }: Pick<ServiceDeps, "db" | "clock">,
  { id }: Service,
  page: Page,
): Promise<ServiceToken[]> {
  return queries.tokensOf(db, id, { now: clock.now(), page });
}

/** Revokes a token of a service at once. */
export async function revokeServiceToken(
  { db, clock }: Pick<ServiceDeps, "db" | "clock">,
  { principal, requestContext }: Caller,
  { id }: Service,
  jti: string,
): Promise<void> {
  const at = clock.now();
  await db.transaction(async (tx) => {
    if (!(await queries.hasToken(tx, id, jti)) || !(await deleteToken(tx, jti)))
      throw new Problem("not_found");
    const details = { kind: "service", jti, service_id: id };
    await recordAudit(tx, {
      at,
      action: "TOKEN_REVOKED",
      actor: principal,
      requestContext,
      details,
    });
  });
}

/** Tells a service about any token of ours (like RFC 7662): whose it is, and what it may do now. */
export async function introspect(
  { db, clock, keys }: ServiceDeps,
  token: string,
): Promise<Static<typeof IntrospectAnswer>> {
  const claims = await keys.verify("at+jwt", token);
  const row = claims && (await findBearers(db, [claims.jti])).get(claims.jti);
  const isEnded = row?.expiresAt != null && row.expiresAt <= clock.now();
  if (claims === undefined || row === undefined || isEnded || !claimsMatch(claims, row))
    return { active: false };
  return {
    active: true,
    kind: row.kind,
    user_id: row.userId,
    role: row.role,
    company_id: row.companyId,
    partner_id: row.companyType === "partner" ? row.companyId : row.companyPartnerId,
    account_id: row.companyType === "account" ? row.companyId : null,
    store_ids: row.storeIds === null ? null : [...row.storeIds],
    impersonator_id: row.impersonatorId,
    client_id: row.clientId,
    scope: row.scope,
    expires_at: row.expiresAt === null ? null : isoInstant(row.expiresAt),
  };
}
