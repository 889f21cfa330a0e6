/** The limits of the work that a dispatcher has in memory and under way (our choice). */
export type Limits = Readonly<typeof LIMITS>;

export const LIMITS = {
  /**
   * The most simultaneous requests to hosts with a last response within a second, and as many again to all other
   * hosts, so that hosts that hang take no slot from hosts that answer.
   */
  requests: 1_024,
  /**
   * The most simultaneous requests to one host and port, for all subscriptions that point there. A partner has two
   * subscriptions of 12 requests each, so its share needs no separate limit.
   */
  requestsPerHost: 64,
  /**
   * The most requests that wait in memory for one host. Beyond them the host is saturated, and further subscriptions
   * are parked.
   */
  waitingPerHost: 64,
  /** The most requests that wait in memory for all hosts together that are not known to answer within a second. */
  waitingSlow: 256,
  /**
   * The most subscriptions in memory; further ones wait for their turn as ids only. The limit is the number of
   * possible requests plus a quarter for subscriptions that load or wait, so that subscriptions that hang leave room
   * for the others.
   */
  actors: 2_560,
  /** The most entries in memory, shared equally by the subscriptions. At 1.5 KB each they take 100 MB. */
  entries: 65_536,
  /**
   * The most bytes of entries in memory, queued or under way, as UTF-8; beyond them loads wait. A third of them may be
   * read ahead of the entries that are sent, and a third may wait for hosts that are not known to answer within a second,
   * so that the last third serves the others.
   *
   * So a process of 80 MiB stays below 700 MiB of the 1 GiB of `deploy/` (`bun run bench memory`): JavaScript holds a text in up to two bytes for each
   * one of UTF-8 (384 MiB), two queries under way may bring 32 MiB each, and compressed answers of 2,048
   * receivers take 128 MiB.
   */
  bytes: 192 * 1_024 * 1_024,
};

/** File descriptors for PostgreSQL, Redis, the resolver, metrics, logs and short-lived files. */
const OWN = 128;
/** The number of idle connections per possible request, if file descriptors are scarce. */
const IDLE_SHARE = 0.5;
/** The most idle connections: one per actor, so that a subscription in memory finds its connection open. */
const MAX_IDLE = LIMITS.actors;
/** The fewest simultaneous requests to fast hosts, and as many to slow hosts, with which a dispatcher is useful. */
const MIN_REQUESTS = 32;

/**
 * Returns the number of file descriptors that a dispatcher needs for `requests` requests to fast hosts, as many to
 * slow hosts, and their idle connections.
 */
function needed(requests: number): number {
  return OWN + Math.ceil(2 * requests * (1 + IDLE_SHARE));
}

export const WANTED_DESCRIPTORS = needed(LIMITS.requests);
export const MIN_DESCRIPTORS = needed(MIN_REQUESTS);

/** Returns the limits of a process with this number of file descriptors; undefined if they are too few to start. */
export function budgetOf(descriptors: number) {
  if (descriptors < MIN_DESCRIPTORS) return undefined;
  const affordable = Math.floor((descriptors - OWN) / (2 * (1 + IDLE_SHARE)));
  const requests = Math.min(LIMITS.requests, affordable);
  // Idle connections may use the file descriptors that no request can use.
  const spare = descriptors - OWN - 2 * requests;
  return { limits: { ...LIMITS, requests }, maxIdle: Math.min(MAX_IDLE, spare) };
}

/** Returns the limit of file descriptors of this process (`ulimit -n`). */
export function countDescriptors(): number {
  const { userLimits } = Object(process.report.getReport());
  const limit: unknown = userLimits?.open_files?.soft;
  return typeof limit === "number" ? limit : Number.POSITIVE_INFINITY;
}
