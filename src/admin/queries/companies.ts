import type { DbOrTx, Tx } from "../../../db/client.ts";
import { violatesUnique } from "../../../db/errors.ts";
import type { Page } from "../../http/list.ts";
import type { AccountQuery, Company, Named } from "../model.ts";

const columns = (db: DbOrTx) => db.sql`
  c.id, c.type, c.name, c.is_active as "isActive", c.primary_color as "primaryColor", c.logo_url as "logoUrl",
  c.created_at as "createdAt", c.brand_name as "brandName", c.white_label_domain as domain,
  c.white_label_enabled as "whiteLabelEnabled", c.partner_id as "partnerId", o.name as "partnerName", c.plan_id as "planId",
  l.name as "planName", coalesce(
    (select json_agg(json_build_object('id', s.id, 'name', s.name) order by s.id) from stores s where s.account_id = c.id),
    '[]') as stores`;

const source = (db: DbOrTx) => db.sql`
  companies c left join plans l on l.id = c.plan_id left join companies o on o.id = c.partner_id`;

/** Newest first. */
export async function companiesOf(
  db: DbOrTx,
  type: Company["type"],
  query: Pick<AccountQuery, "partner_id" | "is_active" | "name">,
  page: Page,
): Promise<Company[]> {
  const { sql } = db;
  const conditions = [
    query.partner_id === undefined ? sql`` : sql`and c.partner_id = ${query.partner_id}`,
    query.name === undefined ? sql`` : sql`and position(lower(${query.name}) in lower(c.name)) > 0`,
    query.is_active === undefined ? sql`` : sql`and c.is_active = ${query.is_active === "true"}`,
    page.after === undefined ? sql`` : sql`and c.id < ${Number(page.after)}::bigint`,
  ];
  return sql<Company[]>`
    select ${columns(db)} from ${source(db)}
     where c.type = ${type} ${conditions}
     order by c.id desc limit ${page.limit + 1}`;
}

export async function companyById(
  db: DbOrTx,
  type: Company["type"],
  id: number,
): Promise<Company | undefined> {
  const [row] = await db.sql<Company[]>`
    select ${columns(db)} from ${source(db)} where c.id = ${id} and c.type = ${type}`;
  return row;
}

export async function nameOfCompany(
  db: DbOrTx,
  id: number,
): Promise<(Named & { readonly type: string }) | undefined> {
  const [row] = await db.sql<(Named & { readonly type: string })[]>`
    select id, type, name from companies where id = ${id}`;
  return row;
}

export interface NewCompanyRow {
  readonly type: Company["type"];
  readonly name: string;
  readonly primaryColor: string;
  readonly logoUrl: string | null;
  readonly brandName: string | null;
  readonly domain: string | null;
  readonly partnerId: number | null;
  readonly planId: number | null;
  readonly createdAt: Date;
}

export async function insertCompany(tx: Tx, one: NewCompanyRow): Promise<number> {
  const [row] = await tx.sql<[{ id: number }]>`
    insert into companies (type, name, primary_color, logo_url, white_label_enabled, brand_name, white_label_domain,
                           partner_id, plan_id, created_at)
    values (${one.type}, ${one.name}, ${one.primaryColor}, ${one.logoUrl}, ${one.brandName !== null},
            ${one.brandName}, ${one.domain}, ${one.partnerId}, ${one.planId}, ${one.createdAt})
    returning id`;
  return row.id;
}

export function isDomainTaken(error: unknown): boolean {
  return violatesUnique(error, "companies_white_label_domain_key");
}

export async function hasDomain(db: DbOrTx, domain: string): Promise<boolean> {
  const rows = await db.sql`select 1 from companies where white_label_domain = ${domain}`;
  return rows.length > 0;
}

export async function insertStores(
  tx: Tx,
  account: { id: number; partnerId: number },
  names: readonly string[],
): Promise<void> {
  await tx.sql`
    insert into stores (account_id, partner_id, name)
    select ${account.id}, ${account.partnerId}, name
      from json_array_elements_text(${JSON.stringify(names)}::text::json) as n(name)`;
}

export async function plans(db: DbOrTx): Promise<Named[]> {
  return db.sql<Named[]>`select id, name from plans order by id`;
}

/** False if it is in that state already. */
export async function setCompanyActive(
  tx: Tx,
  { id, type }: Pick<Company, "id" | "type">,
  isActive: boolean,
): Promise<boolean> {
  const { count } = await tx.sql`
    update companies set is_active = ${isActive}
     where id = ${id} and type = ${type} and is_active <> ${isActive}`;
  return count > 0;
}

/** The company and, of a partner, its accounts: whoever stands below it stops with it. */
export async function treeOf(tx: Tx, id: number): Promise<number[]> {
  const rows = await tx.sql<{ id: number }[]>`
    select id from companies where id = ${id} or partner_id = ${id} order by id`;
  return rows.map((row) => row.id);
}
