import type { RawDb } from "../../db/client.ts";
import { deliveryAttempts } from "../../db/schema/attempts.ts";
import { BATCH_EVENTS } from "../../src/outbox/event.ts";
import type { SecretBox } from "../../src/lib/secrets.ts";
import { webhookSecretAssociatedData } from "../../src/master-key.ts";
import { withRequests } from "../../src/webhooks/queries/attempts.ts";
import * as facts from "./facts.ts";

type Tables = Pick<
  facts.Facts,
  | "subscriptions"
  | "history"
  | "logged"
  | "queued"
  | "settled"
  | "attempts"
  | "batchEntries"
  | "audit"
  | "finalSecrets"
  | "claims"
  | "reviews"
>;

/** Reads all tables that the rules need. PostgreSQL needs `track_commit_timestamp = on`. */
export async function readTables({ db, box }: { db: RawDb; box: SecretBox }): Promise<Tables> {
  const subscriptions = await readSubscriptions(db);
  return {
    subscriptions,
    finalSecrets: new Map(
      subscriptions.map(({ id, partnerId, sealedSecret }) => [
        id,
        box.open(sealedSecret, webhookSecretAssociatedData(partnerId, id)),
      ]),
    ),
    history: await readHistory(db),
    logged: await db.sql<facts.LoggedRow[]>`
      select s.id as "subscriptionId", h.event_id as "eventId"
        from review_history h join webhook_subscriptions s on s.number = h.subscription_number
       order by s.id, h.sequence`,
    queued: await db.sql<facts.QueuedRow[]>`
      select subscription_id as "subscriptionId", sequence, event_id as "eventId", is_test as "isTest",
             review_id as "reviewId", round, attempt, state
        from queued_entries order by subscription_id, sequence`,
    settled: await db.sql<facts.SettledRow[]>`
      select subscription_id as "subscriptionId", sequence, event_id as "eventId", is_test as "isTest",
             review_id as "reviewId", round, reason, extract(epoch from recorded_at)::float8 * 1000 as "recordedMs",
             extract(epoch from skipped_at)::float8 * 1000 as "settledMs"
        from skipped_entries order by subscription_id, sequence`,
    attempts: await readAttempts(db),
    batchEntries: await db.sql<facts.BatchEntry[]>`
      select b.subscription_id as "subscriptionId", h.event_id as "eventId"
        from batch_entries b join review_history h on h.id = b.review_history_id`,
    ...(await readTaken(db)),
    audit: await db.sql<facts.AuditRow[]>`
      select action, details->>'subscription_id' as "subscriptionId", details->>'held' as held,
             extract(epoch from pg_xact_commit_timestamp(xmin))::float8 * 1000 as "committedMs"
        from audit_log where action like 'WEBHOOK%' order by id`,
  };
}

async function readTaken(db: RawDb): Promise<Pick<Tables, "claims" | "reviews">> {
  const claims = await db.sql<{ id: string }[]>`select id from provider_events`;
  const reviews = await db.sql<{ siteId: number; externalId: string }[]>`
    select store_review_site_id as "siteId", external_review_id as "externalId" from reviews`;
  return {
    claims: new Set(claims.map(({ id }) => id)),
    reviews: new Set(reviews.map((one) => facts.reviewKey(one.siteId, one.externalId))),
  };
}

function readSubscriptions(db: RawDb) {
  return db.sql<(facts.Subscription & { readonly sealedSecret: string })[]>`
    select s.id, s.partner_id as "partnerId", substring(s.webhook_url from '//([^/]+)') as host,
           s.delivery_kind as kind, s.ordering, s.state,
           coalesce((to_jsonb(s)->>'sequence_headers')::boolean, false) as "sequenceHeaders",
           s.consecutive_failure_count as failures, s.events as filter,
           extract(epoch from s.created_at)::float8 * 1000 as "createdMs",
           q.last_sequence as "lastSequence", s.sealed_secret as "sealedSecret"
      from webhook_subscriptions s left join outbox_sequences q on q.subscription_id = s.id order by s.id`;
}

async function readHistory(db: RawDb): Promise<facts.HistoryRow[]> {
  const rows = await db.sql<Omit<facts.HistoryRow, "inBatch">[]>`
    select h.id, h.event_id as "eventId", h.event, h.partner_id as "partnerId", h.review->>'reviewer' as marker,
           extract(epoch from h.recorded_at)::float8 * 1000 as "recordedMs",
           extract(epoch from pg_xact_commit_timestamp(h.xmin))::float8 * 1000 as "committedMs"
      from review_history h order by h.id`;
  return rows.map((row) => ({ ...row, inBatch: BATCH_EVENTS.some((one) => one === row.event) }));
}

async function readAttempts(db: RawDb): Promise<facts.AttemptRow[]> {
  // The row is read as JSON, so that a column that this version lacks is simply absent.
  const rows = await db.sql<(facts.AttemptRow & { readonly told: boolean | null })[]>`
    select a.id, a.subscription_id as "subscriptionId", a.sequence, a.event_id as "eventId",
           a.event = 'webhook.test' as "isTest", h.review_id as "reviewId", a.round, a.attempt, a.outcome,
           a.status_code as "statusCode", a.error_code as "errorCode", a.resent, a.recorded_at is not null as ended,
           coalesce(a.request_headers->>'X-SVC-Signature',
                    'sha256=' || substr(to_jsonb(a)->>'signature', 3)) as signature,
           (to_jsonb(a)->>'possibly_repeated')::boolean as told,
           extract(epoch from pg_xact_commit_timestamp(a.xmin))::float8 * 1000 as "committedMs"
      from delivery_attempts a left join review_history h on h.event_id = a.event_id
     order by a.subscription_id, a.sequence, a.id`;
  const bodies = await readBodies(db);
  return rows.map(({ told, ...row }) => ({
    ...row,
    possiblyRepeated: told ?? undefined,
    body: bodies.get(row.id),
  }));
}

/** Returns the body that the API shows for each attempt; empty for a version that stores the body with the attempt. */
async function readBodies(db: RawDb): Promise<Map<string, string | null>> {
  const composed = await db.sql`
    select from pg_attribute where attrelid = 'delivery_attempts'::regclass and attname in ('composer', 'payload_format')`;
  if (composed.length === 0) return new Map();
  const bodies = new Map<string, string | null>();
  let rest = await db.select().from(deliveryAttempts);
  while (rest.length > 0) {
    const shown = await withRequests(db, rest);
    for (const { id, requestBody } of shown) bodies.set(id, requestBody);
    rest = rest.slice(shown.length);
  }
  return bodies;
}

/** Counts the remaining entries of active subscriptions. */
export async function countLeft(db: RawDb): Promise<number> {
  const [row] = await db.sql<{ count: number }[]>`
    select (select count(*) from queued_entries o join webhook_subscriptions s on s.id = o.subscription_id
             where s.state = 'active')
         + (select count(*) from batch_entries b join webhook_subscriptions s on s.id = b.subscription_id
             where s.state = 'active') as count`;
  return row?.count ?? 0;
}
