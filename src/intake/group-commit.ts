import type { Db, Tx } from "../../db/client.ts";
import { isDeadlock, isOutcomeUnknown, isStoreFailure } from "../../db/errors.ts";
import { inBatches, nextTurn } from "../lib/batches.ts";
import type { Clock } from "../lib/clock.ts";
import { errorFields, type Log } from "../lib/log.ts";
import { Problem, unavailable } from "../lib/problem.ts";
import type { SecretBox } from "../lib/secret-box.ts";
import type { Waker } from "../outbox/schedule.ts";
import type { WriterPool } from "../outbox/writer-pool.ts";
import { decideRequests, isInvalid } from "./admit.ts";
import { type Decision, type IntakeRequest, partnersOf, type RequestResult } from "./change.ts";
import { createNewReviewsWriter } from "./new-reviews.ts";
import { isRecorded } from "./queries/new-reviews.ts";
import { type Locks, partnersNamed, readState } from "./state.ts";
import { Collision, wakeAfter, writeAll } from "./write.ts";

export interface IntakeDeps {
  readonly db: Db;
  readonly writerPool: WriterPool;
  readonly clock: Clock;
  readonly box: SecretBox;
  readonly schedule: Waker;
  readonly log: Log;
  /** Receives the instants of a request's changes, which link its trace to its deliveries. Absent without tracing. */
  readonly traces?: { came(instants: readonly Date[]): void } | undefined;
}

/** The answer to a request. A provider's request is deferred if its signature has to be verified again. */
export type Answer =
  | Exclude<Decision, { kind: "deferred" }>
  | { readonly kind: "deferred"; readonly reason: "secret" };

/** Takes all changes of a request, or none. Throws `unavailable` and `outcome_unknown` (contract 2.5). */
export type Intake = (request: IntakeRequest) => Promise<Answer>;

/**
 * Takes requests in one transaction. It locks rows before sequences, in one order, and waits at most 100 ms for any lock after
 * the look-up, so that these transactions cannot deadlock with each other.
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
    // The next try finds the ids of the changes if they were committed.
    if (isOutcomeUnknown(error)) {
      deps.log.warn("intake.outcome_unknown", { requests: requests.length, ...errorFields(error) });
      return requests.map((_, i) => {
        const lost = tried[i];
        return { kind: "deferred", reason: "write", ...(lost !== undefined && { lost }) };
      });
    }
    // After any other error the transaction is rolled back. A single request may have caused it, so each one is retried
    // in its own transaction, unless the store failed.
    if (isStoreFailure(error) && !isDeadlock(error)) throw error;
    const isCollision = error instanceof Collision || isDeadlock(error);
    if (wait === "rows and sequences" && !isCollision) throw error;
    const { cause = error } = Object(error);
    deps.log.warn("intake.batch_split", { requests: requests.length, ...errorFields(cause) });
    return requests.map(() => ({ kind: "deferred", reason: "write" }));
  }
}

export const CHANGES_PER_BATCH = 256;
/**
 * The most characters of text in one batch: a few hundred reviews of usual length, or six of the longest. The bound
 * exists because all requests of a batch wait for its statements.
 */
export const CHARS_PER_BATCH = 131_072;

const LIMITS = {
  questions: 64,
  sizes: [
    { sizeOf: changesOf, atMost: CHANGES_PER_BATCH },
    { sizeOf: ({ chars }: IntakeRequest) => chars, atMost: CHARS_PER_BATCH },
  ],
  waiting: 1_024,
  waitMs: 6_000,
};
/**
 * The most changes of a request in a common batch. A larger request is written in its partner's queue, because it
 * would delay the requests of other partners.
 */
const MAX_CHANGES = 32;
/**
 * The time in milliseconds for which a deferred request is retried in its own transaction while others keep locking
 * the same rows.
 */
const AGAIN_MS = 2_000;

/** How often a request is tried again whose commit was not answered. */
const MAX_LOST = 3;

/** Counts what a request adds to the look-ups of a batch. */
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
 * **Group commit.** Requests that arrive while a transaction runs share the next batch, which locks with
 * `SKIP LOCKED` and waits for nothing. Two kinds of requests leave it, so that they do not delay other partners:
 *
 * - A request that is large, or whose partner's sequence is locked, goes to a queue of its partners. The batches of
 *   that queue wait for the sequence.
 * - A request that needs a row locked by another transaction, or whose batch could not be written, is processed
 *   individually and waits for all its locks.
 *
 * If the answer of a commit is lost, the request of a provider or a service is tried again: its ids are claimed if the commit
 * took effect, and the answer is then that of the first try. The action of a person has no id. It is tried again only if the
 * lost commit had nothing of it, because it was refused, deferred or changed nothing.
 */
export function createIntake(deps: IntakeDeps): Intake {
  const asNew = createNewReviewsWriter(deps);
  const writeTogether = (requests: readonly IntakeRequest[]) =>
    writeBatch(deps, requests, {
      partners: partnersOf(requests.filter((one) => !isRefused(one))),
      wait: "nothing",
    });
  const submit: Submit = inBatches(
    deps.clock,
    async (requests: readonly IntakeRequest[]) =>
      (await asNew(requests)) ?? writeTogether(requests),
    { ...LIMITS, gatherMs: 3 },
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
    const untilMs = deps.clock.monotonicMs() + AGAIN_MS;
    const lost: Decision[] = [];
    const eventId =
      result.kind === "deferred" && result.reason === "write" ? result.eventId : undefined;
    while (!isSettled(result)) {
      if (result.reason === "write" && result.lost !== undefined) lost.push(result.lost);
      if (request.sender === "account" && lost.some(isWritten))
        throw new Problem("outcome_unknown");
      if (lost.length > MAX_LOST || deps.clock.monotonicMs() > untilMs) throw unavailable();
      // The driver tells of a lost connection a moment before it stops using it.
      if (lost.length > 0) await nextTurn();
      [result = result] = await writeBatch(deps, [request], {
        partners,
        wait: "rows and sequences",
      });
    }
    // None of the changes is new any more, so the try whose outcome was unknown has written them.
    // A try finds new ids only if none before it was committed, so the last one with new ids tells the counts.
    const wrote = lost.findLast((one) => one.kind === "accepted" && one.accepted > 0);
    const isKnown = result.kind === "accepted" && result.accepted === 0;
    if (!isKnown || wrote?.kind !== "accepted") return result;
    // Without a look-up, the first try counted ids as new that may have been known.
    const isWrote =
      wrote !== lost[0] || eventId === undefined || (await isRecorded(deps.db, eventId));
    return isWrote ? wrote : result;
  };
}

/** Whether a commit has something of a request about which this was decided. */
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

type Submit = (request: IntakeRequest) => Promise<RequestResult>;

/** Makes the queues of partners. A queue exists while it has requests, and writes one batch at a time. */
function createQueues(deps: IntakeDeps) {
  const queues = new Map<string, { readonly submit: Submit; requests: number }>();
  const open = (partners: readonly number[]) => ({
    submit: inBatches<IntakeRequest, RequestResult>(
      deps.clock,
      (requests) => writeBatch(deps, requests, { partners, wait: "sequences" }),
      LIMITS,
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
