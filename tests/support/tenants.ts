import { ulid } from "ulid";

import {
  insertCompany,
  insertPlan,
  insertStore,
  insertUser,
} from "../../scripts/demo/seed/rows.ts";
import type { DbOrTx } from "../../db/client.ts";
import { ssoConnections, ssoDomains } from "../../db/schema/sign-in.ts";
import type { Role } from "../../src/http/principal.ts";
import { createPasswords } from "../../src/lib/password.ts";
import { PASSWORD } from "./api.ts";

export interface TestUser {
  readonly id: number;
  readonly email: string;
  readonly role: Role;
  readonly companyId: number;
}

export interface TestAccount {
  readonly id: number;
  readonly partnerId: number;
  readonly storeIds: readonly number[];
  readonly owner: TestUser;
  readonly user: TestUser;
  /** A user with access to the first store only. */
  readonly locationUser: TestUser;
}

export interface TestPartner {
  readonly id: number;
  readonly owner: TestUser;
  readonly admin: TestUser;
  readonly accounts: readonly [TestAccount, TestAccount];
}

export interface Tenants {
  readonly superAdmin: TestUser;
  readonly partners: readonly [TestPartner, TestPartner];
}

const at = new Date("2026-06-01T12:00:00Z");
let hash: Promise<string> | undefined;

/** Hashes PASSWORD once per test file, because a hash takes long. */
function passwordHash(): Promise<string> {
  return (hash ??= createPasswords().hash(PASSWORD));
}

export async function addUser(
  db: DbOrTx,
  user: {
    companyId: number;
    role: Role;
    email: string;
    storeIds?: readonly number[];
    isActive?: boolean;
    passwordHash?: string | null;
  },
): Promise<TestUser> {
  const { companyId, role, email } = user;
  const ready = {
    passwordHash: await passwordHash(),
    name: `Name of ${email}`,
    createdAt: at,
    ...user,
  };
  return { id: await insertUser(db, ready), email, role, companyId };
}

/** Inserts a platform with two partners, each with two accounts of two stores, and users of every role. */
export async function addTenants(db: DbOrTx): Promise<Tenants> {
  const platform = await insertCompany(db, { type: "platform", name: "Platform", createdAt: at });
  const planId = await insertPlan(db, { name: "Growth", features: ["reviews", "flags"] });
  return {
    superAdmin: await addUser(db, {
      companyId: platform,
      role: "super_admin",
      email: "root@platform.test",
    }),
    partners: [await addPartner(db, "p1", planId), await addPartner(db, "p2", planId)],
  };
}

/** Inserts a partner with two accounts of two stores, and users of every role. */
export async function addPartner(db: DbOrTx, name: string, planId: number): Promise<TestPartner> {
  const id = await insertCompany(db, {
    type: "partner",
    name,
    primaryColor: "#112233",
    whiteLabel: { brandName: `Brand ${name}`, domain: `${name}.test` },
    createdAt: at,
  });
  return {
    id,
    owner: await addUser(db, { companyId: id, role: "partner_owner", email: `owner@${name}.test` }),
    admin: await addUser(db, { companyId: id, role: "partner_admin", email: `admin@${name}.test` }),
    accounts: [
      await addAccount(db, { partnerId: id, planId, name: `${name}-a1` }),
      await addAccount(db, { partnerId: id, planId, name: `${name}-a2` }),
    ],
  };
}

async function addAccount(
  db: DbOrTx,
  { partnerId, planId, name }: { partnerId: number; planId: number; name: string },
): Promise<TestAccount> {
  const id = await insertCompany(db, { type: "account", name, partnerId, planId, createdAt: at });
  const east = await insertStore(db, { accountId: id, partnerId, name: `${name} east` });
  const west = await insertStore(db, { accountId: id, partnerId, name: `${name} west` });
  const add = (role: Role, email: string, storeIds: readonly number[] = []) =>
    addUser(db, { companyId: id, role, email: `${email}@${name}.test`, storeIds });
  return {
    id,
    partnerId,
    storeIds: [east, west],
    owner: await add("account_owner", "owner"),
    user: await add("account_user", "user"),
    locationUser: await add("location_user", "store", [east]),
  };
}

/** Inserts an SSO connection that is complete enough for email discovery; no sign-in works with it. */
export async function addSsoConnection(
  db: DbOrTx,
  connection: {
    companyId: number;
    domains: readonly string[];
    passwordLogin?: boolean;
    isActive?: boolean;
  },
): Promise<string> {
  const { companyId, domains, passwordLogin = true, isActive = true } = connection;
  const id = ulid();
  await db.insert(ssoConnections).values({
    id,
    companyId,
    issuer: "https://idp.example",
    clientId: "reviewrelay",
    sealedClientSecret: "sealed",
    passwordLogin,
    isActive,
    createdAt: at,
    updatedAt: at,
  });
  await db.insert(ssoDomains).values(domains.map((domain) => ({ domain, connectionId: id })));
  return id;
}
