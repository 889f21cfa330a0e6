import {
  type AttemptRow,
  CLOCKS_MS,
  crashesIn,
  endOf,
  type Facts,
  type Finding,
  groupBy,
  type Post,
  type Rule,
} from "./facts.ts";
import { type MatchedPart, matchPosts, type PlacedPart, placePosts } from "./match.ts";
import { ATTEMPTS, outcomeOf } from "./outcome.ts";

/** The records of an entry are numbered from 1 without a gap, and their outcome follows from the answer. */
export const attemptsAreNumbered: Rule<"attempts"> = ({ attempts }) =>
  [...groupBy(attempts, (row) => `${row.subscriptionId}#${row.sequence}`)].flatMap(
    ([key, rows]) => {
      const told = rows.filter(({ outcome }) => outcome !== "interrupted");
      const numbers = told.map(({ attempt }) => attempt).toSorted((a, b) => a - b);
      const isGapless = numbers.every((attempt, n) => attempt === n + 1);
      const wrong = told.filter((row) => row.outcome !== outcomeOf(row.statusCode, row.attempt));
      if (isGapless && numbers.length <= ATTEMPTS && wrong.length === 0) return [];
      const what = `${key} has the attempts ${numbers.join(", ")}, ${wrong.length} with a wrong outcome`;
      return [{ rule: "attempts are numbered", what, rows }];
    },
  );

/** An attempt starts no earlier than its delay after the end of the previous one, measured at the receiver. */
export const delaysAreKept: Rule<"retryDelaysMs" | MatchedPart> = (facts) => {
  const { postsOf } = matchPosts(facts);
  const findings: Finding[] = [];
  const entries = groupBy(facts.attempts, (row) => `${row.subscriptionId}#${row.sequence}`);
  for (const [key, rows] of entries) {
    for (const row of rows) {
      if (row.outcome !== "retry") continue;
      const [ended] = (postsOf.get(row) ?? []).toReversed();
      const next = rows
        .filter(({ attempt }) => attempt === row.attempt + 1)
        .flatMap((one) => postsOf.get(one) ?? [])
        .toSorted((a, b) => a.atMs - b.atMs)[0];
      if (ended === undefined || next === undefined) continue;
      const waitedMs = next.atMs - endOf(ended);
      const delayMs = facts.retryDelaysMs[row.attempt - 1] ?? 0;
      if (waitedMs < delayMs - CLOCKS_MS)
        findings.push({
          rule: "delays are kept",
          what: `${key}/${row.attempt + 1} came ${Math.round(waitedMs)} ms after the one before it, not ${delayMs}`,
          rows: [row, ended, next],
        });
    }
  }
  return findings;
};

/** Each record belongs to a request that its receiver got, unless its error explains why there was none. */
export const recordsHavePosts: Rule<"faults" | MatchedPart> = (facts) => {
  const { postsOf } = matchPosts(facts);
  return facts.attempts
    .filter((row) => (postsOf.get(row) ?? []).length === 0 && !mayBeUnseen(row, facts))
    .map((row) => ({
      rule: "no record without a POST",
      what: `${row.subscriptionId}#${row.sequence}/${row.attempt} is ${row.outcome} (${row.errorCode ?? row.statusCode})`,
      rows: [row],
    }));
};

/**
 * Errors that can occur before the request was read: connection errors, or a connection that its receiver closed
 * meanwhile.
 */
const UNSEEN = new Set(["dns", "connect", "tls", "reset", "blocked_address", "invalid_url"]);

/** The maximum duration of a look-up that began while the name server was silent (contract 7.11). */
const LOOKUP_MS = 10_000;

function mayBeUnseen(row: AttemptRow, facts: Pick<Facts, "faults">): boolean {
  const { statusCode, errorCode, outcome, signature, committedMs } = row;
  if (statusCode !== null) return false;
  // The deadline may pass before the connection if the process was paused or the name server was silent.
  if (errorCode === "timeout")
    return (
      crashesIn(facts, { fromMs: committedMs, untilMs: committedMs }).length > 0 ||
      facts.faults.some(
        ({ target, startedMs, endedMs }) =>
          target === "names" && startedMs <= committedMs && committedMs <= endedMs + LOOKUP_MS,
      )
    );
  // A running process aborted the attempt, possibly before it was connected.
  if (outcome === "interrupted") return signature !== null;
  return errorCode !== null && UNSEEN.has(errorCode);
}

/** Each request has a record, unless its process was killed or lost its lease. */
export const postsHaveRecords: Rule<"faults" | MatchedPart> = (facts) => {
  const { recordOf } = matchPosts(facts);
  return facts.posts
    .filter(
      (post) =>
        !recordOf.has(post) &&
        crashesIn(facts, { fromMs: post.atMs, untilMs: losableUntil(post, facts) }).length === 0,
    )
    .map((post) => ({
      rule: "no POST without a record",
      what: `${post.host} got ${post.eventId}/${post.attempt}, and nothing had crashed`,
      rows: [shown(post)],
    }));
};

/** How long after a request a crash can lose its record: the duration of the request and the wait for the commit. */
const LOSES_WITHIN_MS = 5_000;

/** Until when a crash can lose the record of a request: the record may wait as long as another session locks a row. */
function losableUntil({ atMs }: Pick<Post, "atMs">, { faults }: Pick<Facts, "faults">): number {
  const untilMs = atMs + LOSES_WITHIN_MS;
  const locks = faults.filter(
    ({ target, startedMs, endedMs }) =>
      target === "lock" && startedMs <= untilMs && endedMs >= atMs,
  );
  return Math.max(untilMs, ...locks.map(({ endedMs }) => endedMs));
}

/** Every request was queued for its subscription. */
export const postsHaveEntries: Rule<PlacedPart> = (facts) => {
  const ids = new Map(facts.subscriptions.map(({ id, host }) => [id, host]));
  const known = new Set(
    [...facts.attempts, ...facts.queued, ...facts.settled].map(
      ({ subscriptionId, eventId }) => `${ids.get(subscriptionId)} ${eventId}`,
    ),
  );
  return facts.posts
    .filter(({ host, eventId }) => !known.has(`${host} ${eventId}`))
    .map((post) => ({
      rule: "no POST without an entry",
      what: `${post.host} got ${post.eventId}, which was never queued for it`,
      rows: [shown(post)],
    }));
};

/**
 * The record of a repeat is marked as one if the previous request has no record; no other record is marked (contract
 * 7.4).
 */
export const repeatsAreTold: Rule<"faults" | PlacedPart> = (facts) => {
  const { postsOf, recordOf } = matchPosts(facts);
  const hosts = new Map(facts.subscriptions.map(({ id, host }) => [id, host]));
  const places = placePosts(facts);
  const unrecorded = groupBy(
    facts.posts.filter((post) => !recordOf.has(post)),
    (post) => `${post.host} ${places.get(post)} ${post.attempt}`,
  );
  return facts.attempts.flatMap((row): Finding[] => {
    if (row.possiblyRepeated === undefined) return [];
    const [last] = (postsOf.get(row) ?? []).toReversed();
    if (last === undefined) return [];
    const key = `${hosts.get(row.subscriptionId)} ${row.sequence} ${row.attempt}`;
    const isRepeat = (unrecorded.get(key) ?? []).some(({ atMs }) => atMs < last.atMs);
    const crashes = crashesIn(facts, { fromMs: 0, untilMs: last.atMs });
    const rule = "repeats are marked";
    const which = `${row.subscriptionId}#${row.sequence}/${row.attempt}`;
    if (isRepeat && !row.possiblyRepeated && !row.resent)
      return [{ rule, what: `${which} repeats a request and does not say so`, rows: [row] }];
    if (row.possiblyRepeated && crashes.length === 0)
      return [
        { rule, what: `${which} says that it may repeat, and nothing had crashed`, rows: [row] },
      ];
    return [];
  });
};

export function shown<T extends { readonly body: string | undefined }>(post: T): Omit<T, "body"> {
  const { body: _body, ...rest } = post;
  return rest;
}
