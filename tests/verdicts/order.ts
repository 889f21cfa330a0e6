import {
  CLOCKS_MS,
  crashesIn,
  endOf,
  type Facts,
  type Finding,
  groupBy,
  lossesOf,
  REPEATS,
  type Rule,
  type Subscription,
} from "./facts.ts";
import { laneOf } from "./lanes.ts";
import { matchPosts, type PlacedPart, type PlacedPost, postsByLane } from "./match.ts";
import { outcomeOf } from "./outcome.ts";

function lanesOf(
  facts: Pick<Facts, PlacedPart>,
): (subscriptionId: string, sequence: number) => string {
  const subscriptions = new Map(facts.subscriptions.map((one) => [one.id, one]));
  const entries = new Map(
    [...facts.attempts, ...facts.queued, ...facts.settled].map((entry) => [
      `${entry.subscriptionId} ${entry.sequence}`,
      entry,
    ]),
  );
  return (id, sequence) => {
    const one: Pick<Subscription, "ordering"> | undefined = subscriptions.get(id);
    const entry = entries.get(`${id} ${sequence}`);
    if (one === undefined || entry === undefined) return "unknown";
    return String(laneOf(one.ordering, entry));
  };
}

/** An entry is first sent after the previous one of its lane has ended: accepted, failed or skipped. */
export const firstDeliveriesInOrder: Rule<PlacedPart> = (facts) => {
  const laneOfEntry = lanesOf(facts);
  const endings = endingsOf(facts);
  const findings: Finding[] = [];
  for (const [lane, placed] of postsByLane(facts, laneOfEntry)) {
    const [subscriptionId = ""] = lane.split(" ");
    const first = firstPosts(placed);
    const entries = [...endings]
      .filter(([key]) => key.startsWith(`${subscriptionId} `))
      .map(([key, endedMs]) => ({ sequence: Number(key.split(" ")[1]), endedMs }))
      .filter(
        ({ sequence }) => lane === `${subscriptionId} ${laneOfEntry(subscriptionId, sequence)}`,
      )
      .toSorted((a, b) => a.sequence - b.sequence);
    let latest: (typeof entries)[number] | undefined;
    for (const entry of entries) {
      const sentMs = first.get(entry.sequence)?.atMs;
      if (latest !== undefined && sentMs !== undefined && sentMs < latest.endedMs)
        findings.push({
          rule: "first deliveries in order",
          what: `${lane}: #${entry.sequence} was sent before #${latest.sequence} had ended`,
          rows: placed.filter(({ sequence }) =>
            [entry.sequence, latest?.sequence].includes(sequence),
          ),
        });
      if (latest === undefined || entry.endedMs > latest.endedMs) latest = entry;
    }
  }
  return findings;
};

function firstPosts(placed: readonly PlacedPost[]): Map<number, PlacedPost["post"]> {
  const first = new Map<number, PlacedPost["post"]>();
  for (const { sequence, post } of placed) if (!first.has(sequence)) first.set(sequence, post);
  return first;
}

/** Returns the earliest possible end of each entry by `subscription sequence`; infinity for a queued one. */
function endingsOf(facts: Pick<Facts, PlacedPart>): Map<string, number> {
  const { postsOf } = matchPosts(facts);
  const endings = new Map<string, number>();
  const end = (key: string, atMs: number) =>
    endings.set(key, Math.min(endings.get(key) ?? Number.POSITIVE_INFINITY, atMs));
  for (const entry of facts.queued)
    end(`${entry.subscriptionId} ${entry.sequence}`, Number.POSITIVE_INFINITY);
  for (const row of facts.settled)
    end(`${row.subscriptionId} ${row.sequence}`, row.settledMs - CLOCKS_MS);
  for (const row of facts.attempts) {
    const key = `${row.subscriptionId} ${row.sequence}`;
    for (const post of postsOf.get(row) ?? [])
      if (outcomeOf(post.status, row.attempt) !== "retry") end(key, endOf(post));
    // A last attempt without a request at the receiver ended before it was sent.
    if (row.ended && (postsOf.get(row) ?? []).length === 0) end(key, 0);
  }
  const { recordOf } = matchPosts(facts);
  for (const [lane, placed] of postsByLane(facts, lanesOf(facts)))
    for (const { post, sequence } of placed)
      if (!recordOf.has(post) && outcomeOf(post.status, post.attempt) !== "retry")
        end(`${lane.split(" ")[0]} ${sequence}`, endOf(post));
  return endings;
}

/** Requests of a lane are sent in order, except that each crash may set the lane back once. */
export const repeatsInOrder: Rule<"faults" | PlacedPart> = (facts) => {
  const findings: Finding[] = [];
  for (const [lane, placed] of postsByLane(facts, lanesOf(facts))) {
    const fromMs = placed[0]?.post.atMs ?? 0;
    let steps = 0;
    for (const [n, { sequence, post }] of placed.entries()) {
      const before = placed[n - 1];
      if (before === undefined || before.sequence <= sequence) continue;
      steps += 1;
      const losses = lossesOf(crashesIn(facts, { fromMs, untilMs: post.atMs }));
      if (steps > losses)
        findings.push({
          rule: "repeats in order",
          what: `${lane}: #${sequence} follows #${before.sequence}, step back ${steps} after ${losses} losses of a lease`,
          rows: placed.slice(Math.max(0, n - 3), n + 3),
        });
    }
  }
  return findings;
};

/** An attempt is sent again only after a crash, and per lane no more often than entries were in progress. */
export const repeatsAreBounded: Rule<"faults" | PlacedPart> = (facts) => {
  const { recordOf } = matchPosts(facts);
  const findings: Finding[] = [];
  for (const [lane, placed] of postsByLane(facts, lanesOf(facts))) {
    const repeats: PlacedPost[] = [];
    for (const [key, same] of groupBy(
      placed,
      ({ sequence, post }) => `${sequence}/${post.attempt}`,
    )) {
      for (const [n, one] of same.entries()) {
        const before = same[n - 1]?.post;
        if (before === undefined) continue;
        const record = recordOf.get(before);
        // The record itself explains the repeat: resent within the attempt, or interrupted.
        if (record?.resent === true || record?.outcome === "interrupted") continue;
        repeats.push(one);
        if (crashesIn(facts, { fromMs: before.atMs, untilMs: one.post.atMs }).length === 0)
          findings.push(found(`${lane}: #${key} was sent again and nothing had crashed`, same));
      }
    }
    const losses = lossesOf(crashesIn(facts, { fromMs: 0, untilMs: Number.POSITIVE_INFINITY }));
    if (repeats.length > losses * REPEATS)
      findings.push(found(`${lane}: ${repeats.length} repeats after ${losses} losses`, repeats));
  }
  return findings;
};

function found(what: string, rows: readonly PlacedPost[]): Finding {
  return { rule: "repeats are bounded", what, rows: rows.slice(0, 6) };
}
