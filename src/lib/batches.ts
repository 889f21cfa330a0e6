import type { Clock } from "./clock.ts";
import { unavailable } from "./problem.ts";

/** A bound on the sum of a size over the questions of one group; one question alone may be larger. */
interface SizeBound<Q> {
  readonly sizeOf: (question: Q) => number;
  readonly atMost: number;
}

interface BatchOptions<Q> {
  /** Of one group. */
  readonly questions: number;
  readonly sizes?: readonly SizeBound<Q>[];
  /** How many may wait for the next group, and for how long. */
  readonly waiting: number;
  readonly waitMs: number;
  /**
   * After a group of at least `CROWD` requests was answered, the next group waits up to this long for as many requests as
   * there were then, because closed-loop clients send their next request at once. Absent, it never waits.
   */
  readonly gatherMs?: number;
  /**
   * When a group takes longer than `patienceMs`, the next one no longer waits for it, up to so many at a time: one that
   * is stuck with a dead connection holds nobody up. Without it one group is answered at a time, whatever it takes.
   */
  readonly beside?: { readonly groups: number; readonly patienceMs: number };
}

interface Waiting<Q, A> {
  readonly question: Q;
  readonly sinceMs: number;
  readonly resolve: (answer: A) => void;
  readonly reject: (reason: unknown) => void;
}

/** How often it is looked whether somebody has waited for too long: a timer for each would cost more than the wait. */
const LOOK_MS = 1_000;

/**
 * Answers questions in groups, one group at a time: a group is what was asked while the one before was answered, and until
 * a turn of the event loop brings nobody more, in the order in which it was asked. A question that comes alone waits for
 * no timer. `answer` answers each question at its place, and is called after it was asked; what it throws is thrown to all
 * of the group. Throws `unavailable` beyond the bounds.
 */
export function inBatches<Q, A>(
  clock: Clock,
  answer: (questions: readonly Q[]) => Promise<readonly A[]>,
  options: BatchOptions<Q>,
): (question: Q) => Promise<A> {
  const waiting: Waiting<Q, A>[] = [];
  const { groups, patienceMs } = options.beside ?? { groups: 1, patienceMs: 0 };
  let [answering, newestMs, isLooking] = [0, 0, false];
  // Those who ask at the same time are not all read in one turn: the first would be a group alone, and all the others wait
  // for it.
  const allCame = async () => {
    for (let seen = 0; seen < waiting.length && waiting.length < options.questions;) {
      seen = waiting.length;
      await nextTurn();
    }
  };
  const gathering = gatherer(clock, options);
  const run = async () => {
    answering += 1;
    while (waiting.length > 0) {
      newestMs = clock.monotonicMs();
      await allCame();
      await gathering.wait(waiting.length);
      const group = waiting.splice(0, sizeOfNext(waiting, options));
      const tell = await answersOf(group, answer);
      gathering.answered(group.length + waiting.length);
      tell();
    }
    answering -= 1;
  };
  const isFree = () =>
    answering === 0 || (answering < groups && clock.monotonicMs() - newestMs > patienceMs);
  const look = async () => {
    isLooking = true;
    while (waiting.length > 0) {
      await clock.sleep(LOOK_MS);
      const sinceMs = clock.monotonicMs() - options.waitMs;
      while ((waiting[0]?.sinceMs ?? Infinity) < sinceMs) waiting.shift()?.reject(unavailable());
      if (waiting.length > 0 && isFree()) void run();
    }
    isLooking = false;
  };
  return (question) => {
    if (waiting.length >= options.waiting) return Promise.reject(unavailable());
    const { promise, resolve, reject } = Promise.withResolvers<A>();
    waiting.push({ question, sinceMs: clock.monotonicMs(), resolve, reject });
    gathering.came(waiting.length);
    if (isFree()) void run();
    else if (!isLooking) void look();
    return promise;
  };
}

/** Fewer requests often arrive together by chance, from clients that send no next request at once. */
const CROWD = 4;

/**
 * Keeps closed-loop clients in one group. Without it they split into two halves that alternate, because the requests of
 * one half arrive while the other half is being answered; one group needs one transaction instead of two.
 */
function gatherer(clock: Clock, { gatherMs = 0, questions }: BatchOptions<never>) {
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
    came(waiting: number): void {
      if (waiting >= expected) isEnough?.abort("enough");
    },
    answered(present: number): void {
      expected = present < CROWD ? 0 : Math.min(present, questions);
      untilMs = clock.monotonicMs() + gatherMs;
    },
  };
}

/** How many of those that wait, from the first on, fit into one group. */
function sizeOfNext<Q>(
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

/** Lets the event loop turn once. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** What tells each of the group its answer. */
async function answersOf<Q, A>(
  group: readonly Waiting<Q, A>[],
  answer: (questions: readonly Q[]) => Promise<readonly A[]>,
): Promise<() => void> {
  // A group beside this one may have taken all of them.
  if (group.length === 0) return () => {};
  try {
    const answers = await answer(group.map(({ question }) => question));
    if (answers.length !== group.length) throw new Error("Not every question was answered.");
    return () => {
      for (const [i, one] of answers.entries()) group[i]?.resolve(one);
    };
  } catch (error) {
    return () => {
      for (const { reject } of group) reject(error);
    };
  }
}

/** Makes each value once. Past the limit all are forgotten: each is then made once more. */
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
