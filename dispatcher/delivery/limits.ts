import { fieldsOf } from "../../src/lib/fields.ts";

/** The limits of the work that a dispatcher has in memory and under way (our choice). */
export type Limits = Readonly<typeof LIMITS>;

export const LIMITS = {
  /**
   * The most simultaneous requests to fast hosts, whose last request took less than a second. As many may run to all
   * other hosts together, so that hosts that hang take no request slot from hosts that answer.
   */
  requests: 1_024,
  /**
   * The most simultaneous requests to one host and port, for all subscriptions that point there. A partner has two
   * subscriptions with at most 12 requests each, so it needs no separate limit.
   */
  requestsPerHost: 64,
  /**
   * The most requests that wait in memory for one host. Beyond them the host is saturated, and further subscriptions
   * are parked.
   */
  waitingPerHost: 64,
  /**
   * The number of waiting requests, to any hosts, from which on no more requests may wait for hosts that are not known
   * to answer within a second.
   */
  waitingSlow: 256,
  /**
   * The most subscriptions in memory; further ones wait for their turn as ids only. The limit is the number of possible
   * requests plus a quarter for subscriptions that load or wait, so that subscriptions whose hosts hang leave room for
   * the others.
   */
  actors: 2_560,
  /** The most entries in memory, shared equally by the subscriptions. At 1.5 KB each they take 100 MB. */
  entries: 65_536,
  /**
   * The most bytes of entries in memory, queued or under way, as UTF-8; beyond them loads wait. A third of them may be
   * read ahead of the entries that are sent, and a third may wait for hosts that are not known to answer within a
   * second, so that the last third serves the others.
   *
   * With this limit a process stays below 700 MiB (`bun run bench memory`), and `deploy/` gives it 1 GiB. An idle
   * process takes 80 MiB. JavaScript holds a text in up to two bytes for each byte of UTF-8 (384 MiB). Two queries
   * under way may bring 32 MiB each, and compressed answers of 2,048 receivers take 128 MiB.
   */
  bytes: 192 * 1_024 * 1_024,
};

/**
 * The file descriptors for all but connections to receivers: PostgreSQL, Redis, resolver, metrics, output, short-lived
 * files.
 */
const OWN_DESCRIPTORS = 128;
/** Idle connections to receivers for each request that may run at once, if file descriptors are scarce. */
const IDLE_SHARE = 0.5;
/**
 * The most idle connections to receivers: one per actor, so that each subscription in memory finds its connection open.
 */
const MAX_IDLE_CONNECTIONS = LIMITS.actors;
/** The fewest simultaneous requests to fast hosts, and as many to slow hosts, with which a dispatcher is useful. */
const MIN_REQUESTS = 32;

/**
 * Returns the number of file descriptors that a dispatcher needs for `requests` requests to fast hosts, as many to
 * slow hosts, and their idle connections.
 */
function descriptorsFor(requests: number): number {
  return OWN_DESCRIPTORS + Math.ceil(2 * requests * (1 + IDLE_SHARE));
}

export const WANTED_DESCRIPTORS = descriptorsFor(LIMITS.requests);
export const MIN_DESCRIPTORS = descriptorsFor(MIN_REQUESTS);

/** Returns the limits of a process with this number of file descriptors; undefined if they are too few to start. */
export function budgetOf(descriptors: number) {
  if (descriptors < MIN_DESCRIPTORS) return undefined;
  const affordable = Math.floor((descriptors - OWN_DESCRIPTORS) / (2 * (1 + IDLE_SHARE)));
  const requests = Math.min(LIMITS.requests, affordable);
  // Idle connections may use the file descriptors that no request can use.
  const spare = descriptors - OWN_DESCRIPTORS - 2 * requests;
  return { limits: { ...LIMITS, requests }, maxIdle: Math.min(MAX_IDLE_CONNECTIONS, spare) };
}

/** Returns the limit of file descriptors of this process (`ulimit -n`). */
export function countDescriptors(): number {
  const { userLimits } = fieldsOf(process.report.getReport());
  const { soft } = fieldsOf(fieldsOf(userLimits)["open_files"]);
  return typeof soft === "number" ? soft : Number.POSITIVE_INFINITY;
}
