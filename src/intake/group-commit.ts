import type { Db, Tx } from "../../db/client.ts";
import { isDeadlock, isOutcomeUnknown, isStoreFailure } from "../../db/errors.ts";
import { inBatches, nextTurn } from "../lib/batches.ts";
import type { Clock } from "../lib/clock.ts";
import { fieldsOf } from "../lib/fields.ts";
import { errorFields, type Log } from "../lib/log.ts";
import { Problem, unavailable } from "../lib/problem.ts";
import type { Waker } from "../outbox/schedule.ts";
import type { WriterPool } from "../outbox/writer-pool.ts";
import { decideRequests, isInvalid } from "./admit.ts";
import { type Decision, type IntakeRequest, partnersOf, type RequestResult } from "./change.ts";
import { createNewReviewsWriter } from "./new-reviews.ts";
import type { NoticeDeps } from "./notices.ts";
import { isRecorded } from "./queries/new-reviews.ts";
import { type Locks, partnersNamed, readState } from "./state.ts";
import { Collision, wakeAfter, writeAll } from "./write.ts";

export interface IntakeDeps extends NoticeDeps {
  readonly db: Db;
  readonly writerPool: WriterPool;
  readonly clock: Clock;
  readonly schedule: Waker;
  readonly log: Log;
  /** Receives the instants of a request's changes, which link its trace to its deliveries. Absent if tracing is off. */
  readonly traces?: { came(instants: readonly Date[]): void } | undefined;
}

/** The decision about a request. `deferred` means that the signature of a provider's request must be verified again. */
export type Answer =
  | Exclude<Decision, { kind: "deferred" }>
  | { readonly kind: "deferred"; readonly reason: "secret" };

/** Writes all changes of a request, or none. Throws `unavailable` and `outcome_unknown` (contract 2.5). */
export type Intake = (request: IntakeRequest) => Promise<Answer>;

/**
 * Decides about requests and writes their changes in one transaction. It locks rows before sequences, in a fixed order,
 * and after the look-up waits at most 100 ms for a lock. So these transactions cannot deadlock with each other.
 */
async function writeBatch(
  deps: IntakeDeps,
  requests: readonly IntakeRequest[],
  locks: Locks,
): Promise<RequestResult[]> {
  const now = deps.clock.now();
  let tried: readonly Decision[] = [];
  const work = async (tx: Tx) => {
    const decided = decideRequests(requests, await readState(tx, requests, locks), now);
    const { decisions } = decided;
    tried = decisions;
    return { decisions, written: await writeAll(tx, deps, decided, now) };
  };
  const { partners, wait } = locks;
  try {
    const { decisions, written } =
      wait === "nothing"
        ? await deps.writerPool.group(work)
        : await deps.writerPool.transaction(partners, work, { readsFirst: true });
    wakeAfter(deps.schedule, written);
    return [...decisions];
  } catch (error) {
    // The response to the commit was lost, so every request is deferred. If the commit took effect, the next try of a
    // request finds the ids of its changes.
    if (isOutcomeUnknown(error)) {
      deps.log.warn("intake.outcome_unknown", { requests: requests.length, ...errorFields(error) });
      return requests.map((_, i) => {
        const lost = tried[i];
        return { kind: "deferred", reason: "write", ...(lost !== undefined && { lost }) };
      });
    }
    // Any error except a lost response means that the transaction was rolled back. A single request may have caused the
    // error, so each request is retried in its own transaction, unless the database itself failed.
    if (isStoreFailure(error) && !isDeadlock(error)) throw error;
    const isCollision = error instanceof Collision || isDeadlock(error);
    if (wait === "rows and sequences" && !isCollision) throw error;
    const { cause = error } = fieldsOf(error);
    deps.log.warn("intake.batch_split", { requests: requests.length, ...errorFields(cause) });
    return requests.map(() => ({ kind: "deferred", reason: "write" }));
  }
}

export const CHANGES_PER_BATCH = 256;
/**
 * Maximum number of characters of text in one batch of requests: a few hundred reviews of usual length, or six of the
 * longest. It is bounded because all requests of a batch wait for its statements.
 */
export const CHARS_PER_BATCH = 131_072;

const BATCH_LIMITS = {
  items: 64,
  sizes: [
    { sizeOf: changesOf, atMost: CHANGES_PER_BATCH },
    { sizeOf: ({ chars }: IntakeRequest) => chars, atMost: CHARS_PER_BATCH },
  ],
  waiting: 1_024,
  waitMs: 6_000,
};
/**
 * Maximum number of changes of a request in a shared batch. A larger request is written by its partner's queue, because
 * it would delay the requests of other partners.
 */
const MAX_CHANGES = 32;
/** Time in ms for which a deferred request is retried in its own transaction while other transactions lock its rows. */
const RETRY_MS = 2_000;

/** Maximum number of retries of a request for whose commit the response was lost. */
const MAX_LOST = 3;

/** Returns the number of look-ups that a request adds to a batch. */
function changesOf(request: IntakeRequest): number {
  switch (request.sender) {
    case "provider":
      return request.read.references.length;
    case "service":
      return request.changes.length;
    case "account":
      return 1;
  }
}

const isLarge = (request: IntakeRequest): boolean =>
  changesOf(request) > MAX_CHANGES || request.chars > CHARS_PER_BATCH;

/**
 * **Group commit.** Requests that arrive while a transaction runs share the next batch, which locks with `SKIP LOCKED`
 * and never waits for a lock. Two kinds of requests are taken out of this batch, so that they do not delay other
 * partners:
 *
 * - A request that is large, or whose partner's sequence is locked, goes to a queue of its partners. The batches of
 *   that queue wait for the sequence.
 * - A request that needs a row locked by another transaction, or whose batch could not be written, is processed
 *   individually and waits for all its locks.
 *
 * If the response to a commit is lost, the request of a provider or a service is tried again. If the commit took
 * effect, the ids of its changes are known, and the result is that of the first try. A user's action has no id. It is
 * tried again only if the lost commit wrote nothing of it, because it was refused, deferred or changed nothing.
 */
export function createIntake(deps: IntakeDeps): Intake {
  const asNew = createNewReviewsWriter(deps);
  const writeTogether = (requests: readonly IntakeRequest[]) =>
    writeBatch(deps, requests, {
      partners: partnersOf(requests.filter((one) => !isRefused(one))),
      wait: "nothing",
    });
  const submit: SubmitRequest = inBatches(
    deps.clock,
    async (requests: readonly IntakeRequest[]) =>
      (await asNew(requests)) ?? writeTogether(requests),
    { ...BATCH_LIMITS, gatherMs: 3 },
  );
  const queues = createQueues(deps);
  return async (request) => {
    deps.traces?.came(instantsOf(request));
    const known = partnersOf([request]);
    const isBlocked = known.length > 0 && (queues.has(known) || deps.writerPool.isBlocked(known));
    let result: RequestResult = { kind: "deferred", reason: "sequence" };
    if (!isBlocked && !isLarge(request)) result = await submit(request);
    if (isSettled(result)) return result;
    const partners = await partnersNamed(deps.db, request);
    if (result.reason === "sequence") result = await queues.submit(partners, request);
    const untilMs = deps.clock.monotonicMs() + RETRY_MS;
    const lost: Decision[] = [];
    const eventId =
      result.kind === "deferred" && result.reason === "write" ? result.eventId : undefined;
    while (!isSettled(result)) {
      if (result.reason === "write" && result.lost !== undefined) lost.push(result.lost);
      if (request.sender === "account" && lost.some(isWritten))
        throw new Problem("outcome_unknown");
      if (lost.length > MAX_LOST || deps.clock.monotonicMs() > untilMs) throw unavailable();
      // The retry waits for the next turn of the event loop, because the driver reports a lost database connection a
      // moment before it stops using it.
      if (lost.length > 0) await nextTurn();
      [result = result] = await writeBatch(deps, [request], {
        partners,
        wait: "rows and sequences",
      });
    }
    // If no change of the request is new any more, a try whose response was lost has written them. A try finds new ids
    // only if no earlier try was committed. So the last try that found new ids was committed, its counts are right, and
    // it is the answer.
    const wrote = lost.findLast((one) => one.kind === "accepted" && one.accepted > 0);
    const isKnown = result.kind === "accepted" && result.accepted === 0;
    if (!isKnown || wrote?.kind !== "accepted") return result;
    // A first try without a look-up may have counted known ids as new. It is the answer only if its first event was
    // recorded.
    const isWrote =
      wrote !== lost[0] || eventId === undefined || (await isRecorded(deps.db, eventId));
    return isWrote ? wrote : result;
  };
}

/** Returns whether a commit with this decision wrote changes of the request. */
const isWritten = (decision: Decision): boolean =>
  decision.kind === "accepted" && decision.accepted > decision.unchanged;

const isRefused = (request: IntakeRequest): boolean =>
  request.sender === "provider" && isInvalid(request.read);

const isSettled = (result: RequestResult): result is Answer =>
  result.kind !== "deferred" || result.reason === "secret";

function instantsOf(request: IntakeRequest): Date[] {
  if (request.sender === "account") return [request.at];
  const { changes } = request.sender === "provider" ? request.read : request;
  return changes.map(({ occurredAt }) => occurredAt);
}

type SubmitRequest = (request: IntakeRequest) => Promise<RequestResult>;

/** Creates the queues of partners. A queue exists while it contains requests, and writes one batch at a time. */
function createQueues(deps: IntakeDeps) {
  const queues = new Map<string, { readonly submit: SubmitRequest; requests: number }>();
  const open = (partners: readonly number[]) => ({
    submit: inBatches<IntakeRequest, RequestResult>(
      deps.clock,
      (requests) => writeBatch(deps, requests, { partners, wait: "sequences" }),
      BATCH_LIMITS,
    ),
    requests: 0,
  });
  return {
    has: (partners: readonly number[]) => queues.has(partners.join()),
    async submit(partners: readonly number[], request: IntakeRequest): Promise<RequestResult> {
      const key = partners.join();
      const queue = queues.get(key) ?? open(partners);
      queues.set(key, queue);
      queue.requests++;
      try {
        return await queue.submit(request);
      } finally {
        queue.requests--;
        if (queue.requests === 0) queues.delete(key);
      }
    },
  };
}
