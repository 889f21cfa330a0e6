import { expect, test } from "bun:test";

import type { Facts, Operation } from "../../verdicts/facts.ts";
import { countersFollowRecords } from "../../verdicts/state.ts";
import { findViolations, judge } from "../../verdicts/violations.ts";
import {
  accepted,
  at,
  crash,
  facts,
  history,
  logged,
  post,
  POSTS,
  queued,
  record,
  RECORDS,
  settled,
  sign,
  subscription,
  SUBSCRIPTION,
  wrongAnswer,
} from "./valid-facts.ts";

const asked = (operation: Partial<Operation> & Pick<Operation, "kind">): Operation => ({
  subscriptionId: SUBSCRIPTION,
  startedMs: at(0),
  endedMs: at(0) + 20,
  status: 200,
  ...operation,
});
const operations = facts().operations;
const audit = facts().audit;
const without = (sequence: number) => ({
  posts: POSTS.filter(({ eventId }) => eventId !== `E${sequence}`),
  attempts: RECORDS.filter((row) => row.sequence !== sequence),
});
const down = { ...subscription, state: "disabled", failures: 20, lastSequence: 20 } as const;

test("valid facts have no violations", () => {
  expect(findViolations(facts())).toEqual([]);
  expect(findViolations(facts(retried(200)))).toEqual([]);
  expect(findViolations(facts({ ...run(20), subscriptions: [down] }))).toEqual([]);
});

test("a receiver may miss what was skipped, what failed, and what came only after a crash", () => {
  expect(rulesOf(numbered([0, 1, 2]))).toEqual([]);
  const skipped = { ...numbered([0, 1, 2]), ...places(without(2), [0, 2]) };
  expect(rulesOf({ ...skipped, settled: [settled(2, "skipped")] })).not.toContain(MISSED);
  const late = {
    ...numbered([0, 1, 2]),
    posts: places({ posts: [POSTS[0], POSTS[2]] }, [0, 2]).posts,
  };
  const again = { ...post(2, { atMs: at(4) }), place: { sequence: 2, settled: 1 } };
  const posts = [...(late.posts ?? []), again];
  expect(rulesOf({ ...late, posts })).toContain(MISSED);
  expect(rulesOf({ ...late, posts, faults: [crash(at(3) + 500)] })).not.toContain(MISSED);
});

test("a rule whose part of the facts is absent is named, and the others judge", () => {
  const { exits: _exits, ...rest } = facts({ claims: new Set(["P1", "P2"]) });
  const { findings, unjudged } = judge(rest);
  expect(findings.map(({ rule }) => rule)).toEqual(["accepted is recorded"]);
  expect(unjudged).toEqual(["processes live"]);
});

test("an event that was skipped, or failed before it reached the receiver, counts as settled", () => {
  const posts = [POSTS[0], POSTS[2]];
  const unseen = record(2, post(2), { statusCode: null, outcome: "failed" });
  for (const changes of [{ settled: [{ ...settled(2, "skipped"), settledMs: at(2) }] }, {}])
    expect(rulesOf({ posts, attempts: [unseen], ...changes })).not.toContain("numbers are right");
  const late = { ...settled(2, "skipped"), settledMs: at(3) + 100 };
  expect(rulesOf({ posts, attempts: [], settled: [late] })).toContain("numbers are right");
});

test("the secret of a subscription whose create was not answered is the one at the end", () => {
  expect(rulesOf({ operations: [] })).not.toContain("signatures are valid");
  const finalSecrets = new Map([[SUBSCRIPTION, "another"]]);
  expect(rulesOf({ operations: [], finalSecrets })).toContain("signatures are valid");
});

test.each([
  ["is allowed while the name server is silent", 0, false],
  ["is allowed for 10 s after that", -10_000, false],
  ["is a violation later", -10_001, true],
])("a timeout without a request at the receiver %s", (_when, endsAfterMs, isFinding) => {
  const unseen = record(3, post(3), {
    statusCode: null,
    errorCode: "timeout",
    outcome: "retry",
    committedMs: at(3),
  });
  const found = rulesOf({
    posts: POSTS.slice(0, 2),
    attempts: [...RECORDS.slice(0, 2), unseen],
    faults: [
      { kind: "names: silent", target: "names", startedMs: 0, endedMs: at(3) + endsAfterMs },
    ],
  });
  expect(found.includes("no record without a POST")).toBe(isFinding);
});

test.each([
  ["6 s later while a row was locked", { endedMs: at(3) + 5_990 }, false],
  ["6 s later, after the lock", { endedMs: at(3) + 5_900 }, true],
  ["6 s later, and the lock ended before it", { startedMs: 0, endedMs: at(3) - 1 }, true],
])("a crash loses the record of a request: %s", (_when, lock, isFinding) => {
  const found = rulesOf({
    posts: [...POSTS, post(3, { atMs: at(3) })],
    faults: [
      crash(at(3), { target: "lock", kind: "row locked", startedMs: at(3) + 1_000, ...lock }),
      crash(at(3) + 6_000),
    ],
  });
  expect(found.includes("no POST without a record")).toBe(isFinding);
});

const MISSED = "missed events are found";

/** Gives each request the number of its event, and these numbers of settled events. */
function places(of: Pick<Facts, "posts">, through: readonly number[]): Pick<Facts, "posts"> {
  const posts = of.posts.map((one, i) => {
    const place = { sequence: Number(one.eventId.slice(1)), settled: through[i] ?? 0 };
    return { ...one, place };
  });
  return { ...of, posts };
}

const numbered = (through: readonly number[]): Partial<Facts> => ({
  subscriptions: [{ ...subscription, sequenceHeaders: true }],
  ...places({ posts: POSTS }, through),
});

const VIOLATIONS: readonly [rule: string, what: string, changes: Partial<Facts>][] = [
  [
    "answers are right",
    "a request is answered 500",
    { wrongAnswers: [wrongAnswer({ status: 500 })] },
  ],
  [
    "answers are right",
    "an existing subscription is answered 404",
    { wrongAnswers: [wrongAnswer()] },
  ],
  [
    "answers are right",
    "a subscription is answered 404 before its delete begins",
    {
      wrongAnswers: [wrongAnswer({ endedMs: at(1) })],
      operations: [...operations, asked({ kind: "delete", startedMs: at(2), status: undefined })],
    },
  ],
  ["accepted is recorded", "an accepted event is nowhere", { accepted: [accepted(4)] }],
  [
    "accepted is recorded",
    "an accepted event has no claim",
    { accepted: [accepted(1, { eventId: "P9" })] },
  ],
  [
    "accepted is recorded",
    "an accepted event has no review",
    { accepted: [accepted(1, { review: "1 R9" })] },
  ],
  [
    "accepted is recorded",
    "an accepted event has no row in the history",
    { accepted: [accepted(1, { marker: "m9" })] },
  ],
  [
    "nothing lost",
    "an event never came to its subscription",
    { history: [...facts().history, history(4)] },
  ],
  [
    "only what is wanted",
    "the filter does not name an event that came",
    { operations: operations.map((one) => ({ ...one, filter: ["review_updated"] })) },
  ],
  ["sequence without a gap", "an entry vanished", without(2)],
  ["sequence without a gap", "an entry ended twice", { settled: [settled(2, "skipped")] }],
  [
    "skips are asked for",
    "an entry was skipped without a request",
    { ...without(2), settled: [settled(2, "skipped")] },
  ],
  [MISSED, "an event has another number", { ...numbered([0, 1, 2]), logged: [] }],
  [MISSED, "the third tells less than what is settled", numbered([0, 1, 1])],
  [
    MISSED,
    "by review, the last event tells less than what is settled",
    {
      ...numbered([0, 0, 1]),
      subscriptions: [{ ...subscription, sequenceHeaders: true, ordering: "review" }],
    },
  ],
  [
    MISSED,
    "the second is told as settled while it is queued",
    { ...numbered([]), ...places(without(2), [0, 2]), queued: [queued(2)] },
  ],
  ["all is drained", "an entry is left", { ...without(3), queued: [queued(3)] }],
  [
    "first deliveries in order",
    "the third came before the second",
    (() => {
      const early = post(3, { atMs: at(2) - 500 });
      return {
        posts: [POSTS[0], early, POSTS[1]],
        attempts: [RECORDS[0], RECORDS[1], record(3, early)].flatMap((one) => one ?? []),
      };
    })(),
  ],
  [
    "first deliveries in order",
    "the third came while the second is still queued",
    { ...without(2), queued: [queued(2)] },
  ],
  [
    "repeats in order",
    "after one crash the lane went back twice",
    {
      posts: [
        ...POSTS,
        post(2, { atMs: at(4) }),
        post(3, { atMs: at(4) + 50 }),
        post(2, { atMs: at(4) + 100 }),
      ],
      faults: [crash(at(3))],
    },
  ],
  [
    "repeats are bounded",
    "an attempt was repeated and only Redis had failed",
    {
      posts: [...POSTS, post(3, { atMs: at(4) })],
      faults: [crash(at(3), { target: "redis" })],
    },
  ],
  [
    "repeats are bounded",
    "one crash repeated an entry 18 times",
    {
      posts: [...POSTS, ...Array.from({ length: 18 }, (_, n) => post(3, { atMs: at(4) + n }))],
      faults: [crash(at(3))],
    },
  ],
  [
    "attempts are numbered",
    "the first attempt has no record",
    { attempts: [...RECORDS.slice(0, 2), record(3, POSTS[2], { attempt: 2 })] },
  ],
  [
    "attempts are numbered",
    "an answer of 500 is recorded as delivered",
    { attempts: [...RECORDS.slice(0, 2), record(3, POSTS[2], { statusCode: 500 })] },
  ],
  ["delays are kept", "the second attempt came too early", retried(100)],
  [
    "no record without a POST",
    "an interruption is recorded for an attempt that never began",
    {
      attempts: [
        ...RECORDS,
        record(3, POSTS[2], {
          attempt: 1,
          outcome: "interrupted",
          errorCode: "process_lost",
          statusCode: null,
          signature: null,
          ended: false,
        }),
      ],
    },
  ],
  ["no record without a POST", "a delivery was never received", { posts: POSTS.slice(0, 2) }],
  [
    "no POST without a record",
    "a request has no record",
    { posts: [...POSTS, post(3, { atMs: at(4) })] },
  ],
  [
    "no POST without an entry",
    "a request is about another subscription's event",
    { posts: [...POSTS, post(4)], faults: [crash(at(4))] },
  ],
  [
    "repeats are marked",
    "the record of a repeat is not marked",
    {
      posts: [...POSTS, post(3, { atMs: at(4) })],
      attempts: [
        ...RECORDS.slice(0, 2),
        record(3, post(3, { atMs: at(4) }), { possiblyRepeated: false }),
      ],
      faults: [crash(at(3) + 100)],
    },
  ],
  [
    "repeats are marked",
    "a record is marked as a repeat without a crash",
    { attempts: [...RECORDS.slice(0, 2), record(3, POSTS[2], { possiblyRepeated: true })] },
  ],
  [
    "numbers are right",
    "a number is left out",
    { posts: [...POSTS.slice(0, 2), post(3, { place: { sequence: 4, settled: 2 } })] },
  ],
  ["numbers are right", "a request has no number", { posts: [post(1, { place: null })] }],
  [
    "numbers are right",
    "a request has a number that its subscription does not ask for",
    { subscriptions: [{ ...subscription, sequenceHeaders: false }] },
  ],
  [
    "numbers are right",
    "an event counts as settled that waits for a retry",
    { posts: [...POSTS.slice(0, 1), post(2, { status: 500 }), POSTS[2]] },
  ],
  [
    "numbers are right",
    "an event counts as settled that is not recorded",
    { posts: [...POSTS.slice(0, 2), post(3, { place: { sequence: 3, settled: 4 } })] },
  ],
  [
    "counters follow the records",
    "the counter is one too high",
    { subscriptions: [{ ...subscription, failures: 1 }] },
  ],
  [
    "counters follow the records",
    "20 failures did not disable it",
    { ...run(20), subscriptions: [{ ...down, state: "active" }] },
  ],
  [
    "counters follow the records",
    "19 failures disabled it",
    { ...run(19), subscriptions: [{ ...down, lastSequence: 19 }] },
  ],
  [
    "only to the active",
    "a request went out long after the disabling",
    (() => {
      const { history: told = [], posts = [], attempts = [] } = run(20);
      const late = post(30, { status: 200 });
      return {
        history: [...told, history(30)],
        posts: [...posts, late],
        attempts: [...attempts, record(21, late)],
        subscriptions: [{ ...down, lastSequence: 21 }],
      };
    })(),
  ],
  [
    "only to the active",
    "a request went out long after the delete",
    {
      subscriptions: [{ ...subscription, state: "deleted", lastSequence: null }],
      operations: [
        ...operations,
        asked({ kind: "delete", startedMs: at(-6), endedMs: at(-6), status: 204 }),
      ],
      audit: [
        ...audit,
        { action: "WEBHOOK_DELETED", subscriptionId: SUBSCRIPTION, held: null, committedMs: at(4) },
      ],
    },
  ],
  [
    "signatures are valid",
    "the body was signed with another secret",
    (() => {
      const forged = post(3, { signature: sign("x", "other") });
      return {
        posts: [...POSTS.slice(0, 2), forged],
        attempts: [...RECORDS.slice(0, 2), record(3, forged)],
      };
    })(),
  ],
  [
    "signatures are valid",
    "a rotation was forgotten long after its answer",
    {
      operations: [
        ...operations,
        asked({ kind: "rotate", startedMs: at(-4), endedMs: at(-4), secret: "new" }),
      ],
      finalSecrets: new Map([[SUBSCRIPTION, "new"]]),
    },
  ],
  [
    "an attempt shows what was sent",
    "other bytes were shown",
    { attempts: RECORDS.map((row, n) => (n === 0 ? { ...row, body: "other" } : row)) },
  ],
  [
    "an attempt shows what was sent",
    "nothing was shown",
    { attempts: RECORDS.map((row, n) => (n === 0 ? { ...row, body: null } : row)) },
  ],
];

test("a process may end unexpectedly only if it reports an unreachable store", () => {
  const exit = { name: "api-1", how: "1", atMs: at(1) };
  expect(rulesOf({ exits: [{ ...exit, lastWords: ["error: read ECONNRESET"] }] })).toEqual([
    "processes live",
  ]);
  const lastWords = ["DATABASE_URL cannot be reached: connect ECONNREFUSED."];
  expect(rulesOf({ exits: [{ ...exit, lastWords }] })).toEqual([]);
});

test.each([
  { lanes: "one lane", sequences: [1, 2, 3], failures: [1] },
  { lanes: "several lanes", sequences: [2, 1, 3], failures: [0, 1, 2] },
])("a commit of $lanes leaves these counts of failures: $failures", ({ sequences, failures }) => {
  const outcomes = ["failed", "delivered", "failed"] as const;
  const attempts = outcomes.map((outcome, i) => {
    const place = sequences[i] ?? 0;
    return { ...record(place, post(place)), id: `A${i}`, outcome, committedMs: at(4) };
  });
  const possible = [0, 1, 2, 3].filter((count) => {
    const subscriptions = [{ ...subscription, failures: count }];
    return countersFollowRecords(facts({ attempts, subscriptions })).length === 0;
  });
  expect(possible).toEqual([...failures]);
});

test.each(VIOLATIONS)('reports "%s": %s', (rule, _what, changes) => {
  expect(rulesOf(changes)).toContain(rule);
});

const rulesOf = (changes: Partial<Facts>) => [
  ...new Set(findViolations(facts(changes)).map(({ rule }) => rule)),
];

/** Builds an attempt that was answered 500, and the next one after this pause. */
function retried(waitedMs: number): Partial<Facts> {
  const failed = post(3, { status: 500 });
  const again = post(3, { attempt: 2, atMs: at(3) + 10 + waitedMs });
  return {
    posts: [...POSTS.slice(0, 2), failed, again],
    attempts: [
      ...RECORDS.slice(0, 2),
      record(3, failed, { outcome: "retry", statusCode: 500, ended: false }),
      record(3, again),
    ],
  };
}

/** Builds this many failures with 410, each settled immediately. */
function run(failures: number): Partial<Facts> {
  const sequences = Array.from({ length: failures }, (_, n) => n + 1);
  const posts = sequences.map((sequence) => post(sequence, { status: 410 }));
  return {
    history: sequences.map((sequence) => history(sequence)),
    logged: logged(failures),
    posts,
    attempts: posts.map((one, n) => record(n + 1, one, { outcome: "failed" })),
  };
}
