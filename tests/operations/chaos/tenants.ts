import type { RawDb } from "../../../db/client.ts";
import { createPasswords } from "../../../src/lib/password.ts";
import { newSecret } from "../../../src/lib/secrets.ts";
import type { SecretBox } from "../../../src/lib/secrets.ts";
import * as rows from "../../../scripts/demo/seed/rows.ts";
import type { Client } from "./client.ts";

export const PROVIDER = "google";
const PASSWORD = "correct horse battery staple";
const SITES = 2;

export interface Partner {
  readonly id: number;
  /** The owner's email and token. */
  readonly email: string;
  readonly token: string;
  /** Ids of the partner's store review sites. */
  readonly sites: readonly number[];
}

export interface Tenants {
  readonly partners: readonly Partner[];
  readonly providerSecret: string;
}

/** Adds partners with an account, two connected stores and a signed-in owner. */
export async function addTenants(
  { db, box, client }: { db: RawDb; box: SecretBox; client: Client },
  count: number,
): Promise<Tenants> {
  const providerSecret = newSecret();
  const provider = { slug: PROVIDER, name: "Google", secret: providerSecret };
  const reviewSiteId = await rows.insertReviewSite(db, box, provider);
  const planId = await rows.insertPlan(db, { name: "Growth", features: [] });
  const passwordHash = await createPasswords().hash(PASSWORD);
  const createdAt = new Date();
  const partners: Partner[] = [];
  for (let n = 1; n <= count; n++) {
    const name = `Partner ${n}`;
    const email = `owner${n}@partner.example`;
    const partnerId = await rows.insertCompany(db, { type: "partner", name, createdAt });
    const account = {
      type: "account",
      name: `Account ${n}`,
      partnerId,
      planId,
      createdAt,
    } as const;
    const accountId = await rows.insertCompany(db, account);
    const role = "partner_owner";
    await rows.insertUser(db, { companyId: partnerId, email, name, role, passwordHash, createdAt });
    const sites: number[] = [];
    for (let store = 1; store <= SITES; store++) {
      const storeId = await rows.insertStore(db, { accountId, partnerId, name: `Store ${store}` });
      sites.push(
        await rows.insertStoreReviewSite(db, { storeId, reviewSiteId, accountId, partnerId }),
      );
    }
    const body = { email, password: PASSWORD };
    const answer = await client.insist("POST", "/login", { body, want: 200 });
    partners.push({ id: partnerId, email, token: String(answer["token"]), sites });
  }
  return { partners, providerSecret };
}
