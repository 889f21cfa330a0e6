import { and, asc, eq, not, notExists, sql, type SQL, type SQLWrapper } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { neverNull } from "../../../db/never-null.ts";
import { prepared } from "../../../db/prepared.ts";
import { companies, plans, stores } from "../../../db/schema/companies.ts";
import { ssoConnections, ssoDomains } from "../../../db/schema/sso.ts";
import { users, userStores } from "../../../db/schema/users.ts";
import { isPartnerOfCompany, isUserActive, partners, tenantId } from "../../../db/tenancy.ts";
import { emailDomain } from "../email.ts";

type UserColumns = typeof users.$inferSelect;

/** Whether the user may sign in with a password, as far as the company's identity provider has a say. */
function takesPassword(db: DbOrTx, domain: string | SQLWrapper): SQL {
  const refusing = db
    .select({ domain: ssoDomains.domain })
    .from(ssoDomains)
    .innerJoin(ssoConnections, eq(ssoConnections.id, ssoDomains.connectionId))
    .where(
      and(
        eq(ssoDomains.domain, domain),
        eq(ssoConnections.companyId, users.companyId),
        ssoConnections.isActive,
        not(ssoConnections.passwordLogin),
      ),
    );
  return notExists(refusing);
}

const ofEmail = { email: users.email, domain: ssoDomains.domain };

const signInUsers = prepared(ofEmail, (db, { email, domain }) =>
  db
    .select({
      id: users.id,
      companyId: users.companyId,
      /** Null for users who sign in only through an identity provider: they have none, or their domain takes none. */
      passwordHash: sql<
        UserColumns["passwordHash"]
      >`case when ${takesPassword(db, domain)} then ${users.passwordHash} end`,
      partnerId: tenantId,
      isActive: isUserActive,
    })
    .from(users)
    .innerJoin(companies, eq(companies.id, users.companyId))
    .leftJoin(partners, isPartnerOfCompany)
    .where(eq(users.email, email)),
);

/** Who might sign in with an email. */
export type SignInUser = Awaited<ReturnType<typeof signInUsers>>[number];

export async function findSignInUser(db: DbOrTx, email: string): Promise<SignInUser | undefined> {
  const [row] = await signInUsers(db, { email, domain: emailDomain(email) });
  return row;
}

/**
 * Whether the password that was just verified is still the user's. The lock on the row orders a sign-in against a
 * password reset, as `holdUser` does: either the reset sees the token that the sign-in issues, or the sign-in sees the
 * new hash.
 */
export async function holdPassword(
  tx: Tx,
  { id, passwordHash }: { id: number; passwordHash: string },
): Promise<boolean> {
  const rows = await tx
    .select({ id: users.id })
    .from(users)
    .where(and(eq(users.id, id), eq(users.passwordHash, passwordHash), users.isActive))
    .for("no key update");
  return rows.length > 0;
}

/** Changes the form of a hash, unless the password has changed meanwhile. */
export async function replaceHash(
  db: DbOrTx,
  { userId, from, to }: { userId: number; from: string; to: string },
): Promise<void> {
  await db
    .update(users)
    .set({ passwordHash: to })
    .where(and(eq(users.id, userId), eq(users.passwordHash, from)));
}

/** White label is what a partner shows to its accounts: of the partner above, or of the company itself. */
const brands = alias(companies, "brands");
const isBrandOfCompany = eq(brands.id, sql`coalesce(${companies.partnerId}, ${companies.id})`);

/** Everything that the login object shows of a user. */
const contexts = prepared({ userId: users.id }, (db, { userId }) => {
  const ownStores = db
    .select({ id: userStores.storeId })
    .from(userStores)
    .where(eq(userStores.userId, users.id))
    .orderBy(userStores.storeId);
  const allStores = db
    .select({ id: stores.id })
    .from(stores)
    .where(eq(stores.accountId, companies.id))
    .orderBy(stores.id);
  const accounts = alias(companies, "accounts");
  const storesOfPartner = db
    .select({ count: sql`count(*)` })
    .from(accounts)
    .innerJoin(stores, eq(stores.accountId, accounts.id))
    .where(eq(accounts.partnerId, companies.id));
  return db
    .select({
      id: users.id,
      email: users.email,
      name: users.name,
      role: users.role,
      companyId: companies.id,
      companyType: companies.type,
      companyName: companies.name,
      partnerId: companies.partnerId,
      primaryColor: companies.primaryColor,
      logoUrl: companies.logoUrl,
      whiteLabelEnabled: brands.whiteLabelEnabled,
      brandName: brands.brandName,
      whiteLabelDomain: brands.whiteLabelDomain,
      planId: plans.id,
      planName: plans.name,
      planFeatures: plans.features,
      storeIds: sql<number[]>`
        case when ${eq(users.role, "location_user")} then array${ownStores} else array${allStores} end`,
      tenantStores: sql<number>`
        case ${companies.type} when 'partner' then ${storesOfPartner}
          when 'platform' then ${db.$count(stores)} else 0 end`,
    })
    .from(users)
    .innerJoin(companies, eq(companies.id, users.companyId))
    .innerJoin(brands, isBrandOfCompany)
    .leftJoin(plans, eq(plans.id, companies.planId))
    .where(eq(users.id, userId));
});

export type ContextRow = Awaited<ReturnType<typeof contexts>>[number];

export async function findContext(db: DbOrTx, userId: number): Promise<ContextRow | undefined> {
  const [row] = await contexts(db, { userId });
  return row;
}

const person = { id: users.id, email: users.email, name: users.name, companyId: users.companyId };
export type PersonRow = Pick<UserColumns, keyof typeof person>;

export async function findPerson(db: DbOrTx, userId: number): Promise<PersonRow | undefined> {
  const [row] = await db.select(person).from(users).where(eq(users.id, userId));
  return row;
}

/** Who is sent a code for a new password, and in whose name. */
const codeRecipients = prepared(ofEmail, (db, { email, domain }) =>
  db
    .select({
      userId: users.id,
      /** The tenant's own name, where white label is on. */
      brand: sql<typeof companies.$inferSelect.brandName>`
        case when ${brands.whiteLabelEnabled} then ${brands.brandName} end`,
    })
    .from(users)
    .innerJoin(companies, eq(companies.id, users.companyId))
    .leftJoin(partners, isPartnerOfCompany)
    .innerJoin(brands, isBrandOfCompany)
    .where(and(eq(users.email, email), isUserActive, takesPassword(db, domain))),
);

export type CodeRecipient = Awaited<ReturnType<typeof codeRecipients>>[number];

export async function findCodeRecipient(
  db: DbOrTx,
  email: string,
): Promise<CodeRecipient | undefined> {
  const [row] = await codeRecipients(db, { email, domain: emailDomain(email) });
  return row;
}

/**
 * Makes whoever issues a token for the user wait for a password reset, and the reverse: afterwards either the reset
 * has seen the token, or the issuer sees what the reset has revoked. One holder at a time: locks that are shared let
 * each other in past a reset that waits, and a thief who keeps refreshing would keep the reset from ever happening.
 * False if the user is not active.
 */
export async function holdUser(tx: Tx, userId: number): Promise<boolean> {
  const rows = await tx
    .select({ id: users.id })
    .from(users)
    .where(and(eq(users.id, userId), users.isActive))
    .for("no key update");
  return rows.length > 0;
}

/** `holdUser` by email; undefined, for the same work, if nobody active has it. */
export async function holdUserOf(tx: Tx, email: string): Promise<number | undefined> {
  const [row] = await tx
    .select({ id: users.id })
    .from(users)
    .where(and(eq(users.email, email), users.isActive))
    .for("no key update");
  return row?.id;
}

/** The first statement of a reset: it waits for tokens that are being issued. Undefined if the user is not active. */
export async function changePassword(
  tx: Tx,
  { userId, hash, now }: { userId: number; hash: string; now: Date },
): Promise<PersonRow | undefined> {
  const [row] = await tx
    .update(users)
    .set({ passwordHash: hash, updatedAt: now })
    .where(and(eq(users.id, userId), users.isActive))
    .returning(person);
  return row;
}

/** The account of an id, with its first active owner if it has one. */
export async function findAccountWithOwner(db: DbOrTx, accountId: number) {
  const { id, partnerId, isActive } = companies;
  const isOwner = and(eq(users.companyId, id), eq(users.role, "account_owner"), users.isActive);
  const [row] = await db
    .select({ id, partnerId, isActive, ownerId: users.id })
    .from(companies)
    .leftJoin(users, isOwner)
    .where(and(eq(id, accountId), eq(companies.type, "account")))
    .orderBy(asc(users.id))
    .limit(1);
  return row && { ...row, partnerId: neverNull(row.partnerId) };
}
