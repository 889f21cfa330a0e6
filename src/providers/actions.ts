import type { Tx } from "../../db/client.ts";
import { planLookUps } from "../../db/planning.ts";
import type { FailureAudit } from "../audit/failures.ts";
import type { Call } from "../http/call.ts";
import { hmacSha256Hex } from "../lib/hmac.ts";
import { invalid, Problem, type FieldErrors } from "../lib/problem.ts";
import { equalInConstantTime, type SecretBox } from "../lib/secret-box.ts";
import { newEventId } from "../outbox/event-id.ts";
import type { RecordedAction } from "../outbox/event.ts";
import { MAIL_WAKE } from "../outbox/mail.ts";
import { recordActions } from "../outbox/queries.ts";
import { decideEvents, referenceFaults, type Known } from "./decide.ts";
import { loadSuppressing, newReview, writeOutcome, type TakingDeps } from "./effects.ts";
import type { Asking } from "./admit.ts";
import { mayJoin, type Taken } from "./group.ts";
import { readEvents, type ReadEvents } from "./input.ts";
import { PROVIDER_SLUG, reviewKey, type Reference, type ReviewState, type Site } from "./model.ts";
import { checkTexts, wordsFound, type CheckedTexts, type ProfanityFinder } from "./profanity.ts";
import * as queries from "./queries.ts";
import { toAction } from "./record.ts";
import type { SecretFinder } from "./secret-finder.ts";
import { providerSecretContext } from "./secret.ts";

const SLUG = new RegExp(PROVIDER_SLUG);
/** Signs in place of a provider that does not exist, so that its refusal takes as long as that of one that does. */
const STAND_IN_SECRET = "there is no such provider";

interface VerifyingDeps {
  readonly box: SecretBox;
  readonly secretOf: SecretFinder;
  readonly failures: FailureAudit;
}

const SIGNATURE = /^sha256=[0-9a-f]{64}$/;

/** Whether a request has a signature of the right form, so that its body is worth reading. */
export function hasSignature({ headers }: Pick<Call, "headers">): boolean {
  return SIGNATURE.test(headers.get("x-provider-signature") ?? "");
}

/**
 * Throws `invalid_signature`, and audits it, unless the provider signed these bytes, and for an unknown provider
 * (contract 9.1).
 */
export async function verifySignature(
  deps: VerifyingDeps,
  slug: string,
  { call, raw }: { call: Call; raw: Uint8Array },
): Promise<void> {
  const sealed = SLUG.test(slug) ? await deps.secretOf(slug) : undefined;
  const secret =
    sealed === undefined ? STAND_IN_SECRET : deps.box.open(sealed, providerSecretContext(slug));
  const expected = `sha256=${hmacSha256Hex(secret, raw)}`;
  const matches = equalInConstantTime(call.headers.get("x-provider-signature") ?? "", expected);
  if (matches && sealed !== undefined) return;
  const details = { provider: SLUG.test(slug) ? slug : null };
  await deps.failures.record({ action: "PROVIDER_AUTH_FAILED", details }, call);
  throw new Problem("invalid_signature");
}

interface JoiningDeps extends TakingDeps {
  readonly profanity: ProfanityFinder;
  readonly join: (asking: Asking) => Promise<Taken>;
}

/** How often a request that would wait for somebody else joins another group before it waits alone. */
const GROUPS_TRIED = 3;

/**
 * Takes all events of one request or none (contract 9.1): in a group, one transaction of the requests that come at the
 * same time, where nothing is refused and nobody waited for; alone else.
 */
export async function takeEvents(
  deps: JoiningDeps,
  slug: string,
  body: unknown,
): Promise<{ accepted: number; duplicates: number }> {
  const read = readEvents(body, deps.clock.now());
  deps.traces?.came(read.events.map(({ occurredAt }) => occurredAt));
  // Before the transaction, because long texts take long, and all of the partners' writers wait for its locks.
  const profanity = await checkTexts(deps.profanity, read.events);
  const asking = { slug, read, profanity };
  const accepted = (await takeJoined(deps, asking)) ?? (await takeAlone(deps, asking));
  return { accepted, duplicates: read.events.length - accepted };
}

/** How many were accepted; undefined if the request is to be judged alone. */
async function takeJoined(
  { join, partners, intake }: JoiningDeps,
  asking: Asking,
): Promise<number | undefined> {
  const { read } = asking;
  if (!mayJoin(read)) return undefined;
  // It would fail every group that it joins, if what it waits for is no sequence.
  if (intake.isStuck(await partners(read.events.map(({ siteId }) => siteId)))) return undefined;
  for (let tried = 0; tried < GROUPS_TRIED; tried++) {
    const taken = await join(asking);
    if (taken.kind === "taken") {
      await taken.woken;
      return taken.accepted;
    }
    if (!taken.mayComeAgain) return undefined;
  }
  return undefined;
}

/**
 * Takes the events of one request in a transaction of its own. One 422 names what is wrong with every event, by itself
 * and by what it refers to; the transaction that looked it up is rolled back. Every such request takes its locks in the
 * same order (event ids, sites, reviews, and the partners' sequences last), so that none waits for another in a circle.
 */
async function takeAlone(deps: TakingDeps, { slug, read, profanity }: Asking): Promise<number> {
  const now = deps.clock.now();
  const partners = await deps.partners(read.references.flatMap(({ siteId }) => siteId ?? []));
  const { accepted, wakes } = await deps.intake.transaction(partners, async (tx) => {
    // Sent one behind the other; nothing is read of the first.
    const [, fresh] = await Promise.all([planLookUps(tx), claim(tx, slug, read, now)]);
    if (fresh.references.length === 0) {
      refuse(read.faults);
      return { accepted: 0, wakes: [] };
    }
    const sites = await lockSites(tx, slug, fresh);
    const known = await insertAndLoad(tx, { sites, fresh, now, profanity });
    refuse({ ...referenceFaults(fresh.references, known), ...read.faults });
    const outcome = decideEvents(fresh.events, known);
    const mailed = await writeOutcome(tx, deps, outcome, now);
    const actions = outcome.recorded.map((one): RecordedAction => ({
      ...toAction(one, slug),
      eventId: newEventId(now),
    }));
    const recorded = await recordActions(tx, actions, now);
    return { accepted: fresh.events.length, wakes: mailed ? [...recorded, MAIL_WAKE] : recorded };
  });
  // After the commit: earlier, the dispatcher could look before the entries are visible.
  await deps.schedule.wake(wakes);
  return accepted;
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
  readonly profanity: CheckedTexts;
}

/** What the decision needs to know, once the reviews that these events tell of first are inserted. */
async function insertAndLoad(tx: Tx, { sites, fresh, now, profanity }: KnownBy): Promise<Known> {
  const profanityIn = wordsFound(profanity);
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

function distinct(values: readonly number[]): number[] {
  return [...new Set(values)];
}
