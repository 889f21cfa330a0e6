import type { Heartbeat } from "../../dispatcher/shards/leases.ts";
import type { StoreDeps } from "./dispatch-store.ts";
import type { Session } from "./network.ts";
import type { Tables } from "./tables.ts";

/** The rows of the dispatchers, as `heartbeats` reads them. */
export function heartbeatsOf({ dispatchers }: Tables): Heartbeat[] {
  return Array.from(dispatchers.values(), ({ id, renewedMs }) => ({
    id,
    renewedAt: new Date(renewedMs),
  }));
}

/**
 * Ends a lease and frees its shards. It waits for the statements that hold the row; a lease that was renewed after all
 * stays.
 */
export async function bury(
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
  const shards = orphanShards(tables, dead.id);
  monitor.buried(row, shards);
  tables.deleteDispatcher(dead.id);
  return shards.length;
}

export function orphanShards(tables: Tables, id: string): number[] {
  const shards = tables.owners.flatMap((owner, shard) => (owner === id ? [shard] : []));
  for (const shard of shards) tables.orphaned[shard] = true;
  return shards;
}
