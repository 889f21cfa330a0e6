import { providerSecretContext } from "../../../src/intake/provider-model.ts";
import { hashSecret } from "../../../src/lib/secrets.ts";
import type { SecretBox } from "../../../src/lib/secrets.ts";
import type { Role } from "../../../src/http/principal.ts";
import type { DbOrTx } from "../../../db/client.ts";
import { companies, plans, stores, users, userStores } from "../../../db/schema/companies.ts";
import { oauthClients } from "../../../db/schema/tokens.ts";
import { reviewSites, storeReviewSites } from "../../../db/schema/providers.ts";

// Functions that insert single rows, for the demo data and for the tests.

export async function insertPlan(
  db: DbOrTx,
  plan: { name: string; features: string[] },
): Promise<number> {
  return idOf(await db.insert(plans).values(plan).returning({ id: plans.id }));
}

export interface NewCompany {
  readonly type: "platform" | "partner" | "account";
  readonly name: string;
  /** The partner above an account; absent for other companies. */
  readonly partnerId?: number;
  readonly planId?: number;
  readonly primaryColor?: string;
  readonly whiteLabel?: { readonly brandName: string; readonly domain: string };
  readonly createdAt: Date;
}

const DEFAULT_COLOR = "#1f6feb";

export async function insertCompany(db: DbOrTx, company: NewCompany): Promise<number> {
  const { whiteLabel, ...rest } = company;
  const values = {
    ...rest,
    primaryColor: company.primaryColor ?? DEFAULT_COLOR,
    whiteLabelEnabled: whiteLabel !== undefined,
    brandName: whiteLabel?.brandName ?? null,
    whiteLabelDomain: whiteLabel?.domain ?? null,
  };
  return idOf(await db.insert(companies).values(values).returning({ id: companies.id }));
}

export async function insertStore(
  db: DbOrTx,
  store: { accountId: number; partnerId: number; name: string },
): Promise<number> {
  return idOf(await db.insert(stores).values(store).returning({ id: stores.id }));
}

export interface NewUser {
  readonly companyId: number;
  readonly email: string;
  readonly name: string;
  readonly role: Role;
  readonly passwordHash: string | null;
  /** The stores of a location user; absent for other roles. */
  readonly storeIds?: readonly number[];
  readonly isActive?: boolean;
  readonly createdAt: Date;
}

export async function insertUser(db: DbOrTx, user: NewUser): Promise<number> {
  const { storeIds = [], ...rest } = user;
  const userId = idOf(
    await db
      .insert(users)
      .values({ ...rest, updatedAt: user.createdAt })
      .returning({ id: users.id }),
  );
  const links = storeIds.map((storeId) => ({ userId, storeId }));
  if (links.length > 0) await db.insert(userStores).values(links);
  return userId;
}

export async function insertReviewSite(
  db: DbOrTx,
  box: SecretBox,
  site: { slug: string; name: string; secret: string },
): Promise<number> {
  const { slug, name, secret } = site;
  const sealedSecret = box.seal(secret, providerSecretContext(slug));
  return idOf(
    await db
      .insert(reviewSites)
      .values({ slug, name, sealedSecret })
      .returning({ id: reviewSites.id }),
  );
}

/** Connects a store with a review site. Both axes are connected. */
export async function insertStoreReviewSite(
  db: DbOrTx,
  link: { storeId: number; reviewSiteId: number; accountId: number; partnerId: number },
): Promise<number> {
  return idOf(
    await db
      .insert(storeReviewSites)
      .values({ ...link, pullConnected: true, postConnected: true })
      .returning({ id: storeReviewSites.id }),
  );
}

export interface NewOauthClient {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly name: string;
  readonly redirectUris: string[];
  readonly scopes: string[];
  readonly grantTypes: string[];
  readonly createdAt: Date;
}

/** Inserts a confidential first-party client of the platform. */
export async function insertFirstPartyClient(db: DbOrTx, client: NewOauthClient): Promise<void> {
  const { clientSecret, ...rest } = client;
  await db.insert(oauthClients).values({
    ...rest,
    companyId: null,
    secretHash: hashSecret(clientSecret),
    confidential: true,
    firstParty: true,
    updatedAt: client.createdAt,
  });
}

function idOf(rows: { id: number }[]): number {
  const [row] = rows;
  if (row === undefined) throw new Error("The insert answered no row.");
  return row.id;
}
