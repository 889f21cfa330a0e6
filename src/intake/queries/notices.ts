import { and, asc, eq } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";

import type { Tx } from "../../../db/client.ts";
import { anyOf } from "../../../db/conditions.ts";
import { companies, stores, users } from "../../../db/schema/companies.ts";
import { reviewSites, storeReviewSites } from "../../../db/schema/providers.ts";
import { reviews } from "../../../db/schema/reviews.ts";
import { webhookSubscriptions } from "../../../db/schema/webhooks.ts";
import { type MailBrand, mailBrandOf } from "../../lib/branded-mail.ts";

/** The data about a review that a mail contains: names, the response and the tenant's branding. */
export interface Subject extends MailBrand {
  readonly reviewId: number;
  readonly storeName: string;
  readonly accountName: string;
  /** The review site's display name. */
  readonly siteName: string;
  readonly rate: number;
  readonly reviewer: string | null;
  /** The text of the response; null if the response was written on the site itself. */
  readonly responseBody: string | null;
}

/** The account owner as the recipient of a mail. */
export interface Owner {
  readonly email: string;
  readonly name: string;
}

/** Returns the partners whose active immediate subscription suppresses the service's own mails (contract 9.5). */
export async function suppressingPartners(
  tx: Tx,
  partnerIds: readonly number[],
): Promise<Set<number>> {
  const rows = await tx
    .select({ partnerId: webhookSubscriptions.partnerId })
    .from(webhookSubscriptions)
    .where(
      and(
        anyOf(webhookSubscriptions.partnerId, partnerIds),
        eq(webhookSubscriptions.deliveryKind, "immediate"),
        eq(webhookSubscriptions.state, "active"),
        webhookSubscriptions.suppressNativeNotifications,
      ),
    );
  return new Set(rows.map(({ partnerId }) => partnerId));
}

const accounts = alias(companies, "account");
const partners = alias(companies, "partner");

export async function subjectsOf(tx: Tx, reviewIds: readonly number[]): Promise<Subject[]> {
  const rows = await tx
    .select({
      reviewId: reviews.id,
      storeName: stores.name,
      accountName: accounts.name,
      siteName: reviewSites.name,
      rate: reviews.rate,
      reviewer: reviews.reviewer,
      responseBody: reviews.responseBody,
      brand: {
        whiteLabelEnabled: partners.whiteLabelEnabled,
        brandName: partners.brandName,
        primaryColor: partners.primaryColor,
        logoUrl: partners.logoUrl,
      },
    })
    .from(reviews)
    .innerJoin(stores, eq(stores.id, reviews.storeId))
    .innerJoin(accounts, eq(accounts.id, reviews.accountId))
    .innerJoin(partners, eq(partners.id, reviews.partnerId))
    .innerJoin(storeReviewSites, eq(storeReviewSites.id, reviews.storeReviewSiteId))
    .innerJoin(reviewSites, eq(reviewSites.id, storeReviewSites.reviewSiteId))
    .where(anyOf(reviews.id, reviewIds));
  return rows.map(({ brand, ...row }) => ({ ...row, ...mailBrandOf(brand) }));
}

/**
 * Returns the first active owner of an account, the same user as in an impersonation; undefined if the account has
 * none.
 */
export async function ownerOf(tx: Tx, accountId: number): Promise<Owner | undefined> {
  const [row] = await tx
    .select({ email: users.email, name: users.name })
    .from(users)
    .where(and(eq(users.companyId, accountId), eq(users.role, "account_owner"), users.isActive))
    .orderBy(asc(users.id))
    .limit(1);
  return row;
}
