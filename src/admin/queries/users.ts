import type { DbOrTx, Tx } from "../../../db/client.ts";
import { violatesUnique } from "../../../db/errors.ts";
import type { Role } from "../../http/principal.ts";
import type { Page } from "../../http/list.ts";
import type { Employer, User, UserQuery } from "../model.ts";

const columns = (db: DbOrTx) => db.sql`
  u.id, u.email, u.name, u.role, u.company_id as "companyId", c.type as "companyType",
  c.name as "companyName", u.is_active as "isActive",
  u.password_hash is not null as "hasPassword",
  array(select m.store_id from user_stores m where m.user_id = u.id order by m.store_id) as "storeIds",
  (select k.locked_until from sign_in_locks k
    where k.email_digest = encode(sha256(convert_to(u.email, 'UTF8')), 'hex')) as "lockedUntil",
  u.created_at as "createdAt", u.updated_at as "updatedAt"`;

const source = (db: DbOrTx) => db.sql`users u join companies c on c.id = u.company_id`;

/** Newest first. */
export async function usersOf(
  db: DbOrTx,
  query: Omit<UserQuery, "limit" | "cursor">,
  page: Page,
): Promise<User[]> {
  const { sql } = db;
  const conditions = [
    query.company_id === undefined ? sql`` : sql`and u.company_id = ${query.company_id}`,
    query.role === undefined ? sql`` : sql`and u.role = ${query.role}`,
    query.email === undefined ? sql`` : sql`and u.email = ${query.email}`,
    query.is_active === undefined ? sql`` : sql`and u.is_active = ${query.is_active === "true"}`,
    page.after === undefined ? sql`` : sql`and u.id < ${Number(page.after)}::bigint`,
  ];
  return sql<User[]>`
    select ${columns(db)} from ${source(db)} where true ${conditions}
     order by u.id desc limit ${page.limit + 1}`;
}

export async function userById(db: DbOrTx, id: number): Promise<User | undefined> {
  const [row] = await db.sql<User[]>`
    select ${columns(db)} from ${source(db)} where u.id = ${id}`;
  return row;
}

export async function employerOf(db: DbOrTx, companyId: number): Promise<Employer | undefined> {
  const [row] = await db.sql<Employer[]>`
    select c.type, array(select s.id from stores s where s.account_id = c.id) as "storeIds"
      from companies c where c.id = ${companyId}`;
  return row;
}

export async function hasEmail(db: DbOrTx, email: string): Promise<boolean> {
  const rows = await db.sql`select 1 from users where email = ${email}`;
  return rows.length > 0;
}

export interface NewUserRow {
  readonly companyId: number;
  readonly email: string;
  readonly name: string;
  readonly role: Role;
  readonly passwordHash: string | null;
  readonly storeIds: readonly number[];
  readonly createdAt: Date;
}

export async function insertUser(tx: Tx, one: NewUserRow): Promise<number> {
  const [row] = await tx.sql<[{ id: number }]>`
    with made as (
      insert into users (company_id, email, name, role, password_hash, created_at, updated_at)
      values (${one.companyId}, ${one.email}, ${one.name}, ${one.role}, ${one.passwordHash}, ${one.createdAt},
              ${one.createdAt})
      returning id
    ), placed as (
      insert into user_stores (user_id, store_id)
      select made.id, s.store_id from made, unnest(${[...one.storeIds]}::int[]) as s(store_id)
    )
    select id from made`;
  return row.id;
}

export function isEmailTaken(error: unknown): boolean {
  return violatesUnique(error, "users_email_key");
}

/** The active super-admins, held in one order: of two who deactivate each other the second sees that it is the last. */
export async function holdSuperAdmins(tx: Tx): Promise<number[]> {
  const rows = await tx.sql<{ id: number }[]>`
    select id from users where role = 'super_admin' and is_active order by id for no key update`;
  return rows.map(({ id }) => id);
}

/** Waits for tokens that are being issued to the user. False if it is in that state already. */
export async function setUserActive(
  tx: Tx,
  id: number,
  isActive: boolean,
  now: Date,
): Promise<boolean> {
  const { count } = await tx.sql`
    update users set is_active = ${isActive}, updated_at = ${now}
     where id = ${id} and is_active <> ${isActive}`;
  return count > 0;
}
