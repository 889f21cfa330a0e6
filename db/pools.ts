/** The numbers of connections that settings define: those of the API's two pools, and those of the dispatcher. */
interface PoolSettings {
  readonly api: number;
  readonly writerPool: number;
  readonly dispatcher: number;
}

/**
 * Returns the connection pools of an API, of a dispatcher, and the additional ones of a dispatcher that runs
 * maintenance, each with its maximum number of connections. A pool with 0 connections shares the connection of the pool
 * `dispatcher`. The processes open these pools as `reviewrelay-<name>`, and the doctor counts them.
 */
export function poolsOf({ api, writerPool, dispatcher }: PoolSettings) {
  // Leases and readiness share the connection if the setting is 1, so that a dispatcher needs only two sessions. Work
  // on this connection can delay the check for crashed dispatchers, which other dispatchers also run, but never the
  // renewal of the process's own lease.
  const separate = dispatcher === 1 ? 0 : 1;
  return {
    api: { api, writer: writerPool, ready: 1 },
    dispatcher: { dispatcher, renewals: 1, leases: separate, ready: separate },
    maintenance: { maintenance: 1, indexing: 1 },
  };
}

/** Returns the total number of connections in some pools. */
export function sumOf(pools: Readonly<Record<string, number>>): number {
  return Object.values(pools).reduce((sum, size) => sum + size, 0);
}
