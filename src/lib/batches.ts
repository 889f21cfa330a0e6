import type { Clock } from "./clock.ts";
import { unavailable } from "./problem.ts";

/**
 * Limits the sum of a size over the questions of one batch. A single question may exceed the limit; it is then a
 * batch by itself.
 */
interface SizeBound<Q> {
  readonly sizeOf: (question: Q) => number;
  readonly atMost: number;
}

interface BatchOptions<Q> {
  /** The highest number of questions in one batch. */
  readonly questions: number;
  readonly sizes?: readonly SizeBound<Q>[];
  /**
   * The highest number of questions that may wait for a later batch, and the longest time in milliseconds that they
   * wait.
   */
  readonly waiting: number;
  readonly waitMs: number;
  /**
   * The longest wait in milliseconds for more questions before a batch starts. It applies after a batch of at least
   * `MIN_TO_GATHER` questions, because closed-loop clients send their next request immediately. The wait ends early
   * when as many questions wait as were answered by that batch or left over by it. If absent, a batch never waits.
   */
  readonly gatherMs?: number;
  /**
   * Lets further batches start, up to `groups` at the same time, while the newest batch has been running for more
   * than `patienceMs`. A batch that hangs on a dead connection then blocks nobody. If absent, batches run strictly
   * one after another.
   */
  readonly beside?: { readonly groups: number; readonly patienceMs: number };
}

interface Waiting<Q, A> {
  readonly question: Q;
  readonly sinceMs: number;
  readonly resolve: (answer: A) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Interval in milliseconds of the check for questions that have waited too long. One timer per question would cost
 * more than the check.
 */
const CHECK_MS = 1_000;

/**
 * Group commit: answers concurrent questions in batches, so that a batch can share one transaction. Questions that
 * arrive while a batch runs form the next one, in the order of their arrival. A question that arrives while nothing
 * runs starts a batch without a timer, after the event loop has turned without bringing another question.
 *
 * `answer` returns the answers in the order of the questions. If it throws, every question of the batch rejects with
 * that error. A question rejects with `unavailable` if too many wait already, or if it has waited for `waitMs`.
 */
export function inBatches<Q, A>(
  clock: Clock,
  answer: (questions: readonly Q[]) => Promise<readonly A[]>,
  options: BatchOptions<Q>,
): (question: Q) => Promise<A> {
  const waiting: Waiting<Q, A>[] = [];
  const { groups, patienceMs } = options.beside ?? { groups: 1, patienceMs: 0 };
  let [answering, newestMs, isChecking] = [0, 0, false];
  // Requests that arrive at the same time are read in several turns of the event loop. Without this wait the first one
  // would form a batch by itself, and all others would wait for it.
  const allArrived = async () => {
    for (let seen = 0; seen < waiting.length && waiting.length < options.questions;) {
      seen = waiting.length;
      await nextTurn();
    }
  };
  const gathering = createGatherer(clock, options);
  const run = async () => {
    answering += 1;
    while (waiting.length > 0) {
      newestMs = clock.monotonicMs();
      await allArrived();
      await gathering.wait(waiting.length);
      const batch = waiting.splice(0, sizeOfNextBatch(waiting, options));
      const settle = await answersOf(batch, answer);
      gathering.answered(batch.length + waiting.length);
      settle();
    }
    answering -= 1;
  };
  const isFree = () =>
    answering === 0 || (answering < groups && clock.monotonicMs() - newestMs > patienceMs);
  const checkWaits = async () => {
    isChecking = true;
    while (waiting.length > 0) {
      await clock.sleep(CHECK_MS);
      const sinceMs = clock.monotonicMs() - options.waitMs;
      while ((waiting[0]?.sinceMs ?? Infinity) < sinceMs) waiting.shift()?.reject(unavailable());
      if (waiting.length > 0 && isFree()) void run();
    }
    isChecking = false;
  };
  return (question) => {
    if (waiting.length >= options.waiting) return Promise.reject(unavailable());
    const { promise, resolve, reject } = Promise.withResolvers<A>();
    waiting.push({ question, sinceMs: clock.monotonicMs(), resolve, reject });
    gathering.arrived(waiting.length);
    if (isFree()) void run();
    else if (!isChecking) void checkWaits();
    return promise;
  };
}

/**
 * The fewest questions of a batch after which the next batch waits for more questions. Smaller batches often arise by
 * chance, from clients that do not send their next request immediately.
 */
const MIN_TO_GATHER = 4;

/**
 * Keeps closed-loop clients in one batch. Without the wait they split into two halves that alternate, because the
 * requests of one half arrive while the other half is being answered. One batch needs one transaction instead of two.
 */
function createGatherer(clock: Clock, { gatherMs = 0, questions }: BatchOptions<never>) {
  let [expected, untilMs] = [0, 0];
  let isEnough: AbortController | undefined;
  return {
    async wait(waiting: number): Promise<void> {
      const leftMs = untilMs - clock.monotonicMs();
      if (waiting >= expected || leftMs <= 0) return;
      isEnough = new AbortController();
      await clock.sleep(leftMs, isEnough.signal);
      isEnough = undefined;
    },
    arrived(waiting: number): void {
      if (waiting >= expected) isEnough?.abort("enough");
    },
    answered(present: number): void {
      expected = present < MIN_TO_GATHER ? 0 : Math.min(present, questions);
      untilMs = clock.monotonicMs() + gatherMs;
    },
  };
}

/** Counts the waiting questions, from the first one on, that fit into one batch. */
function sizeOfNextBatch<Q>(
  waiting: readonly Pick<Waiting<Q, never>, "question">[],
  { questions, sizes = [] }: BatchOptions<Q>,
): number {
  const sums = sizes.map((bound) => ({ ...bound, sum: 0 }));
  let count = 0;
  for (const { question } of waiting) {
    for (const one of sums) one.sum += one.sizeOf(question);
    const isFull = count >= questions || sums.some(({ sum, atMost }) => sum > atMost);
    if (count > 0 && isFull) break;
    count++;
  }
  return count;
}

/** Waits until the event loop has turned once. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Answers a batch. The returned function passes each question its answer or the error. */
async function answersOf<Q, A>(
  batch: readonly Waiting<Q, A>[],
  answer: (questions: readonly Q[]) => Promise<readonly A[]>,
): Promise<() => void> {
  // Another batch that runs at the same time may have taken all waiting questions.
  if (batch.length === 0) return () => {};
  try {
    const answers = await answer(batch.map(({ question }) => question));
    if (answers.length !== batch.length) throw new Error("Not every question was answered.");
    return () => {
      for (const [i, one] of answers.entries()) batch[i]?.resolve(one);
    };
  } catch (error) {
    return () => {
      for (const { reject } of batch) reject(error);
    };
  }
}

/** Memoizes `make`. When `limit` values are cached, all of them are dropped, and each is made again on its next use. */
export function remember<K, V>(
  make: (key: K) => V,
  limit = Number.POSITIVE_INFINITY,
): (key: K) => V {
  const made = new Map<K, V>();
  return (key) => {
    const known = made.get(key);
    if (known !== undefined) return known;
    if (made.size >= limit) made.clear();
    const value = make(key);
    made.set(key, value);
    return value;
  };
}
