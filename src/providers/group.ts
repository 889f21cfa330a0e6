import { ulid } from "ulid";

import type { Db, Tx } from "../../db/client.ts";
import { isDeadlock, isLockTimeout, isStoreFailure, isUniqueViolation } from "../../db/errors.ts";
import type { Clock } from "../lib/clock.ts";
import { inBatches } from "../lib/batches.ts";
import { errorFields, type Log } from "../lib/log.ts";
import type { FieldErrors } from "../lib/problem.ts";
import type { SecretBox } from "../lib/secret-box.ts";
import type { RecordedAction, SiteFacts } from "../outbox/event.ts";
import type { WriterPool } from "../outbox/writer-pool.ts";
import { MAIL_WAKE } from "../outbox/mail.ts";
import { holdSequences, recordActions } from "../outbox/queries.ts";
import type { Wake, Waker } from "../outbox/schedule.ts";
import { queueHomeownerNotices, suppressingPartners } from "../reviews/actions/notices.ts";
import { reviewFacts } from "../reviews/model.ts";
import { type Admission, admit, type Asking, claimKey, type Found, isInvalid } from "./admit.ts";
import { type Cause, decideEvents, type Recorded } from "./decide.ts";
import { reasonOf, reviewKey } from "./model.ts";
import { charsOf } from "./profanity.ts";
import { lookUp, type ReviewState, type Site, waitForRows } from "./queries/look-up.ts";
import { insertNew, updateReviews, updateSites } from "./queries/write.ts";

export interface ProviderDeps {
  readonly db: Db;
  readonly writerPool: WriterPool;
  readonly clock: Clock;
  readonly box: SecretBox;
  readonly schedule: Waker;
  readonly log: Log;
  /** Told the instants of the events of a request; absent where nothing is traced. */
  readonly traces?: { came(instants: readonly Date[]): void } | undefined;
}

export type TakingDeps = Pick<ProviderDeps, "writerPool" | "clock" | "box" | "schedule" | "log">;

/** What became of a request in a group. Unless it was taken, nothing of it is written. */
export type Taken =
  | { readonly kind: "taken"; readonly accepted: number; readonly woken: Promise<void> }
  | { readonly kind: "refused"; readonly fieldErrors: FieldErrors }
  /** It met what somebody else holds, its secret was changed, or the group could not be written. */
  | { readonly kind: "left"; readonly because: "sequence" | "row" | "secret" | "write" };

/** Somebody else claims, inserts or locks what the group writes. */
class Collision extends Error {}

/** The locks that a group waits for. It skips the rest, and the requests that need one of those leave the group. */
type Waits = "nothing" | "sequences" | "rows and sequences";

/**
 * Takes requests in one transaction. It waits for rows before sequences, as whoever acts on a review does, and for what
 * comes after the look-up for 100 ms at most. So no two transactions wait for each other in a circle.
 */
async function takeGroup(
  deps: TakingDeps,
  asked: readonly Asking[],
  waits: Waits,
): Promise<Taken[]> {
  const now = deps.clock.now();
  const writing = asked.filter(({ read }) => !isInvalid(read));
  const partners = [...new Set(writing.flatMap((one) => one.partners))];
  const work = async (tx: Tx) => {
    const found = await findAll(tx, asked, { partners, waits });
    const admissions = admit(asked, found);
    return { admissions, wakes: await writeAll(tx, deps, { asked, found, admissions, now }) };
  };
  try {
    const { admissions, wakes } =
      waits === "nothing"
        ? await deps.writerPool.group(work)
        : await deps.writerPool.transaction(partners, work, { readsFirst: true });
    // After the commit: earlier, the dispatcher could look before the entries are visible.
    const woken = deps.schedule.wake(wakes);
    return admissions.map((one) =>
      one.kind === "admitted" ? { kind: "taken", accepted: one.fresh.length, woken } : one,
    );
  } catch (error) {
    // Nothing is known of a commit whose answer was lost. Anything else was rolled back, and may be of one request.
    if (isStoreFailure(error) && !isDeadlock(error)) throw error;
    const isCollision = error instanceof Collision || isDeadlock(error);
    if (waits === "rows and sequences" && !isCollision) throw error;
    const { cause = error } = Object(error);
    deps.log.warn("group.split", { requests: asked.length, ...errorFields(cause) });
    return asked.map(() => ({ kind: "left", because: "write" }));
  }
}

async function findAll(
  tx: Tx,
  asked: readonly Asking[],
  { partners, waits }: { readonly partners: readonly number[]; readonly waits: Waits },
): Promise<Found> {
  const named = asked.flatMap(({ slug, read }) => {
    const writes = !isInvalid(read);
    return read.references.map(({ type, id = null, siteId = null, externalReviewId = null }) => ({
      slug,
      id,
      siteId,
      externalReviewId,
      usesReview: writes,
      createsReview: writes && type === "review.created",
      changesSite: writes && type === "connection.changed",
    }));
  });
  // No other event leads to a mail of ours.
  const posting = asked.filter(({ read }) =>
    read.events.some(({ type }) => type === "response.posted"),
  );
  // Sent one behind the other. The look-up sees what those whose locks were waited for have committed.
  const [, heldPartners, known, suppressing] = await Promise.all([
    waits === "rows and sequences" && waitForRows(tx, named),
    holdSequences(tx, partners, waits !== "nothing"),
    lookUp(tx, named),
    suppressingPartners(tx, [...new Set(posting.flatMap((one) => one.partners))]),
  ]);
  const found = {
    sealedSecrets: new Map<string, string>(),
    sites: new Map<number, Site>(),
    heldSites: new Set<number>(),
    heldPartners,
    suppressing,
    seen: new Set<string>(),
    existing: new Set<string>(),
    reviews: new Map<string, ReviewState>(),
    newIds: new Map<string, number>(),
  };
  for (const one of known) {
    const { site, review, newId, sealedSecret } = one;
    if (sealedSecret !== null) found.sealedSecrets.set(one.slug, sealedSecret);
    const siteId = one.siteId ?? 0;
    const key = reviewKey(siteId, one.externalReviewId ?? "");
    // As it is held it is as new as can be.
    if (site !== undefined && (one.changesSite || !found.sites.has(siteId)))
      found.sites.set(siteId, site);
    if (one.changesSite && one.isOwnSite && site === undefined) found.heldSites.add(siteId);
    if (one.isSeen && one.id !== null) found.seen.add(claimKey(one.slug, one.id));
    if (one.isKnown) found.existing.add(key);
    if (review !== undefined) found.reviews.set(key, review);
    if (newId !== null) found.newIds.set(key, newId);
  }
  return found;
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
  deps: Pick<TakingDeps, "box">,
  { asked, found, admissions, now }: Group,
): Promise<Wake[]> {
  const fresh = admissions.map((one) => (one.kind === "admitted" ? one.fresh : []));
  const events = fresh.flat();
  if (events.length === 0) return [];
  const profanity = new Map(asked.flatMap((one) => [...one.profanity]));
  const claims = asked.flatMap(({ slug }, i) => (fresh[i] ?? []).map(({ id }) => ({ slug, id })));
  const { notices, ...outcome } = decideEvents(events, { ...found, profanity });
  const actions = outcome.recorded.map((one) => toAction(one, now));
  const finish = async () => {
    await queueHomeownerNotices(tx, deps, notices, now);
    const recorded = await recordActions(tx, actions, now);
    return notices.length > 0 ? [...recorded, MAIL_WAKE] : recorded;
  };
  // All of them are sent at once, and the commit with them, but where mails have to be made first.
  const [, , , wakes] = await Promise.all([
    insertNew(tx, claims, outcome.created, now),
    outcome.reviews.length > 0 && updateReviews(tx, outcome.reviews, now),
    outcome.sites.length > 0 && updateSites(tx, outcome.sites),
    finish(),
  ]).catch((error: unknown) => {
    const isCollision = isUniqueViolation(error) || isLockTimeout(error);
    throw isCollision ? new Collision("", { cause: error }) : error;
  });
  return wakes;
}

/** What was decided, as the history and the webhook bodies show it. */
function toAction(
  { event, metadata, site, review, cause, occurredAt }: Recorded,
  now: Date,
): RecordedAction {
  return {
    eventId: ulid(now.getTime()),
    event,
    partnerId: site.partnerId,
    accountId: site.accountId,
    storeId: site.storeId,
    storeReviewSiteId: site.id,
    reviewId: review?.id ?? null,
    actor: { type: "system", id: null, name: site.slug },
    about:
      cause === undefined
        ? { review: reviewFacts({ ...site, ...review, sourcePlatform: site.slug }) }
        : { site: siteFacts(site, cause) },
    metadata,
    occurredAt,
  };
}

/** Contract 8.3; connection_status and disconnect_reason are those of the event's axis (contract 8.5). */
function siteFacts(site: Site, { axis, errorCode }: Cause): SiteFacts {
  const isConnected = site[`${axis}Connected` as const];
  return {
    store: { id: site.storeId },
    review_site: {
      store_review_site_id: site.id,
      review_site_id: site.reviewSiteId,
      name: site.name,
      connection_status: isConnected ? "connected" : "disconnected",
      disconnect_reason: site[`${axis}ErrorCode` as const],
    },
    axis,
    error_code: errorCode,
    reason: reasonOf(errorCode),
  };
}

export const EVENTS_PER_GROUP = 256;
/** A few hundred reviews of a usual length, or six of the greatest: all of a group wait for its statements. */
export const CHARS_PER_GROUP = 131_072;

const LIMITS = {
  questions: 64,
  sizes: [
    { sizeOf: ({ read }: Asking) => read.references.length, atMost: EVENTS_PER_GROUP },
    { sizeOf: ({ read }: Asking) => charsOf(read.events), atMost: CHARS_PER_GROUP },
  ],
  waiting: 1_024,
  waitMs: 6_000,
};
/** A request of more events would keep the requests of other partners waiting. */
const MAX_EVENTS = 32;
/** How long a request alone is tried again that meets, each time, somebody else who writes what it writes. */
const AGAIN_MS = 2_000;

/**
 * Takes each request in a group of those that came at the same time, which waits for nobody. The requests of one partner
 * form groups of their own while somebody else holds its sequence, and so does a large one: those wait for it, and keep no
 * other partner waiting. A request that needs a row that somebody else holds, or whose group could not be written, is a
 * group of one, which waits for all that it needs.
 */
export function createTaking(deps: TakingDeps): (asking: Asking) => Promise<Taken> {
  const join = inBatches(deps.clock, (asked) => takeGroup(deps, asked, "nothing"), {
    ...LIMITS,
    gatherMs: 3,
  });
  const lines = createLines(deps.clock, (asked) => takeGroup(deps, asked, "sequences"));
  return async (asking) => {
    const partners = asking.partners.toSorted((a, b) => a - b).join();
    const isHeldUp = lines.has(partners) || deps.writerPool.isBlocked(asking.partners);
    let taken: Taken = { kind: "left", because: "sequence" };
    if (!isHeldUp && !isLarge(asking)) taken = await join(asking);
    if (taken.kind === "left" && taken.because === "sequence")
      taken = await lines.join(partners, asking);
    const untilMs = deps.clock.monotonicMs() + AGAIN_MS;
    while (
      taken.kind === "left" &&
      taken.because !== "secret" &&
      deps.clock.monotonicMs() <= untilMs
    )
      [taken = taken] = await takeGroup(deps, [asking], "rows and sequences");
    return taken;
  };
}

function isLarge({ read }: Asking): boolean {
  return read.references.length > MAX_EVENTS || charsOf(read.events) > CHARS_PER_GROUP;
}

/** A line of groups for each key, one group at a time, for as long as somebody is in it. */
function createLines(clock: Clock, take: (asked: readonly Asking[]) => Promise<readonly Taken[]>) {
  const lines = new Map<string, { ask: (asking: Asking) => Promise<Taken>; asking: number }>();
  return {
    has: (key: string) => lines.has(key),
    async join(key: string, asking: Asking): Promise<Taken> {
      const line = lines.get(key) ?? { ask: inBatches(clock, take, LIMITS), asking: 0 };
      lines.set(key, line);
      line.asking++;
      try {
        return await line.ask(asking);
      } finally {
        line.asking--;
        if (line.asking === 0) lines.delete(key);
      }
    },
  };
}
