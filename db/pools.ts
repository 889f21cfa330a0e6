/** The numbers of connections that the settings choose: of the API's two pools, and of the dispatcher. */
interface PoolSettings {
  readonly api: number;
  readonly writerPool: number;
  readonly dispatcher: number;
}

/**
 * Returns the connection pools of an API, of a dispatcher, and those that a dispatcher has besides while it runs
 * maintenance, each with its most connections. A pool of 0 shares the connection of the pool `dispatcher`. The processes
 * open these pools, as `reviewrelay-<name>`, and the doctor counts them.
 */
export function poolsOf({ api, writerPool, dispatcher }: PoolSettings) {
  // With one connection, leases and readiness share it, so that a dispatcher can run on two sessions. Work on this
  // connection can delay the check for crashed dispatchers, which other dispatchers make as well, but never the renewal
  // of the own lease.
  const separate = dispatcher === 1 ? 0 : 1;
  return {
    api: { api, writer: writerPool, ready: 1 },
    dispatcher: { dispatcher, renewals: 1, leases: separate, ready: separate },
    maintenance: { maintenance: 1, indexing: 1 },
  };
}

/** Counts the connections of some pools. */
export function sumOf(pools: Readonly<Record<string, number>>): number {
  return Object.values(pools).reduce((sum, size) => sum + size, 0);
}
