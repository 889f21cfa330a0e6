// Creates the tenants of a run. It uses only tables and routes that every version has.
import { createHmac } from "node:crypto";

import type { RawDb } from "../../db/client.ts";
import { BASE_PATH } from "../../src/http/access.ts";
import { createPasswords } from "../../src/lib/password.ts";
import { newSecret } from "../../src/lib/secrets.ts";
import { createSecretBox } from "../../src/lib/secrets.ts";
import { providerSecretContext } from "../../src/intake/provider-model.ts";

interface Partner {
  readonly partnerId: number;
  readonly siteId: number;
}

export interface Tenant extends Partner {
  readonly host: string;
  readonly subscriptionId: string;
  /** The token of its first user. */
  readonly token: string;
}

export interface Place {
  readonly root: string;
  readonly db: RawDb;
  readonly masterKey: Uint8Array;
}

const PROVIDER = "live";
export const EVENTS_PATH = `${BASE_PATH}/providers/${PROVIDER}/events`;
export const PASSWORD = "correct horse battery staple";
const LOGINS_AT_ONCE = 8;
const DAY_MS = 86_400_000;

export type Sign = (body: string) => string;

/** Adds a provider and returns its signing function. */
export async function addProvider({
  db,
  masterKey,
}: Pick<Place, "db" | "masterKey">): Promise<Sign> {
  const secret = newSecret();
  const sealed = createSecretBox({ current: masterKey }).seal(
    secret,
    providerSecretContext(PROVIDER),
  );
  await db.sql`insert into review_sites (slug, name, sealed_secret) values (${PROVIDER}, 'Live', ${sealed})`;
  return (body) => `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
}

/** Adds partners, each with an account, a store and a site of the provider. */
export async function addPartners(db: RawDb, count: number): Promise<Partner[]> {
  return db.sql<Partner[]>`
    with plan as (
      insert into plans (name, features) values ('live ' || clock_timestamp(), '{}') returning id
    ), partners as (
      insert into companies (type, name, primary_color, created_at)
      select 'partner', 'Live', '#000000', now() from generate_series(1, ${count}::int) returning id
    ), accounts as (
      insert into companies (type, name, partner_id, plan_id, primary_color, created_at)
      select 'account', 'Live', partners.id, plan.id, '#000000', now() from partners, plan returning id, partner_id
    ), places as (
      insert into stores (account_id, partner_id, name) select id, partner_id, 'Live' from accounts returning *
    )
    insert into store_review_sites (store_id, review_site_id, account_id, partner_id, pull_connected, post_connected)
    select places.id, review_sites.id, account_id, partner_id, true, true
      from places, review_sites where slug = ${PROVIDER}
    returning partner_id as "partnerId", id as "siteId"`;
}

/** Adds a partner with a site, a user and a subscription for each URL. */
export async function addTenants(place: Place, urls: readonly string[]): Promise<Tenant[]> {
  const rows = await addPartners(place.db, urls.length);
  const tokens = await addUsers(
    place,
    rows.map(({ partnerId }) => partnerId),
  );
  return Promise.all(
    rows.map(async (row, n) => {
      const url = urls[n] ?? "";
      const token = tokens[n] ?? "";
      const body = { label: "Live", webhook_url: url, delivery_kind: "immediate" };
      const made = await call(place.root, "POST", "/partner/webhooks", { token, body });
      return { ...row, host: new URL(url).hostname, subscriptionId: String(made["id"]), token };
    }),
  );
}

let users = 0;

/** Inserts a user with the password `PASSWORD` for each partner. Returns the emails. */
export async function insertUsers(db: RawDb, partners: readonly number[]): Promise<string[]> {
  const hash = await createPasswords().hash(PASSWORD);
  const emails = partners.map(() => `user-${users++}@live.example`);
  await db.sql`
    insert into users (company_id, email, name, role, password_hash, created_at, updated_at)
    select company, email, 'Live', 'partner_admin', ${hash}, now(), now()
      from unnest(${[...partners]}::int[], ${emails}::text[]) as u(company, email)`;
  return emails;
}

/** Adds a user for each partner and returns their tokens. */
export async function addUsers(
  { db, root }: Pick<Place, "db" | "root">,
  partners: readonly number[],
): Promise<string[]> {
  const emails = await insertUsers(db, partners);
  const tokens: string[] = [];
  for (let from = 0; from < emails.length; from += LOGINS_AT_ONCE)
    tokens.push(
      ...(await Promise.all(
        emails.slice(from, from + LOGINS_AT_ONCE).map((email) => login(root, email)),
      )),
    );
  return tokens;
}

/** Adds a service that records actions for all partners, and returns its token. */
export async function addService({ db, root }: Pick<Place, "db" | "root">): Promise<string> {
  const [platform] = await db.sql<{ id: number }[]>`
    insert into companies (type, name, primary_color, created_at)
    values ('platform', 'Live', '#000000', now()) returning id`;
  const [email = ""] = await insertUsers(db, [platform?.id ?? 0]);
  await db.sql`update users set role = 'super_admin' where email = ${email}`;
  const token = await login(root, email);
  const body = { name: "Live", scopes: ["actions:write"] };
  const service = await call(root, "POST", "/admin/services", { token, body });
  const made = await call(root, "POST", `/admin/services/${String(service["id"])}/tokens`, {
    token,
    body: { name: "Live", expires_at: new Date(Date.now() + DAY_MS).toISOString() },
  });
  return String(made["access_token"]);
}

/** Signs the user in and returns the token. */
export async function login(root: string, email: string): Promise<string> {
  const body = { email, password: PASSWORD };
  return String((await call(root, "POST", "/login", { body }))["token"]);
}

async function call(
  root: string,
  method: string,
  path: string,
  { token, body }: { token?: string; body?: unknown },
): Promise<Record<string, unknown>> {
  const answer = await fetch(`${root}${BASE_PATH}${path}`, {
    method,
    headers: {
      "Content-Type": "application/json",
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return JSON.parse(text) as Record<string, unknown>;
}
