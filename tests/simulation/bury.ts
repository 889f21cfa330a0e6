import { SEND_AHEAD } from "../../dispatcher/actor/lane.ts";
import { PARALLEL_REVIEWS } from "../../dispatcher/actor/state.ts";
import { LEASE_SAFE_MS } from "../../dispatcher/shards/leases.ts";
import type { StoreDeps } from "./dispatch-store.ts";
import type { Session } from "./network.ts";
import type { DispatcherRow, OutboxRow, SubscriptionRow } from "./tables.ts";
import { laneOf } from "./watch.ts";
import { EPOCH_MS } from "./world.ts";

export type Dead = Pick<DispatcherRow, "id" | "renewedMs">;

/** The bounds of `recordInterrupted`: entries of a lane, lanes of a subscription, entries of it that are looked at. */
const PER_LANE = SEND_AHEAD + 1;
const LANES = 2 * PARALLEL_REVIEWS;
const WINDOW = 1_000;

/** `expiredDispatchers`. */
export function expiredDispatchers({ tables, world }: StoreDeps, ttlMs: number): Dead[] {
  return Array.from(tables.dispatchers.values(), ({ id, renewedMs }) => ({ id, renewedMs })).filter(
    ({ renewedMs }) => renewedMs < world.nowMs - ttlMs,
  );
}

/**
 * Ends a lease that ran out, and records as interrupted what its holder may have sent. It waits for the statements that
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
  for (const one of owned) {
    const told = interrupted(one, dead);
    for (const { sequence, round, attempt } of told)
      one.attempts.set(`${dead.id} ${sequence}`, {
        sequence,
        round,
        attempt,
        outcome: "interrupted",
        nextAttemptAtMs: null,
      });
    monitor.buried(dead.id, one, told);
  }
  tables.deleteDispatcher(dead.id);
}

/** `recordInterrupted`: in each lane the first entries that were due and recorded while the dead could still send. */
function interrupted(subscription: SubscriptionRow, { renewedMs }: Dead): OutboxRow[] {
  const untilMs = EPOCH_MS + Math.floor(renewedMs) + LEASE_SAFE_MS;
  const recorded = subscription.outbox
    .slice(0, WINDOW)
    .filter((row) => row.recordedAtMs <= untilMs);
  const lanes = Map.groupBy(recorded, (row) => laneOf(subscription.ordering, row));
  return Array.from(lanes.values(), (lane) => {
    // Behind a head that waits for its retry nothing was sent.
    const late = lane.findIndex(({ dueAtMs }) => dueAtMs !== null && dueAtMs > untilMs);
    return lane.slice(0, Math.min(late < 0 ? PER_LANE : late, PER_LANE));
  })
    .filter((lane) => lane.length > 0)
    .slice(0, LANES)
    .flat();
}
