import { type AttemptRow, CLOCKS_MS, type Facts, groupBy, type Post } from "./facts.ts";

export interface Matches {
  /** The requests of a record: none, one, or two if it was resent. */
  readonly postsOf: ReadonlyMap<AttemptRow, readonly Post[]>;
  readonly recordOf: ReadonlyMap<Post, AttemptRow>;
}

/** The record says by its signature which request it is about; one that has none takes what the others left. */
export function matchPosts(facts: Pick<Facts, "attempts" | "posts" | "subscriptions">): Matches {
  const hosts = new Map(facts.subscriptions.map(({ id, host }) => [id, host]));
  const posts = groupBy(facts.posts, (post) => keyOf(post.host, post));
  const postsOf = new Map<AttemptRow, Post[]>();
  const recordOf = new Map<Post, AttemptRow>();
  const signedFirst = facts.attempts.toSorted(
    (a, b) =>
      Number(a.signature === null) - Number(b.signature === null) || a.committedMs - b.committedMs,
  );
  for (const record of signedFirst) {
    const host = hosts.get(record.subscriptionId) ?? "";
    const fitting = (posts.get(keyOf(host, record)) ?? []).filter(
      (post) => !recordOf.has(post) && (record.signature ?? post.signature) === post.signature,
    );
    // Repeats of a minimal body have one signature: the record is about the last one that came before it.
    const before = fitting.filter(({ atMs }) => atMs <= record.committedMs + CLOCKS_MS);
    const taken = (before.length > 0 ? before : fitting).slice(record.resent ? -2 : -1);
    postsOf.set(record, taken);
    for (const post of taken) recordOf.set(post, record);
  }
  return { postsOf, recordOf };
}

function keyOf(host: string, { eventId, attempt }: Pick<Post, "eventId" | "attempt">): string {
  return `${host} ${eventId} ${attempt}`;
}

export interface PlacedPost {
  readonly post: Post;
  readonly sequence: number;
}

/** The requests of each lane by time, with the sequence of their entries; those that cannot be told apart are left out. */
export function postsByLane(
  facts: Facts,
  laneOfEntry: (subscriptionId: string, sequence: number) => string,
): Map<string, PlacedPost[]> {
  const { recordOf } = matchPosts(facts);
  const idOf = new Map(facts.subscriptions.map(({ id, host }) => [host, id]));
  const sequences = new Map<string, Set<number>>();
  for (const entry of [...facts.attempts, ...facts.queued, ...facts.settled]) {
    const key = `${entry.subscriptionId} ${entry.eventId}`;
    sequences.set(key, (sequences.get(key) ?? new Set()).add(entry.sequence));
  }
  const placed = facts.posts.flatMap((post) => {
    const subscriptionId = idOf.get(post.host) ?? "";
    const known = [...(sequences.get(`${subscriptionId} ${post.eventId}`) ?? [])];
    const sequence = recordOf.get(post)?.sequence ?? (known.length === 1 ? known[0] : undefined);
    return sequence === undefined ? [] : [{ post, sequence, subscriptionId }];
  });
  return groupBy(
    placed.toSorted((a, b) => a.post.atMs - b.post.atMs),
    ({ subscriptionId, sequence }) => `${subscriptionId} ${laneOfEntry(subscriptionId, sequence)}`,
  );
}
