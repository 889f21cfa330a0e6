import { randomBytes, randomUUID } from "node:crypto";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import type { RawDb, RawTx } from "../../../db/client.ts";
import type { Role } from "../../../src/http/principal.ts";
import { BASE_PATH } from "../../../src/http/access.ts";
import { createPasswords } from "../../../src/lib/password.ts";
import { newSecret } from "../../../src/lib/secrets.ts";
import type { SecretBox } from "../../../src/lib/secrets.ts";
import { makeCommandClient } from "../../../src/operate/setup/apply.ts";
import * as rows from "./rows.ts";
import { PARTNERS, PLANS, PROVIDERS } from "./tenants.ts";

/** The content of `DATA_DIR/demo.json`: everything that is needed to use the running demo. */
export interface Demo {
  base_url: string;
  server_root: string;
  users: DemoUser[];
  oauth_client: { client_id: string; client_secret: string };
  providers: { slug: string; secret: string }[];
  store_review_sites: DemoSite[];
  smtp: { url: string; mail_dir: string } | null;
}

interface DemoUser {
  email: string;
  password: string;
  role: Role;
  partner_id: number | null;
  account_id: number | null;
  /** The stores whose reviews the user may see. */
  store_ids: number[];
}

interface DemoSite {
  id: number;
  store_id: number;
  account_id: number;
  partner_id: number;
  provider: string;
}

interface SeedOptions {
  readonly db: RawDb;
  readonly box: SecretBox;
  readonly now: Date;
  readonly serverRoot: string;
  readonly dataDir: string;
  /** The folder of the demo's mails; undefined without an SMTP sink. */
  readonly smtp: { readonly url: string; readonly mailDir: string } | undefined;
}

/** The advisory lock that serialises concurrent seeds. */
const SEED_LOCK = "reviewrelay:seed";

/**
 * Fills an empty database with the demo and writes demo.json. Returns false and changes nothing if the database
 * contains data. The passwords exist only in demo.json. The file is written just before the commit: after a crash
 * between a commit and the file, nobody would know the users' passwords.
 */
export async function seedDemo(options: SeedOptions): Promise<boolean> {
  const { db, now, serverRoot, dataDir, smtp } = options;
  return db.transaction(async (tx) => {
    await tx.sql`select pg_advisory_xact_lock(hashtext(${SEED_LOCK}))`;
    const [present] = await tx.sql`select 1 from companies limit 1`;
    if (present !== undefined) return false;
    await makeCommandClient(tx, now);
    const tree = await insertTenants(tx, now);
    const providers = PROVIDERS.map((one) => ({ ...one, secret: newSecret() }));
    const demo: Demo = {
      base_url: serverRoot + BASE_PATH,
      server_root: serverRoot,
      users: await insertUsers(tx, tree.users, now),
      oauth_client: await insertClient(tx, now),
      providers: providers.map(({ slug, secret }) => ({ slug, secret })),
      store_review_sites: await connectStores(tx, options.box, { stores: tree.stores, providers }),
      smtp: smtp === undefined ? null : { url: smtp.url, mail_dir: smtp.mailDir },
    };
    writeDemo(dataDir, demo);
    return true;
  });
}

interface PlannedUser {
  readonly email: string;
  readonly name: string;
  readonly role: Role;
  readonly companyId: number;
  readonly partnerId: number | null;
  readonly accountId: number | null;
  readonly storeIds: readonly number[];
}

interface SeededStore {
  readonly storeId: number;
  readonly accountId: number;
  readonly partnerId: number;
}

async function insertTenants(tx: RawTx, now: Date) {
  const plans = new Map<string, number>();
  for (const plan of PLANS) plans.set(plan.name, await rows.insertPlan(tx, plan));
  const platform = { type: "platform", name: "ReviewRelay", createdAt: now } as const;
  const platformId = await rows.insertCompany(tx, platform);
  const tree = { users: [superAdmin(platformId)], stores: [] as SeededStore[] };
  for (const { accounts, domain, ...partner } of PARTNERS) {
    const partnerId = await rows.insertCompany(tx, { type: "partner", ...partner, createdAt: now });
    tree.users.push(...partnerUsers(partnerId, domain));
    for (const { stores, plan, domain: accountDomain, ...account } of accounts) {
      const planId = plans.get(plan);
      if (planId === undefined) throw new Error(`The demo has no plan ${plan}.`);
      const company = { type: "account", ...account, partnerId, planId, createdAt: now } as const;
      const accountId = await rows.insertCompany(tx, company);
      const storeIds: number[] = [];
      for (const name of stores)
        storeIds.push(await rows.insertStore(tx, { accountId, partnerId, name }));
      tree.stores.push(...storeIds.map((storeId) => ({ storeId, accountId, partnerId })));
      tree.users.push(...accountUsers({ accountId, partnerId, storeIds }, accountDomain));
    }
  }
  return tree;
}

function superAdmin(companyId: number): PlannedUser {
  const [email, name] = ["admin@reviewrelay.example", "Platform Admin"];
  const above = { partnerId: null, accountId: null, storeIds: [] };
  return { email, name, role: "super_admin", companyId, ...above };
}

function partnerUsers(partnerId: number, domain: string): PlannedUser[] {
  const common = { companyId: partnerId, partnerId, accountId: null, storeIds: [] };
  return [
    { email: `owner@${domain}`, name: "Pat Owner", role: "partner_owner", ...common },
    { email: `admin@${domain}`, name: "Robin Admin", role: "partner_admin", ...common },
  ];
}

function accountUsers(
  account: { accountId: number; partnerId: number; storeIds: readonly number[] },
  domain: string,
): PlannedUser[] {
  const common = { companyId: account.accountId, ...account };
  return [
    { email: `owner@${domain}`, name: "Kim Owner", role: "account_owner", ...common },
    { email: `user@${domain}`, name: "Alex User", role: "account_user", ...common },
    ...account.storeIds.map((storeId, i): PlannedUser => ({
      ...common,
      email: `store${i + 1}@${domain}`,
      name: `Store ${i + 1} User`,
      role: "location_user",
      storeIds: [storeId],
    })),
  ];
}

async function insertUsers(
  tx: RawTx,
  planned: readonly PlannedUser[],
  now: Date,
): Promise<DemoUser[]> {
  const hasher = createPasswords();
  const passwords = planned.map(() => randomBytes(12).toString("base64url"));
  const hashes = await Promise.all(passwords.map((password) => hasher.hash(password)));
  for (const [i, user] of planned.entries()) {
    const { companyId, email, name, role } = user;
    const storeIds = role === "location_user" ? user.storeIds : [];
    const passwordHash = hashes[i] ?? null;
    const row = { companyId, email, name, role, passwordHash, storeIds, createdAt: now };
    await rows.insertUser(tx, row);
  }
  return planned.map((user, i) => ({
    email: user.email,
    password: passwords[i] ?? "",
    role: user.role,
    partner_id: user.partnerId,
    account_id: user.accountId,
    store_ids: [...user.storeIds],
  }));
}

async function insertClient(tx: RawTx, now: Date): Promise<Demo["oauth_client"]> {
  const client = { clientId: randomUUID(), clientSecret: newSecret() };
  await rows.insertFirstPartyClient(tx, {
    ...client,
    name: "Demo first-party client",
    redirectUris: ["http://127.0.0.1:4000/callback"],
    scopes: ["*"],
    grantTypes: ["password", "refresh_token", "authorization_code"],
    createdAt: now,
  });
  return { client_id: client.clientId, client_secret: client.clientSecret };
}

/**
 * Connects every store with two sites: the first store with google and yelp, the second one with yelp and facebook, and
 * so on.
 */
async function connectStores(
  tx: RawTx,
  box: SecretBox,
  {
    stores,
    providers,
  }: {
    stores: readonly SeededStore[];
    providers: readonly { slug: string; name: string; secret: string }[];
  },
): Promise<DemoSite[]> {
  const sites: { slug: string; id: number }[] = [];
  for (const provider of providers)
    sites.push({ slug: provider.slug, id: await rows.insertReviewSite(tx, box, provider) });
  const connected: DemoSite[] = [];
  for (const [i, { storeId, accountId, partnerId }] of stores.entries()) {
    for (const offset of [0, 1]) {
      const site = sites[(i + offset) % sites.length];
      if (site === undefined) throw new Error("The demo has no providers.");
      const link = { storeId, reviewSiteId: site.id, accountId, partnerId };
      const id = await rows.insertStoreReviewSite(tx, link);
      const ids = { store_id: storeId, account_id: accountId, partner_id: partnerId };
      connected.push({ id, ...ids, provider: site.slug });
    }
  }
  return connected;
}

/** Writes demo.json atomically, readable only by its owner. */
function writeDemo(dataDir: string, demo: Demo): void {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const target = join(dataDir, "demo.json");
  const partial = `${target}.${process.pid}.partial`;
  writeFileSync(partial, `${JSON.stringify(demo, null, 2)}\n`, { mode: 0o600 });
  renameSync(partial, target);
}
