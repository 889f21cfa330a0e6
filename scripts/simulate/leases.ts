import { fairShare, LEASE_TTL_MS, type Leases } from "../../dispatcher/leases.ts";
import type { StoreDeps } from "./dispatch-store.ts";
import type { Session } from "./network.ts";
import type { Process } from "./process.ts";

/** The leases as `createLeases` keeps them, statement by statement; the share is computed by the real rule. */
export function createLeases(
  { world, network, postgres: server, tables }: StoreDeps,
  process: Process,
): Leases {
  const ask = <T>(name: string, serve: (session: Session) => T | Promise<T>) =>
    network.call(process, { server, name }, serve);

  /** Waits for the statements that hold the row; one that was renewed meanwhile stays. */
  const deleteExpired = async (session: Session) => {
    const isExpired = (renewedMs: number) => renewedMs < world.nowMs - LEASE_TTL_MS;
    for (const row of [...tables.dispatchers.values()]) {
      while (isExpired(row.renewedMs) && row.holders > 0) await session.work(1);
      if (!isExpired(row.renewedMs) || !tables.dispatchers.has(row.id)) continue;
      world.trace(process.dispatcherId, `declares ${row.id} dead`);
      tables.deleteDispatcher(row.id);
    }
  };

  const claim = (id: string, limit: number) => {
    if (!tables.dispatchers.has(id)) return [];
    const free = tables.owners.flatMap((owner, shard) => (owner === null ? [shard] : []));
    const claimed = free.slice(0, limit);
    for (const shard of claimed) tables.owners[shard] = id;
    return claimed;
  };

  return {
    join(id) {
      process.dispatcherId = id;
      return ask("join", () => {
        if (tables.dispatchers.has(id)) throw new Error("duplicate key");
        tables.dispatchers.set(id, { id, renewedMs: world.nowMs, holders: 0 });
      });
    },
    async renew(id, watchful) {
      const alive = await ask("renew", () => {
        const row = tables.dispatchers.get(id);
        if (row !== undefined) row.renewedMs = world.nowMs;
        return row !== undefined;
      });
      if (!alive) return { alive: false, owned: [], surplus: 0 };
      if (watchful) await ask("delete expired", deleteExpired);
      const [living, owned] = await Promise.all([
        ask("living", () => [...tables.dispatchers.keys()]),
        ask("owned", () => tables.owners.flatMap((owner, shard) => (owner === id ? [shard] : []))),
      ]);
      const missing = fairShare(living, id) - owned.length;
      const claimed = missing > 0 ? await ask("claim", () => claim(id, missing)) : [];
      return { alive: true, owned: [...owned, ...claimed], surplus: Math.max(0, -missing) };
    },
    release: (id, shards) =>
      ask("release", () => {
        for (const shard of shards) if (tables.owners[shard] === id) tables.owners[shard] = null;
      }),
    leave: (id) => ask("leave", () => tables.deleteDispatcher(id)),
  };
}
