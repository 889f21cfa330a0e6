import type { Db, Tx } from "../../db/client.ts";
import {
  isDeadlock,
  isLockTimeout,
  isOutcomeUnknown,
  isStoreFailure,
  isUniqueViolation,
} from "../../db/errors.ts";
import type { Clock } from "../lib/clock.ts";
import { inBatches } from "../lib/batches.ts";
import type { Key } from "../lib/kind-key.ts";
import { errorFields, type Log } from "../lib/log.ts";
import type { SecretBox } from "../lib/secret-box.ts";
import type { WriterPool } from "../outbox/writer-pool.ts";
import { holdSequences, recordActions } from "../outbox/queries.ts";
import type { Wake, Waker } from "../outbox/schedule.ts";
import { queueHomeownerNotices, suppressingPartners } from "../reviews/actions/notices.ts";
import {
  type BatchDecision,
  decideBatch,
  type ProviderRequest,
  claimKey,
  type BatchLookup,
  isInvalid,
  partnersOf,
  type RequestResult,
} from "./decide-batch.ts";
import { decideEvents } from "./decide.ts";
import { createNewReviewsWriter } from "./new-reviews.ts";
import { reviewKey } from "./model.ts";
import { charsOf } from "./profanity.ts";
import { lookUp, type ReviewState, type Site, waitForRows } from "./queries/look-up.ts";
import { insertNew, updateReviews, updateSites } from "./queries/write.ts";
import { toAction } from "./record.ts";

export interface ProviderDeps {
  readonly db: Db;
  readonly writerPool: WriterPool;
  readonly clock: Clock;
  readonly box: SecretBox;
  readonly schedule: Waker;
  readonly log: Log;
  /**
   * Receives the instants of a request's events, which link the request's trace to its deliveries. Absent without
   * tracing.
   */
  readonly traces?: { came(instants: readonly Date[]): void } | undefined;
}

type BatcherDeps = Pick<ProviderDeps, "writerPool" | "clock" | "box" | "schedule" | "log">;

type Submit = (request: ProviderRequest) => Promise<RequestResult>;

/** Another transaction claims, inserts or locks a row that this batch writes. */
class Collision extends Error {}

/** The locks that a batch waits for. It skips all other locked rows and defers the requests that need them. */
type LockWait = "nothing" | "sequences" | "rows and sequences";

/**
 * Writes requests in one transaction. It locks rows before sequences, in the same order as actions on reviews, and
 * waits at most 100 ms for any lock after the look-up. Transactions can therefore not deadlock with each other.
 */
async function writeBatch(
  deps: BatcherDeps,
  requests: readonly ProviderRequest[],
  lockWait: LockWait,
): Promise<RequestResult[]> {
  const now = deps.clock.now();
  const writing = requests.filter(({ read }) => !isInvalid(read));
  const partners = partnersOf(writing);
  let decided: readonly BatchDecision[] = [];
  const work = async (tx: Tx) => {
    const found = await findAll(tx, requests, { partners, lockWait });
    const decisions = decideBatch(requests, found);
    decided = decisions;
    return { decisions, ...(await writeAll(tx, deps, { requests, found, decisions, now })) };
  };
  try {
    const { decisions, wakes, isMailed } =
      lockWait === "nothing"
        ? await deps.writerPool.group(work)
        : await deps.writerPool.transaction(partners, work, { readsFirst: true });
    // Wakes the dispatcher after the commit, because an earlier wake could find the entries still invisible.
    deps.schedule.wake(wakes);
    if (isMailed) deps.schedule.wakeMailer();
    return decisions.map((one) =>
      one.kind === "accepted" ? { kind: "accepted", accepted: one.newEvents.length } : one,
    );
  } catch (error) {
    // The next try finds the ids of the events if they were committed.
    if (isOutcomeUnknown(error)) {
      deps.log.warn("ingest.outcome_unknown", { requests: requests.length, ...errorFields(error) });
      return decided.map((lost) => ({ kind: "deferred", reason: "write", lost }));
    }
    // After any other error the transaction is rolled back. A single request may have caused it, so each one is retried
    // in its own transaction, unless the store failed.
    if (isStoreFailure(error) && !isDeadlock(error)) throw error;
    const isCollision = error instanceof Collision || isDeadlock(error);
    if (lockWait === "rows and sequences" && !isCollision) throw error;
    const { cause = error } = Object(error);
    deps.log.warn("ingest.batch_split", { requests: requests.length, ...errorFields(cause) });
    return requests.map(() => ({ kind: "deferred", reason: "write" }));
  }
}

async function findAll(
  tx: Tx,
  requests: readonly ProviderRequest[],
  { partners, lockWait }: { readonly partners: readonly number[]; readonly lockWait: LockWait },
): Promise<BatchLookup> {
  const named = requests.flatMap(({ slug, read }) => {
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
  // Only response.posted events lead to mails of ours.
  const posting = requests.filter(({ read }) =>
    read.events.some(({ type }) => type === "response.posted"),
  );
  // The statements are pipelined in this order. The look-up therefore sees the commits of the transactions whose
  // locks it waited for.
  const [, heldPartners, known, suppressing] = await Promise.all([
    lockWait === "rows and sequences" && waitForRows(tx, named),
    holdSequences(tx, partners, lockWait !== "nothing"),
    lookUp(tx, named),
    suppressingPartners(tx, partnersOf(posting)),
  ]);
  const found = {
    accepted: new Map<string, (typeof known)[number]>(),
    sites: new Map<number, Site>(),
    heldSites: new Set<number>(),
    heldPartners,
    suppressing,
    seen: new Set<Key<"provider-event">>(),
    existing: new Set<Key<"review">>(),
    reviews: new Map<Key<"review">, ReviewState>(),
    newIds: new Map<Key<"review">, number>(),
    profanity: new Map(requests.flatMap((one) => [...one.profanity])),
  };
  for (const one of known) {
    const { site, review, newId } = one;
    if (one.sealedSecret !== null) found.accepted.set(one.slug, one);
    const siteId = one.siteId ?? 0;
    const key = reviewKey(siteId, one.externalReviewId ?? "");
    // The copy of a locked row is preferred, because it is the current one.
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

interface Batch {
  readonly requests: readonly ProviderRequest[];
  readonly found: BatchLookup;
  readonly decisions: readonly BatchDecision[];
  readonly now: Date;
}

/** Writes the events of all accepted requests, in order, and returns the wakes for the dispatcher and the mailer. */
async function writeAll(
  tx: Tx,
  deps: Pick<BatcherDeps, "box">,
  { requests, found, decisions, now }: Batch,
): Promise<{ wakes: Wake[]; isMailed: boolean }> {
  const newEvents = decisions.map((one) => (one.kind === "accepted" ? one.newEvents : []));
  const events = newEvents.flat();
  if (events.length === 0) return { wakes: [], isMailed: false };
  const claims = requests.flatMap(({ slug }, i) =>
    (newEvents[i] ?? []).map(({ id }) => ({ slug, id })),
  );
  const { notices, ...outcome } = decideEvents(events, found);
  const actions = outcome.recorded.map((one) => toAction(one, now));
  const finish = async () => {
    await queueHomeownerNotices(tx, deps, notices, now);
    return recordActions(tx, actions, now);
  };
  // The statements are pipelined together with the commit, unless mails must be sealed first.
  const [, , , wakes] = await Promise.all([
    insertNew(tx, { claims, created: outcome.created, now }),
    outcome.reviews.length > 0 && updateReviews(tx, outcome.reviews, now),
    outcome.sites.length > 0 && updateSites(tx, outcome.sites),
    finish(),
  ]).catch((error: unknown) => {
    const isCollision = isUniqueViolation(error) || isLockTimeout(error);
    throw isCollision ? new Collision("", { cause: error }) : error;
  });
  return { wakes, isMailed: notices.length > 0 };
}

export const EVENTS_PER_BATCH = 256;
/**
 * The most characters of text in one batch: a few hundred reviews of usual length, or six of the longest. The bound
 * exists because all requests of a batch wait for its statements.
 */
export const CHARS_PER_BATCH = 131_072;

const LIMITS = {
  questions: 64,
  sizes: [
    { sizeOf: ({ read }: ProviderRequest) => read.references.length, atMost: EVENTS_PER_BATCH },
    { sizeOf: ({ read }: ProviderRequest) => charsOf(read.events), atMost: CHARS_PER_BATCH },
  ],
  waiting: 1_024,
  waitMs: 6_000,
};
/**
 * The most events of a request in a common batch. A larger request is written in its partner's queue, because it
 * would delay the requests of other partners.
 */
const MAX_EVENTS = 32;
/**
 * The time in milliseconds for which a deferred request is retried in its own transaction while others keep locking
 * the same rows.
 */
const AGAIN_MS = 2_000;

/**
 * **Group commit.** Requests that arrive while a transaction runs share the next batch, which locks with
 * `SKIP LOCKED` and waits for nothing. Two kinds of requests leave it, so that they do not delay other partners:
 *
 * - A request that is large, or whose partner's sequence is locked, goes to a queue of its partners. The batches of
 *   that queue wait for the sequence.
 * - A request that needs a row locked by another transaction, or whose batch could not be written, is processed
 *   individually and waits for all its locks.
 */
export function createBatcher(deps: BatcherDeps): Submit {
  const asNew = createNewReviewsWriter(deps);
  const submit: Submit = inBatches(
    deps.clock,
    async (requests: readonly ProviderRequest[]) =>
      (await asNew(requests)) ?? writeBatch(deps, requests, "nothing"),
    { ...LIMITS, gatherMs: 3 },
  );
  /** The queues that have requests, by their partners. A queue writes one batch at a time. */
  const queues = new Map<string, { submit: Submit; requests: number }>();
  const submitToQueue = async (partners: string, request: ProviderRequest) => {
    const queue = queues.get(partners) ?? {
      submit: inBatches(
        deps.clock,
        (given: readonly ProviderRequest[]) => writeBatch(deps, given, "sequences"),
        LIMITS,
      ),
      requests: 0,
    };
    queues.set(partners, queue);
    queue.requests++;
    try {
      return await queue.submit(request);
    } finally {
      queue.requests--;
      if (queue.requests === 0) queues.delete(partners);
    }
  };
  return async (request) => {
    const own = partnersOf([request]);
    const partners = own.join();
    const isBlocked = queues.has(partners) || deps.writerPool.isBlocked(own);
    let result: RequestResult = { kind: "deferred", reason: "sequence" };
    if (!isBlocked && !isLarge(request)) result = await submit(request);
    if (result.kind === "deferred" && result.reason === "sequence")
      result = await submitToQueue(partners, request);
    const untilMs = deps.clock.monotonicMs() + AGAIN_MS;
    let lost: BatchDecision | undefined;
    while (
      result.kind === "deferred" &&
      result.reason !== "secret" &&
      deps.clock.monotonicMs() <= untilMs
    ) {
      // A later try finds new events only if none of the tries before it was committed.
      if (result.reason === "write" && hasNewEvents(result.lost)) ({ lost } = result);
      [result = result] = await writeBatch(deps, [request], "rows and sequences");
    }
    // None of the events is new any more, so the try whose outcome was unknown has written them.
    return result.kind === "accepted" && result.accepted === 0 && lost?.kind === "accepted"
      ? { ...result, accepted: lost.newEvents.length }
      : result;
  };
}

function hasNewEvents(decision: BatchDecision | undefined): boolean {
  return decision?.kind === "accepted" && decision.newEvents.length > 0;
}

function isLarge({ read }: ProviderRequest): boolean {
  return read.references.length > MAX_EVENTS || charsOf(read.events) > CHARS_PER_BATCH;
}
