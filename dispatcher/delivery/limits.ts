/** The limits of the work that a dispatcher has in memory and under way (our choice). */
export type Limits = Readonly<typeof LIMITS>;

export const LIMITS = {
  /**
   * Requests at once to hosts with a last response within a second, and as many again to all other hosts: hosts that
   * hang take no slot from hosts that answer.
   */
  requests: 1_024,
  /**
   * Requests at once to one host and port, for all subscriptions that point there. A partner has two subscriptions of
   * 12 requests each, so its share needs no separate limit.
   */
  requestsPerHost: 64,
  /**
   * Requests that wait in memory for one host. Beyond them the host is saturated, and further subscriptions are parked.
   */
  waitingPerHost: 64,
  /** Requests that wait in memory for all hosts together that are not known to answer within a second. */
  waitingSlow: 256,
  /**
   * Subscriptions in memory; further ones wait for their turn as ids only. There are as many as there can be requests,
   * plus a quarter that load or wait, so that subscriptions which hang leave room for the others.
   */
  actors: 2_560,
  /** Entries in memory, shared equally by the subscriptions. At 1.5 KB each they take 100 MB. */
  entries: 65_536,
};

/** Descriptors for the stores, the resolver, metrics, logs and short-lived files. */
const OWN = 128;
/** Idle connections per possible request, if descriptors are scarce. */
const IDLE_SHARE = 0.5;
/** The most idle connections: one per actor, so that a subscription in memory finds its connection open. */
const MAX_IDLE = LIMITS.actors;
/** The fewest requests per speed of hosts with which a dispatcher is useful. */
const MIN_REQUESTS = 32;

/** Returns the descriptors that a dispatcher needs for `requests` of each speed and their idle connections. */
function needed(requests: number): number {
  return OWN + Math.ceil(2 * requests * (1 + IDLE_SHARE));
}

export const WANTED_DESCRIPTORS = needed(LIMITS.requests);
export const MIN_DESCRIPTORS = needed(MIN_REQUESTS);

/** Returns the limits of a process with this number of descriptors; undefined if they are too few to start. */
export function budgetOf(descriptors: number) {
  if (descriptors < MIN_DESCRIPTORS) return undefined;
  const affordable = Math.floor((descriptors - OWN) / (2 * (1 + IDLE_SHARE)));
  const requests = Math.min(LIMITS.requests, affordable);
  // Idle connections may use the descriptors that no request can use.
  const spare = descriptors - OWN - 2 * requests;
  return { limits: { ...LIMITS, requests }, maxIdle: Math.min(MAX_IDLE, spare) };
}

/** Returns the descriptor limit of this process (`ulimit -n`). */
export function countDescriptors(): number {
  const { userLimits } = Object(process.report.getReport());
  const limit: unknown = userLimits?.open_files?.soft;
  return typeof limit === "number" ? limit : Number.POSITIVE_INFINITY;
}
