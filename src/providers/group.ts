import type { Tx } from "../../db/client.ts";
import { planLookUps } from "../../db/planning.ts";
import { isDeadlock, isLockTimeout, isStoreFailure } from "../../db/errors.ts";
import { inGroups } from "../lib/groups.ts";
import { errorFields } from "../lib/log.ts";
import { newEventId } from "../outbox/event-id.ts";
import type { RecordedAction } from "../outbox/event.ts";
import { MAIL_WAKE } from "../outbox/mail.ts";
import { holdSequences, recordActionsLast } from "../outbox/queries.ts";
import type { Wake } from "../outbox/schedule.ts";
import { admit, claimKey, type Admission, type Asking, type Found } from "./admit.ts";
import { decideEvents } from "./decide.ts";
import { loadSuppressing, newReview, writeOutcome, type TakingDeps } from "./effects.ts";
import type { ReadEvents } from "./input.ts";
import { reviewKey, type ProviderEvent, type ReviewState } from "./model.ts";
import { charsOf, wordsFound } from "./profanity.ts";
import * as queries from "./queries/group.ts";
import { toAction } from "./record.ts";

/** What became of a request in a group. */
export type Taken =
  | { readonly kind: "taken"; readonly accepted: number; readonly woken: Promise<void> }
  /** Nothing of it is written. It may come again, or is judged alone. */
  | { readonly kind: "left"; readonly mayComeAgain: boolean };

export const EVENTS_PER_GROUP = 256;
/** A few hundred reviews of a usual length, or six of the greatest: all of a group wait for its statements. */
export const CHARS_PER_GROUP = 131_072;

const LIMITS = {
  questions: 64,
  sizes: [
    { sizeOf: ({ read }: Asking) => read.events.length, atMost: EVENTS_PER_GROUP },
    { sizeOf: ({ read }: Asking) => charsOf(read.events), atMost: CHARS_PER_GROUP },
  ],
  waiting: 1_024,
  waitMs: 6_000,
  gatherMs: 3,
};
/** A request of more events would keep the others of its group waiting. */
const MAX_EVENTS = 32;

/**
 * Whether a request may be one of a group: nothing is to be refused of it as it stands, it is small, and it changes no
 * connection, whose row it would wait for.
 */
export function mayJoin({ events, faults }: ReadEvents): boolean {
  return (
    events.length <= MAX_EVENTS &&
    Object.keys(faults).length === 0 &&
    events.every(({ type }) => type !== "connection.changed")
  );
}

/** Takes requests that come at the same time in one transaction. */
export function inOneTransaction(deps: TakingDeps): (asking: Asking) => Promise<Taken> {
  const answer = async (asked: readonly Asking[]): Promise<Taken[]> => {
    try {
      return await takeGroup(deps, asked);
    } catch (error) {
      // Nothing is known of a commit whose answer was lost. Anything else was rolled back, and may be of one request.
      if (isStoreFailure(error) && !isLockTimeout(error) && !isDeadlock(error)) throw error;
      deps.log.warn("group.split", { requests: asked.length, ...errorFields(error) });
      return asked.map(() => ({ kind: "left", mayComeAgain: false }));
    }
  };
  return inGroups(deps.clock, answer, LIMITS);
}

async function takeGroup(deps: TakingDeps, asked: readonly Asking[]): Promise<Taken[]> {
  const now = deps.clock.now();
  const siteIds = distinct(asked.flatMap(({ read }) => read.events.map(({ siteId }) => siteId)));
  const partners = await deps.partners(siteIds);
  const { admissions, wakes } = await deps.intake.group(async (tx) => {
    const found = await findAll(tx, asked, { siteIds, partners });
    const group = { asked, found, admissions: admit(asked, found), now };
    return { ...group, wakes: await writeAll(tx, deps, group) };
  });
  // After the commit: earlier, the dispatcher could look before the entries are visible.
  const woken = deps.schedule.wake(wakes);
  return admissions.map((one): Taken => {
    if (one.kind === "admitted") return { kind: "taken", accepted: one.fresh.length, woken };
    const isStuck = one.kind === "held" && deps.intake.isStuck(one.partners);
    return { kind: "left", mayComeAgain: one.kind === "held" && !isStuck };
  });
}

async function findAll(
  tx: Tx,
  asked: readonly Asking[],
  { siteIds, partners }: Readonly<Record<"siteIds" | "partners", readonly number[]>>,
): Promise<Found> {
  const events = asked.flatMap(({ slug, read }) =>
    read.events.flatMap((event) =>
      event.type === "connection.changed"
        ? []
        : { ...event, slug, creates: event.type === "review.created" },
    ),
  );
  const [, heldPartners, sites, known] = await Promise.all([
    planLookUps(tx),
    holdSequences(tx, partners),
    queries.sitesOfAny(tx, siteIds),
    queries.knownOf(tx, events),
  ]);
  const existing = new Map(known.flatMap((one) => (one.isKnown ? [[keyOf(one), one]] : [])));
  const held = existing.size === 0 ? [] : await queries.holdReviews(tx, [...existing.values()]);
  const newIds = known.flatMap((one): [string, number][] =>
    one.newId === null ? [] : [[keyOf(one), one.newId]],
  );
  return {
    sites: new Map(sites.map((one) => [one.id, one])),
    heldPartners,
    seen: new Set(known.flatMap(({ isSeen, slug, id }) => (isSeen ? claimKey(slug, id) : []))),
    existing: new Set(existing.keys()),
    reviews: new Map(held.map((one) => [keyOf(one), one])),
    newIds: new Map(newIds),
  };
}

interface Group {
  readonly asked: readonly Asking[];
  readonly found: Found;
  readonly admissions: readonly Admission[];
  readonly now: Date;
}

/** Writes what the admitted requests bring, in their order; answers whom to wake. */
async function writeAll(
  tx: Tx,
  deps: TakingDeps,
  { asked, found, admissions, now }: Group,
): Promise<Wake[]> {
  const fresh = admissions.map((one) => (one.kind === "admitted" ? one.fresh : []));
  const events = fresh.flat();
  if (events.length === 0) return [];
  const profanityIn = wordsFound(new Map(asked.flatMap(({ profanity }) => [...profanity])));
  const claims = fresh.flatMap((own, i) =>
    own.map(({ id }) => ({ slug: asked[i]?.slug ?? "", id })),
  );
  const created = createdIn(events, found, profanityIn);
  const outcome = decideEvents(events, {
    sites: found.sites,
    reviews: new Map([...found.reviews, ...created]),
    created: new Set(created.keys()),
    suppressing: await loadSuppressing(tx, found.sites, events),
    profanityIn,
  });
  const actions = outcome.recorded.map((one): RecordedAction => ({
    ...toAction(one, found.sites.get(one.site.id)?.slug ?? ""),
    eventId: newEventId(now),
  }));
  const finish = async () => {
    // `writeOutcome` sends nothing where reviews are only created: the last statement then goes out behind the claims.
    const mailed = await writeOutcome(tx, deps, outcome, now);
    const recorded = await recordActionsLast(tx, actions, now);
    return mailed ? [...recorded, MAIL_WAKE] : recorded;
  };
  const [, wakes] = await Promise.all([
    queries.writeGroup(tx, claims, [...created.values()], now),
    finish(),
  ]);
  return wakes;
}

/** The reviews that these events create, each as its first event describes it. */
function createdIn(
  events: readonly ProviderEvent[],
  { newIds }: Found,
  profanityIn: (text: string) => readonly string[],
): Map<string, ReviewState> {
  const created = new Map<string, ReviewState>();
  for (const event of events) {
    if (event.type !== "review.created") continue;
    const key = keyOf(event);
    const id = newIds.get(key);
    if (id === undefined || created.has(key)) continue;
    created.set(key, { ...newReview(event, profanityIn), id, removedAt: null });
  }
  return created;
}

function keyOf({ siteId, externalReviewId }: Pick<ReviewState, "siteId" | "externalReviewId">) {
  return reviewKey(siteId, externalReviewId);
}

function distinct(values: readonly number[]): number[] {
  return [...new Set(values)];
}
