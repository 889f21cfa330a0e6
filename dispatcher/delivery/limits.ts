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
