import { createHmac } from "node:crypto";

import { ulid } from "ulid";

import { insertReviewSite, insertStoreReviewSite } from "../../scripts/demo/seed/rows.ts";
import type { RawDb, DbOrTx } from "../../db/client.ts";
import { newSecret } from "../../src/lib/secrets.ts";
import type { SecretBox } from "../../src/lib/secrets.ts";
import type { Answer, TestApi } from "./api.ts";
import type { TestAccount } from "./tenants.ts";

export interface TestProvider {
  readonly id: number;
  readonly slug: string;
  readonly name: string;
  readonly secret: string;
}

export async function addProvider(
  db: DbOrTx,
  box: SecretBox,
  slug = "google",
): Promise<TestProvider> {
  const provider = { slug, name: `Name of ${slug}`, secret: newSecret() };
  return { id: await insertReviewSite(db, box, provider), ...provider };
}

/** Connects the first or second store of an account to a provider; answers the id of the store review site. */
export async function connectStore(
  db: DbOrTx,
  account: TestAccount,
  { provider, store = 0 }: { provider: TestProvider; store?: 0 | 1 },
): Promise<number> {
  const storeId = account.storeIds[store];
  if (storeId === undefined) throw new Error(`The account has no store ${store}.`);
  return insertStoreReviewSite(db, {
    storeId,
    reviewSiteId: provider.id,
    accountId: account.id,
    partnerId: account.partnerId,
  });
}

type Fields = Readonly<Record<string, unknown>>;

/** Builds a provider event with a new id. `fields` may set another, for example to repeat an event. */
export function providerEvent(type: string, siteId: number, fields: Fields = {}): Fields {
  const occurred_at = "2026-06-01T12:00:00.000+00:00";
  return { id: ulid(), type, occurred_at, store_review_site_id: siteId, ...fields };
}

export function reportedReview(externalReviewId: string, fields: Fields = {}): Fields {
  return {
    external_review_id: externalReviewId,
    rate: 4,
    reviewer: "Ada Reviewer",
    content: "Friendly people, clean work.",
    reviewed_at: "2026-06-01T11:00:00.000+00:00",
    ...fields,
  };
}

export function created(siteId: number, externalReviewId: string, fields: Fields = {}): Fields {
  return providerEvent("review.created", siteId, {
    review: reportedReview(externalReviewId, fields),
  });
}

/**
 * Sends a signed request as the provider's puller does. Text is signed and sent unchanged, so that it may be invalid
 * JSON.
 */
export function send(api: TestApi, provider: TestProvider, body: unknown): Promise<Answer> {
  const raw = typeof body === "string" ? body : JSON.stringify(body);
  const digest = createHmac("sha256", provider.secret).update(raw).digest("hex");
  return api.call("POST", `/providers/${provider.slug}/events`, {
    body: raw,
    headers: { "X-Provider-Signature": `sha256=${digest}` },
  });
}

/** Sends events and answers the counts of the response; throws unless the API accepts them with 200. */
export async function report(
  api: TestApi,
  provider: TestProvider,
  events: readonly Fields[],
): Promise<Answer["body"]> {
  const { status, body, text } = await send(api, provider, { events });
  if (status !== 200) throw new Error(`The events were answered ${status}: ${text}`);
  return body;
}

/** Finds our id of a review by the provider's id; throws unless exactly one review has it. */
export async function reviewIdOf(db: RawDb, externalReviewId: string): Promise<number> {
  const rows = await db.sql<{ id: number }[]>`
    select id from reviews where external_review_id = ${externalReviewId}`;
  const [row] = rows;
  if (row === undefined || rows.length > 1)
    throw new Error(`There are ${rows.length} reviews ${externalReviewId}.`);
  return row.id;
}

export interface HistoryRow {
  readonly id: number;
  readonly event: string;
  readonly eventId: string;
  readonly reviewId: number | null;
  readonly actor: Fields;
  readonly review: Fields | null;
  readonly site: Fields | null;
  readonly metadata: Fields;
  readonly occurredAt: Date;
}

/** Reads the history of a store review site in the order of recording. */
export async function historyOfSite(db: RawDb, siteId: number): Promise<HistoryRow[]> {
  return db.sql<HistoryRow[]>`
    select id, event, event_id as "eventId", review_id as "reviewId", actor, review, site, metadata,
           occurred_at as "occurredAt"
      from review_history where store_review_site_id = ${siteId} order by id`;
}

export interface QueuedRow {
  readonly sequence: number;
  readonly eventId: string;
  readonly event: string;
  readonly historyId: number;
}

/** Reads the queue of a subscription in the order of its sequence. */
export async function queuedFor(db: RawDb, subscriptionId: string): Promise<QueuedRow[]> {
  return db.sql<QueuedRow[]>`
    select sequence, event_id as "eventId", event, review_history_id as "historyId"
      from queued_entries where subscription_id = ${subscriptionId} order by sequence`;
}
