import { SEND_AHEAD } from "../../dispatcher/actor/lane.ts";
import { LEASE_SAFE_MS } from "../../dispatcher/shards/leases.ts";
import type { StoreDeps } from "./dispatch-store.ts";
import type { Session } from "./network.ts";
import type { DispatcherRow, OutboxRow, SubscriptionRow } from "./tables.ts";
import { laneOf } from "./watch.ts";
import { EPOCH_MS } from "./world.ts";

export type Dead = Pick<DispatcherRow, "id" | "renewedMs">;

/** `expiredDispatchers`. */
export function expiredDispatchers({ tables, world }: StoreDeps, ttlMs: number): Dead[] {
  return Array.from(tables.dispatchers.values(), ({ id, renewedMs }) => ({ id, renewedMs })).filter(
    ({ renewedMs }) => renewedMs < world.nowMs - ttlMs,
  );
}

/**
 * Ends a lease that ran out, and tells as interrupted what its holder may have sent. It waits for the statements that
 * hold the row; a lease that was renewed after all stays.
 */
export async function bury(deps: StoreDeps, dead: Dead, session: Session): Promise<void> {
  const { tables, world, monitor } = deps;
  const isHeld = () => (tables.dispatchers.get(dead.id)?.holders ?? 0) > 0;
  while (isHeld()) await session.work(1);
  await session.pass(world.random.latency(2, 30));
  if (tables.dispatchers.get(dead.id)?.renewedMs !== dead.renewedMs || isHeld()) return;
  world.trace("postgres", `declares ${dead.id} dead`);
  const owned = [...tables.subscriptions.values()].filter(
    (one) => one.state === "active" && tables.owners[one.shard] === dead.id,
  );
  for (const one of owned) monitor.buried(dead.id, one, interrupted(one, dead));
  tables.deleteDispatcher(dead.id);
}

/** `recordInterrupted`: the first entries that were due and recorded while the dead could still send. */
function interrupted(subscription: SubscriptionRow, { renewedMs }: Dead): OutboxRow[] {
  const untilMs = EPOCH_MS + Math.floor(renewedMs) + LEASE_SAFE_MS;
  const blocked = new Set<string>();
  return subscription.outbox
    .slice(0, SEND_AHEAD + 1)
    .filter((row) => row.recordedAtMs <= untilMs)
    .filter((row) => {
      const lane = row.isTest ? "tests" : laneOf(subscription.ordering, row);
      if (row.dueAtMs !== null && row.dueAtMs > untilMs) blocked.add(lane);
      return !blocked.has(lane);
    });
}
