import {
  type Claim,
  fairShare,
  type Heartbeat,
  type Leases,
} from "../../dispatcher/shards/lease-queries.ts";
import type { StoreDeps } from "./dispatch-store.ts";
import type { Session } from "./network.ts";
import type { Process } from "./process.ts";
import type { Tables } from "./tables.ts";

type ClaimedShard = [shard: number, claim: Claim];

/** Simulates `createLeases` statement by statement; the share is computed by the real rule. */
export function createLeases(deps: StoreDeps, process: Process): Leases {
  const { world, network, postgres: server, tables } = deps;
  const ask = <T>(name: string, serve: (session: Session) => T | Promise<T>) =>
    network.call(process, { server, name }, serve);
  const release = (id: string, claims: ReadonlyMap<number, Claim>) =>
    ask("release", () => releaseShards(tables, id, claims));

  return {
    join(id) {
      process.dispatcherId = id;
      world.movedMs = world.nowMs;
      return ask("join", () => {
        if (tables.dispatchers.has(id)) return;
        tables.dispatchers.set(id, { id, process, renewedMs: world.postgresMs, holders: 0 });
      });
    },
    renew: (id) =>
      ask("renew", () => {
        const row = tables.dispatchers.get(id);
        if (row === undefined) return undefined;
        row.renewedMs = Math.max(world.postgresMs, row.renewedMs + 1);
        const isAlone = tables.dispatchers.size === 1 && tables.owners.every((one) => one === id);
        return { now: new Date(world.postgresMs), isAlone };
      }),
    async assign(id) {
      const [living, owned] = await Promise.all([
        ask("living", () => [...tables.dispatchers.keys()]),
        ask("owned", () => shardsOf(tables, id)),
      ]);
      const missing = fairShare(living, id) - owned.length;
      const claim = () => claimShards(tables, id, { limit: missing, nowMs: world.nowMs });
      const claimed = missing > 0 ? await ask("claim", claim) : [];
      return { owned: new Map([...owned, ...claimed]), surplus: Math.max(0, -missing) };
    },
    heartbeats: () => ask("heartbeats", () => heartbeatsOf(tables)),
    expire: (dead) => ask("expire", (session) => expireLease(deps, dead, session)),
    release,
    async leave(id, claims) {
      if (claims.size > 0) await release(id, claims);
      await ask("leave", async (session) => {
        // A running commit locks the row.
        while ((tables.dispatchers.get(id)?.holders ?? 0) > 0) await session.work(1);
        tables.deleteDispatcher(id);
      });
    },
  };
}

function shardsOf(tables: Tables, holder: string | null): ClaimedShard[] {
  const found: ClaimedShard[] = [];
  tables.owners.forEach((owner, shard) => {
    if (owner === holder) found.push([shard, claimOf(tables, shard)]);
  });
  return found;
}

export function claimOf({ epochs, unclean }: Tables, shard: number): Claim {
  return { epoch: epochs[shard] ?? 0, unclean: unclean[shard] ?? false };
}

function claimShards(
  tables: Tables,
  id: string,
  { limit, nowMs }: { limit: number; nowMs: number },
): ClaimedShard[] {
  if (!tables.dispatchers.has(id)) return [];
  return shardsOf(tables, null)
    .slice(0, limit)
    .map(([shard, { epoch }]) => {
      tables.owners[shard] = id;
      tables.epochs[shard] = epoch + 1;
      tables.claimedMs[shard] = nowMs;
      return [shard, claimOf(tables, shard)];
    });
}

export function releaseShards(
  tables: Tables,
  id: string,
  claims: ReadonlyMap<number, Claim>,
): void {
  for (const [shard, { epoch, unclean }] of claims) {
    if (tables.owners[shard] !== id || tables.epochs[shard] !== epoch) continue;
    tables.owners[shard] = null;
    tables.unclean[shard] = unclean;
  }
}

/** Returns the rows of the dispatchers. */
function heartbeatsOf({ dispatchers }: Tables): Heartbeat[] {
  return Array.from(dispatchers.values(), ({ id, renewedMs }) => ({
    id,
    renewedAt: new Date(renewedMs),
  }));
}

/**
 * Expires a lease and frees its shards. It waits for the statements that lock the row; a lease that was renewed after
 * all stays.
 */
async function expireLease(
  deps: StoreDeps,
  dead: Heartbeat,
  session: Session,
): Promise<number | undefined> {
  const { tables, world, monitor } = deps;
  const isHeld = () => (tables.dispatchers.get(dead.id)?.holders ?? 0) > 0;
  while (isHeld()) await session.work(1);
  await session.pass(world.random.latency(2, 30));
  const row = tables.dispatchers.get(dead.id);
  if (row?.renewedMs !== dead.renewedAt.getTime() || isHeld()) return undefined;
  world.trace("postgres", `declares ${dead.id} dead`);
  const shards = freeAsUnclean(tables, dead.id);
  monitor.expired(row, shards);
  tables.deleteDispatcher(dead.id);
  return shards.length;
}

export function freeAsUnclean(tables: Tables, id: string): number[] {
  const shards = tables.owners.flatMap((owner, shard) => (owner === id ? [shard] : []));
  for (const shard of shards) tables.unclean[shard] = true;
  return shards;
}
