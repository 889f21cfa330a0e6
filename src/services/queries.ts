import { and, desc, eq } from "drizzle-orm";

import { anyOf, idBefore } from "../../db/conditions.ts";
import type { DbOrTx, Tx } from "../../db/client.ts";
import { ownId } from "../../db/own-ids.ts";
import { companies, services, users } from "../../db/schema/companies.ts";
import type { Page } from "../http/list.ts";
import type { Service } from "./model.ts";

const { id, scopes, partnerIds } = services;
const { name, createdAt, updatedAt } = users;

const selectServices = (db: DbOrTx) =>
  db
    .select({ id, name, scopes, partnerIds, createdAt, updatedAt })
    .from(services)
    .innerJoin(users, eq(users.id, id));

/** Lists services, newest first. */
export function servicesOf(db: DbOrTx, page: Page): Promise<Service[]> {
  return selectServices(db)
    .where(and(idBefore(id, page.after), users.isActive))
    .orderBy(desc(id))
    .limit(page.limit + 1);
}

export async function serviceById(db: DbOrTx, wanted: number): Promise<Service | undefined> {
  const [row] = await selectServices(db).where(and(eq(id, wanted), users.isActive));
  return row;
}

/** Locks a service until the commit, and reads it. */
export async function lockService(tx: Tx, wanted: number): Promise<Service | undefined> {
  const isOne = and(eq(users.id, wanted), eq(users.role, "service"));
  await tx.select({ id: users.id }).from(users).where(isOne).for("no key update");
  return serviceById(tx, wanted);
}

/** Reads the services with these ids that are not deleted. */
export function servicesById(db: DbOrTx, ids: readonly number[]): Promise<Service[]> {
  return selectServices(db).where(and(anyOf(id, ids), users.isActive));
}

/**
 * Inserts a service and the user that it acts as. Both rows have the same id, from `ownId`. The email of the user is an
 * address that no mail can reach (RFC 6761, 6.4).
 */
export async function insertService(
  tx: Tx,
  one: Pick<Service, "name" | "scopes" | "partnerIds" | "createdAt"> & {
    readonly companyId: number;
    readonly key: string;
  },
): Promise<number> {
  const { companyId, key, createdAt: at } = one;
  const serviceId = await ownId(tx, users);
  const user = {
    id: serviceId,
    companyId,
    name: one.name,
    role: "service",
    createdAt: at,
    updatedAt: at,
  } as const;
  const email = `${key}@service.invalid`;
  await tx
    .insert(users)
    .overridingSystemValue()
    .values({ ...user, email });
  await tx.insert(services).values({
    id: serviceId,
    scopes: [...one.scopes],
    partnerIds: one.partnerIds && [...one.partnerIds],
  });
  return serviceId;
}

export async function updateService(
  tx: Tx,
  wanted: number,
  one: Pick<Service, "name" | "scopes" | "partnerIds" | "updatedAt">,
): Promise<void> {
  await tx
    .update(users)
    .set({ name: one.name, updatedAt: one.updatedAt })
    .where(eq(users.id, wanted));
  const lists = { scopes: [...one.scopes], partnerIds: one.partnerIds && [...one.partnerIds] };
  await tx.update(services).set(lists).where(eq(id, wanted));
}

/** Deletes a service by deactivating its user. Returns false if it was already deleted. */
export async function endService(tx: Tx, wanted: number, now: Date): Promise<boolean> {
  const isOne = and(eq(users.id, wanted), eq(users.role, "service"), users.isActive);
  return (await tx.update(users).set({ isActive: false, updatedAt: now }).where(isOne)).count > 0;
}

/** Returns those of the ids that are not the id of a partner. */
export async function unknownPartners(db: DbOrTx, ids: readonly number[]): Promise<number[]> {
  const rows = await db
    .select({ id: companies.id })
    .from(companies)
    .where(and(anyOf(companies.id, ids), eq(companies.type, "partner")));
  const known = new Set(rows.map((row) => row.id));
  return ids.filter((one) => !known.has(one));
}
