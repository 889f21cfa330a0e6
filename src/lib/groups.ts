import type { Clock } from "./clock.ts";
import { unavailable } from "./problem.ts";

/** A bound on the sum of a size over the questions of one group; one question alone may be larger. */
interface SizeBound<Q> {
  readonly sizeOf: (question: Q) => number;
  readonly atMost: number;
}

interface GroupOptions<Q> {
  /** Of one group. */
  readonly questions: number;
  readonly sizes?: readonly SizeBound<Q>[];
  /** How many may wait for the next group, and for how long. */
  readonly waiting: number;
  readonly waitMs: number;
  /** Before it is answered, a group waits for those who are about to ask; for `ARRIVAL_MS` at most. */
  readonly arrivals?: Arrivals;
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
export function inGroups<Q, A>(
  clock: Clock,
  answer: (questions: readonly Q[]) => Promise<readonly A[]>,
  options: GroupOptions<Q>,
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
  const run = async () => {
    answering += 1;
    while (waiting.length > 0) {
      newestMs = clock.monotonicMs();
      await allCame();
      if (waiting.length < options.questions && (await options.arrivals?.settled(clock)))
        await allCame();
      const group = waiting.splice(0, sizeOfNext(waiting, options));
      await answerAll(group, answer);
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
    if (isFree()) void run();
    else if (!isLooking) void look();
    return promise;
  };
}

const ARRIVAL_MS = 3;

/** Those who have begun what ends in a question, such as a request whose signature is checked. */
export class Arrivals {
  readonly #pending = new Set<Promise<unknown>>();

  add<T>(arrival: Promise<T>): Promise<T> {
    this.#pending.add(arrival);
    return arrival.finally(() => this.#pending.delete(arrival));
  }

  /**
   * Waits for those who have begun by now; false if nobody has. Without it, clients that ask again once they are answered are two halves in
   * turns, whatever they were at first: what is asked while one half is answered is the other half.
   */
  async settled(clock: Clock): Promise<boolean> {
    if (this.#pending.size === 0) return false;
    const enough = new AbortController();
    const all = Promise.allSettled(this.#pending);
    await Promise.race([all, clock.sleep(ARRIVAL_MS, enough.signal)]);
    enough.abort("enough");
    return true;
  }
}

/** How many of those that wait, from the first on, fit into one group. */
function sizeOfNext<Q>(
  waiting: readonly Pick<Waiting<Q, never>, "question">[],
  { questions, sizes = [] }: GroupOptions<Q>,
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

async function answerAll<Q, A>(
  group: readonly Waiting<Q, A>[],
  answer: (questions: readonly Q[]) => Promise<readonly A[]>,
): Promise<void> {
  // A group beside this one may have taken all of them.
  if (group.length === 0) return;
  try {
    const answers = await answer(group.map(({ question }) => question));
    if (answers.length !== group.length) throw new Error("Not every question was answered.");
    for (const [i, one] of answers.entries()) group[i]?.resolve(one);
  } catch (error) {
    for (const { reject } of group) reject(error);
  }
}
