import {
  CLOCKS_MS,
  endOf,
  type Facts,
  type Finding,
  groupBy,
  type Rule,
  SETTINGS_MS,
  type Subscription,
} from "./facts.ts";
import { matchPosts } from "./match.ts";
import { outcomeOf } from "./outcome.ts";

type Part = "subscriptions" | "logged" | "attempts" | "posts" | "settled";

/**
 * With sequence headers, each request tells the number of its event, counted over all events of the subscription, and
 * only numbers of events that were delivered, failed or skipped before it as settled. Other requests have no numbers.
 */
export const numbersAreRight: Rule<Part> = (facts) => {
  const posts = groupBy(facts.posts, ({ host }) => host);
  return facts.subscriptions.flatMap((one) => {
    const finding = (what: string, row: unknown): Finding => ({
      rule: "numbers are right",
      what: `${one.id} ${what}`,
      rows: [row],
    });
    const events = facts.logged.filter(({ subscriptionId }) => subscriptionId === one.id);
    const numbers = new Map(events.map(({ eventId }, at) => [eventId, at + 1]));
    const ends = endsOf(facts, one);
    let through = 0;
    return (posts.get(one.host) ?? []).flatMap((post) => {
      const { eventId, atMs, place } = post;
      const expected = one.sequenceHeaders ? numbers.get(eventId) : undefined;
      if (place?.sequence !== expected)
        return [
          finding(`got ${place?.sequence} as the number of ${eventId}, not ${expected}`, post),
        ];
      const told = place?.settled ?? 0;
      for (; through < told; through++) {
        const end = ends.get(events[through]?.eventId ?? "") ?? Number.POSITIVE_INFINITY;
        if (end > atMs + CLOCKS_MS) return [finding(`was told that ${++through} is settled`, post)];
      }
      return [];
    });
  });
};

/** Returns when each event of a subscription was first delivered, failed or skipped. */
function endsOf(facts: Pick<Facts, Part>, one: Subscription): ReadonlyMap<string, number> {
  const ends = new Map<string, number>();
  const end = (eventId: string, atMs: number) =>
    ends.set(eventId, Math.min(atMs, ends.get(eventId) ?? atMs));
  // A request without a record may have been the last one: a crash loses what was decided about it.
  for (const post of facts.posts)
    if (post.host === one.host && outcomeOf(post.status, post.attempt) !== "retry")
      end(post.eventId, endOf(post));
  for (const row of facts.settled)
    if (row.subscriptionId === one.id) end(row.eventId, row.settledMs);
  // An attempt may fail before it reaches the receiver, and its record may be committed later.
  const { postsOf } = matchPosts(facts);
  for (const row of facts.attempts)
    if (row.subscriptionId === one.id && row.ended && (postsOf.get(row) ?? []).length === 0)
      end(row.eventId, row.committedMs - SETTINGS_MS);
  return ends;
}
