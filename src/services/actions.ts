import { ulid } from "ulid";

import type { Db } from "../../db/client.ts";
import { changeDetails } from "../audit/changes.ts";
import { recordAudit } from "../audit/queries.ts";
import { endAccess } from "../auth/sign-in/sessions.ts";
import type { KeyRing } from "../auth/keys/key-ring.ts";
import { creating } from "../auth/keyed-requests.ts";
import type { ValidParts } from "../http/fields.ts";
import { findRow } from "../http/ids.ts";
import type { Caller } from "../http/principal.ts";
import type { RuleErrors } from "../http/rules.ts";
import type { Clock } from "../lib/clock.ts";
import { Problem } from "../lib/problem.ts";
import type { NewService, Service, ServiceUpdate } from "./model.ts";
import * as queries from "./queries.ts";

export interface ServiceDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly keys: KeyRing;
}

export function findService(
  { db }: Pick<ServiceDeps, "db">,
  id: string | undefined,
): Promise<Service> {
  return findRow(id, (rowId) => queries.serviceById(db, rowId));
}

export async function serviceErrors(
  { db }: Pick<ServiceDeps, "db">,
  { partner_ids: partnerIds }: ValidParts<ServiceUpdate>,
): Promise<RuleErrors> {
  const given = (partnerIds ?? []).flatMap((one) => one ?? []);
  const unknown = given.length === 0 ? [] : await queries.unknownPartners(db, given);
  const isFine = unknown.length === 0;
  return {
    partner_ids: isFine
      ? undefined
      : `must be ids of partners; these are not: ${unknown.join(", ")}`,
  };
}

/**
 * Creates a service of the platform. Its user belongs to the platform's company, which is that of the operator who
 * creates it.
 */
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
  return creating(db, { requestContext }, async (tx) => {
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
 * Changes a service. From the next request on, its tokens are limited to the new scopes and partners. An added scope
 * applies only to tokens that are issued afterwards.
 */
export async function updateService(
  { db, clock }: Pick<ServiceDeps, "db" | "clock">,
  { principal, requestContext }: Caller,
  { id }: Service,
  body: ServiceUpdate,
): Promise<Service> {
  const now = clock.now();
  return db.transaction(async (tx) => {
    const old = orNotFound(await queries.lockService(tx, id));
    const fields = Object.keys(body);
    if (fields.length === 0) return old;
    await queries.updateService(tx, id, {
      name: body.name ?? old.name,
      scopes: body.scopes ?? old.scopes,
      partnerIds: body.partner_ids === undefined ? old.partnerIds : body.partner_ids,
      updatedAt: now,
    });
    const changed = orNotFound(await queries.serviceById(tx, id));
    const details = { service_id: id, ...changeDetails(fields, old, changed) };
    const audit = { at: now, actor: principal, requestContext };
    await recordAudit(tx, { ...audit, action: "SERVICE_UPDATED", details });
    return changed;
  });
}

/** Deletes a service and revokes its tokens. Its user stays as an inactive row, because the audit log refers to it. */
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
