import { type AttemptRow, CLOCKS_MS, type Facts, groupBy, type Post } from "./facts.ts";

export interface Matches {
  /** The requests of a record: none, one, or two if it was resent. */
  readonly postsOf: ReadonlyMap<AttemptRow, readonly Post[]>;
  readonly recordOf: ReadonlyMap<Post, AttemptRow>;
}

/** The parts of the facts that assign requests to records, and those that find the entries of requests. */
export type MatchedPart = "attempts" | "posts" | "subscriptions";
export type PlacedPart = MatchedPart | "queued" | "settled";

/** Assigns requests to records by signature; a record without one gets a remaining request. */
export function matchPosts(facts: Pick<Facts, MatchedPart>): Matches {
  const hosts = new Map(facts.subscriptions.map(({ id, host }) => [id, host]));
  const posts = groupBy(facts.posts, (post) => keyOf(post.host, post));
  const postsOf = new Map<AttemptRow, Post[]>();
  const recordOf = new Map<Post, AttemptRow>();
  const signedFirst = facts.attempts.toSorted(
    (a, b) =>
      Number(a.signature === null) - Number(b.signature === null) || a.committedMs - b.committedMs,
  );
  const keyed = (record: AttemptRow) => keyOf(hosts.get(record.subscriptionId) ?? "", record);
  const later = groupBy(signedFirst, (record) => `${keyed(record)} ${record.signature}`);
  for (const record of signedFirst) {
    const fitting = (posts.get(keyed(record)) ?? []).filter(
      (post) => !recordOf.has(post) && (record.signature ?? post.signature) === post.signature,
    );
    // A recovered event may have several records, and each later one has its own request.
    const behind = later.get(`${keyed(record)} ${record.signature}`) ?? [];
    behind.shift();
    const own = fitting.slice(0, Math.max(1, fitting.length - behind.length));
    // Repeats of a minimal body share one signature; the record belongs to the last request before its commit. There may
    // be none: a request that timed out need not have arrived, and a later round of the event repeats its number.
    const before = own.filter(({ atMs }) => atMs <= record.committedMs + CLOCKS_MS);
    const taken = before.slice(record.resent ? -2 : -1);
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

/**
 * Returns the sequence of each request's entry. A recovered event has several entries with the same attempts; a
 * request without a record belongs to the entry recorded next, or else to the last one.
 */
export function placePosts(facts: Pick<Facts, PlacedPart>): Map<Post, number> {
  const { recordOf } = matchPosts(facts);
  const hosts = new Map(facts.subscriptions.map(({ id, host }) => [id, host]));
  const sequences = new Map<string, number>();
  for (const { subscriptionId, eventId, sequence } of [
    ...facts.attempts,
    ...facts.queued,
    ...facts.settled,
  ]) {
    const key = `${hosts.get(subscriptionId)} ${eventId}`;
    sequences.set(key, Math.max(sequences.get(key) ?? 0, sequence));
  }
  const records = groupBy(facts.attempts, (row) => keyOf(hosts.get(row.subscriptionId) ?? "", row));
  const place = (post: Post) => {
    const told = recordOf.get(post);
    if (told !== undefined) return told.sequence;
    const next = (records.get(keyOf(post.host, post)) ?? [])
      .filter(({ committedMs }) => committedMs > post.atMs)
      .toSorted((a, b) => a.committedMs - b.committedMs)[0];
    return next?.sequence ?? sequences.get(`${post.host} ${post.eventId}`);
  };
  return new Map(
    facts.posts.flatMap((post): [Post, number][] => {
      const sequence = place(post);
      return sequence === undefined ? [] : [[post, sequence]];
    }),
  );
}

/** Returns the requests of each lane in order of time, with the sequence of their entries. */
export function postsByLane(
  facts: Pick<Facts, PlacedPart>,
  laneOfEntry: (subscriptionId: string, sequence: number) => string,
): Map<string, PlacedPost[]> {
  const idOf = new Map(facts.subscriptions.map(({ id, host }) => [host, id]));
  const placed = [...placePosts(facts)].map(([post, sequence]) => ({
    post,
    sequence,
    subscriptionId: idOf.get(post.host) ?? "",
  }));
  return groupBy(
    placed.toSorted((a, b) => a.post.atMs - b.post.atMs),
    ({ subscriptionId, sequence }) => `${subscriptionId} ${laneOfEntry(subscriptionId, sequence)}`,
  );
}
