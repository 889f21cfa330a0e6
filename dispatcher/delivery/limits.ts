/** How much a dispatcher has under way and in memory at once (our choice). */
export type Limits = Readonly<typeof LIMITS>;

export const LIMITS = {
  /**
   * Requests at once to hosts whose last answer came within a second, and as many again to all others: hosts that hang take
   * no slot from those that answer.
   */
  requests: 1_024,
  /**
   * Requests at once to one host and port, however many subscriptions point there. A partner has two subscriptions, of
   * 12 requests each, so that its share needs no other bound.
   */
  requestsPerHost: 64,
  /** Requests that wait in memory for one host. Beyond them a subscription is set aside, known by its name alone. */
  waitingPerHost: 64,
  /** The same for all hosts together that are not known to answer within a second. */
  waitingSlow: 256,
  /**
   * Subscriptions in memory; the others that were woken wait for their turn, known by name alone. There are as many as
   * there can be requests, and a quarter more that load or wait, so that those that hang leave room for the others.
   */
  actors: 2_560,
  /** Entries in memory, of which each subscription has the same share. At 1.5 KB each they take 100 MB. */
  entries: 65_536,
};

/** Descriptors for the stores, the resolver, metrics, logs and whatever is opened for a moment. */
const OWN = 128;
/** Connections that idle, for each request that may be under way, where descriptors are few. */
const IDLE_SHARE = 0.5;
/** As many as there are actors: a subscription that goes on finds its connection open. */
const MAX_IDLE = LIMITS.actors;
/** With fewer requests at once for each of both kinds of hosts a dispatcher is of no use. */
const MIN_REQUESTS = 32;

/** How many descriptors a dispatcher needs for so many requests of each kind and what idles beside them. */
function needed(requests: number): number {
  return OWN + Math.ceil(2 * requests * (1 + IDLE_SHARE));
}

export const WANTED_DESCRIPTORS = needed(LIMITS.requests);
export const MIN_DESCRIPTORS = needed(MIN_REQUESTS);

/** What a process with so many descriptors may have under way; undefined if they are too few to begin with. */
export function budgetOf(descriptors: number) {
  if (descriptors < MIN_DESCRIPTORS) return undefined;
  const affordable = Math.floor((descriptors - OWN) / (2 * (1 + IDLE_SHARE)));
  const requests = Math.min(LIMITS.requests, affordable);
  // What idles may use what no request can.
  const spare = descriptors - OWN - 2 * requests;
  return { limits: { ...LIMITS, requests }, maxIdle: Math.min(MAX_IDLE, spare) };
}

/** How many descriptors this process may have. */
export function countDescriptors(): number {
  const { userLimits } = Object(process.report.getReport());
  const limit: unknown = userLimits?.open_files?.soft;
  return typeof limit === "number" ? limit : Number.POSITIVE_INFINITY;
}
