import { ulid } from "ulid";

import type { Db, Tx } from "../../db/client.ts";
import type { Clock } from "../lib/clock.ts";
import { hmacSha256Hex } from "../lib/hmac.ts";
import { invalid, Problem, type FieldErrors } from "../lib/problem.ts";
import { equalInConstantTime, type SecretBox } from "../lib/secret-box.ts";
import { queueHomeownerNotices, suppressingPartners } from "../notifications/actions.ts";
import type { RecordedAction } from "../outbox/event.ts";
import { MAIL_WAKE } from "../outbox/mail.ts";
import type { Intake } from "../outbox/intake.ts";
import { recordActions } from "../outbox/queries.ts";
import type { Waker } from "../outbox/schedule.ts";
import { decideEvents, referenceFaults, type Known, type Outcome } from "./decide.ts";
import { readEvents, type ReadEvents } from "./input.ts";
import {
  PROVIDER_SLUG,
  reviewKey,
  type ProviderEvent,
  type Reference,
  type ReviewState,
  type Site,
} from "./model.ts";
import type { PartnerFinder } from "./partners.ts";
import type { ProfanityFinder } from "./profanity.ts";
import * as queries from "./queries.ts";
import { toAction } from "./record.ts";
import { providerSecretContext } from "./secret.ts";

export interface ProviderDeps {
  readonly db: Db;
  readonly intake: Intake;
  readonly clock: Clock;
  readonly box: SecretBox;
  readonly schedule: Waker;
}

const SLUG = new RegExp(PROVIDER_SLUG);
/** Signs in place of a provider that does not exist, so that its refusal takes as long as that of one that does. */
const STAND_IN_SECRET = "there is no such provider";

/** Throws `invalid_signature` unless the provider signed these bytes, and for an unknown provider (contract 9.1). */
export async function verifySignature(
  deps: Pick<ProviderDeps, "db" | "box">,
  slug: string,
  { raw, signature }: { raw: Uint8Array; signature: string | null },
): Promise<void> {
  const sealed = SLUG.test(slug) ? await queries.sealedSecretOf(deps.db, slug) : undefined;
  const secret =
    sealed === undefined ? STAND_IN_SECRET : deps.box.open(sealed, providerSecretContext(slug));
  const expected = `sha256=${hmacSha256Hex(secret, raw)}`;
  const matches = equalInConstantTime(signature ?? "", expected);
  if (!matches || sealed === undefined) throw new Problem("invalid_signature");
}

/**
 * Takes all events of one request or none (contract 9.1): domain changes, history and outbox entries in one
 * transaction. One 422 names what is wrong with every event, by itself and by what it refers to; the transaction that
 * looked it up is rolled back. Every request takes its locks in the same order (event ids, sites, reviews, and the
 * partners' sequences last), so that none waits for another in a circle.
 */
export async function takeEvents(
  deps: ProviderDeps & { readonly profanity: ProfanityFinder; readonly partners: PartnerFinder },
  slug: string,
  body: unknown,
): Promise<{ accepted: number; duplicates: number }> {
  const now = deps.clock.now();
  const read = readEvents(body, now);
  const partners = await deps.partners(read.references.flatMap(({ siteId }) => siteId ?? []));
  const { accepted, wakes } = await deps.intake.transaction(partners, async (tx) => {
    const fresh = await claim(tx, slug, read, now);
    if (fresh.references.length === 0) {
      refuse(read.faults);
      return { accepted: 0, wakes: [] };
    }
    const sites = await lockSites(tx, slug, fresh);
    const known = await loadKnown(tx, { sites, fresh, now, profanity: deps.profanity });
    refuse({ ...referenceFaults(fresh.references, known), ...read.faults });
    const outcome = decideEvents(fresh.events, known);
    const mailed = await writeOutcome(tx, deps, outcome, now);
    const actions = outcome.recorded.map((one): RecordedAction => ({
      ...toAction(one, slug),
      eventId: ulid(now.getTime()),
    }));
    const recorded = await recordActions(tx, actions, now);
    return { accepted: fresh.events.length, wakes: mailed ? [...recorded, MAIL_WAKE] : recorded };
  });
  // After the commit: earlier, the dispatcher could look before the entries are visible.
  await deps.schedule.wake(wakes);
  return { accepted, duplicates: read.events.length - accepted };
}

function refuse(faults: FieldErrors): void {
  if (Object.keys(faults).length > 0) throw invalid(faults);
}

type Fresh = Pick<ReadEvents, "events" | "references">;
type Sites = ReadonlyMap<number, Site>;

/**
 * The events whose ids were never seen before, and of several with one id in a request the first. The rest are
 * duplicates, whatever they refer to by now (contract 9.1).
 */
async function claim(
  tx: Tx,
  slug: string,
  { events, references }: ReadEvents,
  now: Date,
): Promise<Fresh> {
  const first = new Map<string, number>();
  for (const { id, index } of references)
    if (id !== undefined && !first.has(id)) first.set(id, index);
  const claimed = await queries.claimEventIds(tx, slug, [...first.keys()], now);
  const isFresh = ({ id, index }: Pick<Reference, "id" | "index">) =>
    id === undefined || (claimed.has(id) && first.get(id) === index);
  return { events: events.filter(isFresh), references: references.filter(isFresh) };
}

async function lockSites(tx: Tx, slug: string, { events, references }: Fresh): Promise<Sites> {
  const changing = events.filter(({ type }) => type === "connection.changed");
  const ids = distinct(references.flatMap(({ siteId }) => siteId ?? []));
  const locked = distinct(changing.map(({ siteId }) => siteId));
  const sites = await queries.sitesOf(tx, slug, { ids, locked });
  return new Map(sites.map((one) => [one.id, one]));
}

interface KnownBy {
  readonly sites: Sites;
  readonly fresh: Fresh;
  readonly now: Date;
  readonly profanity: ProfanityFinder;
}

async function loadKnown(tx: Tx, { sites, fresh, now, profanity }: KnownBy): Promise<Known> {
  const profanityIn = remembering((text) => profanity.wordsIn(text));
  const reported = new Map<string, queries.NewReview>();
  const keys = new Map<string, Pick<ReviewState, "siteId" | "externalReviewId">>();
  for (const { type, siteId, externalReviewId } of fresh.references) {
    if (type === undefined || siteId === undefined || externalReviewId === undefined) continue;
    if (sites.has(siteId))
      keys.set(reviewKey(siteId, externalReviewId), { siteId, externalReviewId });
  }
  for (const event of fresh.events) {
    if (event.type !== "review.created" || !sites.has(event.siteId)) continue;
    const key = reviewKey(event.siteId, event.externalReviewId);
    if (!reported.has(key)) reported.set(key, newReview(event, profanityIn));
  }
  const reviews = new Map<string, ReviewState>();
  const created = new Set<string>();
  for (const row of await insertNew(tx, [...reported.values()], now)) {
    const key = reviewKey(row.siteId, row.externalReviewId);
    const review = reported.get(key);
    if (review === undefined) continue;
    created.add(key);
    reviews.set(key, { ...review, id: row.id, removedAt: null });
  }
  const others = [...keys].flatMap(([key, one]) => (created.has(key) ? [] : [one]));
  const locked = others.length === 0 ? [] : await queries.lockReviews(tx, others);
  for (const one of locked) reviews.set(reviewKey(one.siteId, one.externalReviewId), one);
  return {
    sites,
    reviews,
    created,
    profanityIn,
    suppressing: await loadSuppressing(tx, sites, fresh.events),
  };
}

async function insertNew(tx: Tx, reviews: readonly queries.NewReview[], now: Date) {
  return reviews.length === 0 ? [] : queries.insertReviews(tx, reviews, now);
}

function newReview(
  event: Extract<ProviderEvent, { type: "review.created" | "review.updated" }>,
  profanityIn: Known["profanityIn"],
): queries.NewReview {
  const { siteId, externalReviewId, review } = event;
  return {
    siteId,
    externalReviewId,
    ...review,
    reviewerEmail: review.reviewerEmail ?? null,
    profanity: profanityIn(review.content),
  };
}

/** Looked up for posted responses only: no other event leads to a mail of ours. */
function loadSuppressing(
  tx: Tx,
  sites: Sites,
  events: readonly ProviderEvent[],
): Promise<ReadonlySet<number>> {
  const posted = events.filter(({ type }) => type === "response.posted");
  const partners = posted.flatMap(({ siteId }) => sites.get(siteId)?.partnerId ?? []);
  return suppressingPartners(tx, distinct(partners));
}

/** Queues a mail for every homeowner_notified_of_response that says so (contract 9.5); true if there was one. */
async function writeOutcome(
  tx: Tx,
  deps: Pick<ProviderDeps, "box">,
  outcome: Outcome,
  now: Date,
): Promise<boolean> {
  if (outcome.reviews.length > 0) await queries.updateReviews(tx, outcome.reviews, now);
  if (outcome.sites.length > 0) await queries.updateSites(tx, outcome.sites);
  const notices = outcome.recorded.flatMap((one) => {
    if (one.event !== "homeowner_notified_of_response") return [];
    const to = one.metadata.native_email === "queued" ? one.review.reviewerEmail : null;
    return to === null ? [] : [{ reviewId: one.review.id, to }];
  });
  await queueHomeownerNotices(tx, deps, notices, now);
  return notices.length > 0;
}

/** `find` with a memory: several events of a request often carry the same text. */
function remembering<T>(find: (text: string) => T): (text: string) => T {
  const known = new Map<string, T>();
  return (text) => {
    const before = known.get(text);
    if (before !== undefined) return before;
    const found = find(text);
    known.set(text, found);
    return found;
  };
}

function distinct(values: readonly number[]): number[] {
  return [...new Set(values)];
}
