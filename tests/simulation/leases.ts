import { fairShare, LEASE_TTL_MS, type Leases } from "../../dispatcher/shards/leases.ts";
import { bury, expiredDispatchers } from "./bury.ts";
import type { StoreDeps } from "./dispatch-store.ts";
import type { Session } from "./network.ts";
import type { Process } from "./process.ts";
import type { Tables } from "./tables.ts";

type ClaimedShard = [shard: number, epoch: number];

/** The leases as `createLeases` keeps them, statement by statement; the share is computed by the real rule. */
export function createLeases(deps: StoreDeps, process: Process): Leases {
  const { world, network, postgres: server, tables } = deps;
  const ask = <T>(name: string, serve: (session: Session) => T | Promise<T>) =>
    network.call(process, { server, name }, serve);

  const buryTheDead = async () => {
    for (const dead of await ask("expired", () => expiredDispatchers(deps, LEASE_TTL_MS)))
      await ask("bury", (session) => bury(deps, dead, session));
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
      if (!alive) return { alive: false, owned: new Map(), surplus: 0 };
      if (watchful) await buryTheDead();
      const [living, owned] = await Promise.all([
        ask("living", () => [...tables.dispatchers.keys()]),
        ask("owned", () => shardsOf(tables, id)),
      ]);
      const missing = fairShare(living, id) - owned.length;
      const claimed = missing > 0 ? await ask("claim", () => claimShards(tables, id, missing)) : [];
      return {
        alive: true,
        owned: new Map([...owned, ...claimed]),
        surplus: Math.max(0, -missing),
      };
    },
    release: (id, epochs) => ask("release", () => releaseShards(tables, id, epochs)),
    leave: (id) =>
      ask("leave", async (session) => {
        // A commit that is under way holds the row.
        while ((tables.dispatchers.get(id)?.holders ?? 0) > 0) await session.work(1);
        tables.deleteDispatcher(id);
      }),
  };
}

function shardsOf(tables: Tables, holder: string | null): ClaimedShard[] {
  return tables.owners.flatMap((owner, shard): ClaimedShard[] =>
    owner === holder ? [[shard, tables.epochs[shard] ?? 0]] : [],
  );
}

function claimShards(tables: Tables, id: string, limit: number): ClaimedShard[] {
  if (!tables.dispatchers.has(id)) return [];
  return shardsOf(tables, null)
    .slice(0, limit)
    .map(([shard, before]) => {
      tables.owners[shard] = id;
      tables.epochs[shard] = before + 1;
      return [shard, before + 1];
    });
}

export function releaseShards(
  tables: Tables,
  id: string,
  epochs: ReadonlyMap<number, number>,
): void {
  for (const [shard, epoch] of epochs)
    if (tables.owners[shard] === id && tables.epochs[shard] === epoch) tables.owners[shard] = null;
}
