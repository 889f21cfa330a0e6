import type { Clock } from "./clock.ts";
import { unavailable } from "./problem.ts";

interface GroupOptions<Q> {
  /** Of one group: questions, and the sum of their sizes; one question alone may be larger. */
  readonly questions: number;
  readonly size: number;
  readonly sizeOf: (question: Q) => number;
  /** How many may wait for the next group. */
  readonly waiting: number;
  /** How long the answer to one group keeps the next one waiting. */
  readonly waitMs: number;
}

interface Waiting<Q, A> {
  readonly question: Q;
  readonly resolve: (answer: A) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Answers questions in groups, one group at a time, without a timer: a group is what was asked while the one before was
 * answered, in the order in which it was asked, and whoever asks while there is none is a group alone. `answer` answers
 * each question at its place; what it throws is thrown to all of the group. Throws `unavailable` beyond the bounds.
 */
export function inGroups<Q, A>(
  clock: Clock,
  answer: (questions: readonly Q[]) => Promise<readonly A[]>,
  options: GroupOptions<Q>,
): (question: Q) => Promise<A> {
  const waiting: Waiting<Q, A>[] = [];
  let isAnswering = false;
  const next = () => {
    let [count, size] = [0, 0];
    for (const { question } of waiting) {
      size += options.sizeOf(question);
      if (count > 0 && (count >= options.questions || size > options.size)) break;
      count++;
    }
    return waiting.splice(0, count);
  };
  const run = async () => {
    isAnswering = true;
    while (waiting.length > 0) {
      const group = next();
      await settleBefore(clock, options.waitMs, answerAll(group, answer), waiting);
    }
    isAnswering = false;
  };
  return (question) => {
    if (waiting.length >= options.waiting) return Promise.reject(unavailable());
    const { promise, resolve, reject } = Promise.withResolvers<A>();
    waiting.push({ question, resolve, reject });
    if (!isAnswering) void run();
    return promise;
  };
}

async function answerAll<Q, A>(
  group: readonly Waiting<Q, A>[],
  answer: (questions: readonly Q[]) => Promise<readonly A[]>,
): Promise<void> {
  try {
    const answers = await answer(group.map(({ question }) => question));
    if (answers.length !== group.length) throw new Error("Not every question was answered.");
    for (const [i, one] of answers.entries()) group[i]?.resolve(one);
  } catch (error) {
    for (const { reject } of group) reject(error);
  }
}

/** Waits until the group is answered; who has waited all of `waitMs` for that is refused meanwhile. */
async function settleBefore<Q, A>(
  clock: Clock,
  waitMs: number,
  answered: Promise<void>,
  waiting: Waiting<Q, A>[],
): Promise<void> {
  const settled = new AbortController();
  const waitedFor = waiting.length;
  void clock.sleep(waitMs, settled.signal).then(() => {
    if (settled.signal.aborted) return;
    for (const { reject } of waiting.splice(0, waitedFor)) reject(unavailable());
  });
  await answered;
  settled.abort();
}
