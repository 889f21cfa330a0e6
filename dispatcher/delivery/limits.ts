/** How much a dispatcher has under way and in memory at once (our choice). */
export interface Limits {
  /**
   * Requests at once to hosts whose last answer came within a second, and as many again to all others: whoever hangs
   * takes nothing from those that answer.
   */
  readonly requests: number;
  /**
   * Requests at once to one host and port, however many subscriptions point there. A partner has two subscriptions, of
   * 12 requests each, so that its share needs no other bound.
   */
  readonly requestsPerHost: number;
  /** Requests that wait in memory for one host; what goes beyond is set aside, known by name alone. */
  readonly waitingPerHost: number;
  /** The same for all hosts together that are not known to answer within a second. */
  readonly waitingSlow: number;
  /**
   * Subscriptions in memory; the others that were woken wait for their turn, known by name alone. There are as many as
   * there can be requests, and a quarter more that load or wait, so that those that hang leave room for the others.
   */
  readonly actors: number;
  /** Entries in memory, which the subscriptions share alike. At 1.5 KB each they take 100 MB. */
  readonly entries: number;
}

export const LIMITS: Limits = {
  requests: 1_024,
  requestsPerHost: 64,
  waitingPerHost: 64,
  waitingSlow: 256,
  actors: 2_560,
  entries: 65_536,
};
