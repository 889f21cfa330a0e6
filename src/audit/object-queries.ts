import { and, eq, inArray, or, type SQL, sql } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";

import type { DbOrTx } from "../../db/client.ts";
import { anyOf } from "../../db/conditions.ts";
import { companies, plans, stores, users } from "../../db/schema/companies.ts";
import { reviewSites } from "../../db/schema/providers.ts";
import { oauthClients } from "../../db/schema/tokens.ts";
import { webhookSubscriptions } from "../../db/schema/webhooks.ts";

interface Source {
  readonly table: PgTable;
  readonly id: PgColumn;
  readonly name: PgColumn;
  /** The company that the record belongs to; null for records of the platform. */
  readonly owner: PgColumn | null;
}

const USERS: Source = { table: users, id: users.id, name: users.name, owner: users.companyId };
const COMPANIES: Source = {
  table: companies,
  id: companies.id,
  name: companies.name,
  owner: companies.id,
};

/**
 * The fields of `details` that identify the object of an audit action, with the table that has its name. If a row has
 * several of them, the first one counts: a created user, for example, is more specific than the user's company.
 */
const SOURCES: Readonly<Record<string, Source>> = {
  subscription_id: {
    table: webhookSubscriptions,
    id: webhookSubscriptions.id,
    name: webhookSubscriptions.label,
    owner: webhookSubscriptions.partnerId,
  },
  user_id: USERS,
  service_id: USERS,
  client_id: {
    table: oauthClients,
    id: oauthClients.clientId,
    name: oauthClients.name,
    owner: oauthClients.companyId,
  },
  store_id: { table: stores, id: stores.id, name: stores.name, owner: stores.partnerId },
  plan_id: { table: plans, id: plans.id, name: plans.name, owner: null },
  provider: { table: reviewSites, id: reviewSites.slug, name: reviewSites.name, owner: null },
  connection_company_id: COMPANIES,
  partner_id: COMPANIES,
  company_id: COMPANIES,
};

interface Row {
  readonly action: string;
  readonly details: Readonly<Record<string, unknown>>;
}

interface FoundObject {
  readonly name: string | null;
  /** The company that the object belongs to, and the partner of this company, as far as they are known. */
  readonly ownerIds: readonly unknown[];
}

/**
 * Returns the objects of audit rows, in their order. With `tenantId`, only objects of this partner and its accounts are
 * found.
 */
export async function objectsOf(
  db: DbOrTx,
  rows: readonly Row[],
  tenantId?: number,
): Promise<FoundObject[]> {
  const objects = rows.map(objectOf);
  const known = objects.filter((one) => one !== undefined);
  const found = new Map<string, ReadonlyMap<string, FoundObject>>();
  for (const [field, own] of Map.groupBy(known, (one) => one.field)) {
    const source = SOURCES[field];
    if (source === undefined) continue;
    const read = await objectsIn(db, source, { ids: own, tenantId });
    const byId = read.map(
      ({ id, name, ...owners }) =>
        [String(id), { name: String(name), ownerIds: Object.values(owners) }] as const,
    );
    found.set(field, new Map(byId));
  }
  return rows.map(({ action, details }, i) => {
    const object = objects[i];
    const one = object && found.get(object.field)?.get(String(object.id));
    if (one !== undefined) return one;
    return { name: action === "AUTHZ_DENIED" ? null : nameInDetails(details), ownerIds: [] };
  });
}

interface AuditedObject {
  readonly field: string;
  readonly id: number | string;
}

/** Returns the object of an audit row. A denied request has none, because its object may belong to another tenant. */
function objectOf({ action, details }: Row): AuditedObject | undefined {
  if (action === "AUTHZ_DENIED") return undefined;
  for (const [field, { id: column }] of Object.entries(SOURCES)) {
    const id = details[field];
    const isNumeric = column.dataType === "number";
    if (typeof id === "number" && isNumeric) return { field, id };
    if (typeof id === "string" && !isNumeric) return { field, id };
  }
  return undefined;
}

/** Returns the name that the details of a deletion contain, or the slug of a review site. */
function nameInDetails({ name, provider }: Row["details"]): string | null {
  if (typeof name === "string") return name;
  return typeof provider === "string" ? provider : null;
}

interface WantedObjects {
  readonly ids: readonly AuditedObject[];
  /** The partner whose objects are read; undefined for those of all partners. */
  readonly tenantId: number | undefined;
}

function objectsIn(
  db: DbOrTx,
  { table, id, name, owner }: Source,
  { ids, tenantId }: WantedObjects,
) {
  // Named in full, because a column is written without its table otherwise, and would be one of the subquery's.
  const ownerId = owner === null ? sql`null` : sql`${table}.${sql.identifier(owner.name)}`;
  const isTheirs = tenantId === undefined ? undefined : isOfTenant(db, owner, tenantId);
  return db
    .select({
      id,
      name,
      ownerId,
      partnerId: sql`(select owners.partner_id from companies owners where owners.id = ${ownerId})`,
    })
    .from(table)
    .where(and(anyOf(id, new Set(ids.map((one) => one.id))), isTheirs));
}

function isOfTenant(db: DbOrTx, owner: PgColumn | null, tenantId: number): SQL {
  if (owner === null) return sql`false`;
  const isOwn = or(eq(companies.id, tenantId), eq(companies.partnerId, tenantId));
  return inArray(owner, db.select({ id: companies.id }).from(companies).where(isOwn));
}
