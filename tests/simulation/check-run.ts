import { ENTRY_BYTES, FIRST_LOAD } from "../../dispatcher/actor/state.ts";
import { LIMITS } from "../../dispatcher/delivery/limits.ts";
import { checkMissed } from "./check-numbers.ts";
import { judgeArrivals } from "../verdicts/arrivals.ts";
import { laneOf, type LaneKey } from "../verdicts/lanes.ts";
import type { Cluster } from "./cluster.ts";
import type { Monitor } from "./monitor.ts";
import { isQueueEmpty, queueOf } from "./log.ts";
import type { OutboxRow, SubscriptionRow, Tables } from "./tables.ts";
import type { Watch } from "./watch.ts";
import { EPOCH_MS, type World } from "./world.ts";

interface RunDeps {
  readonly world: World;
  readonly tables: Tables;
  readonly monitor: Monitor;
  readonly cluster: Cluster;
}

/**
 * The time after the last fault within which all due work must be under way: an expiring lease (4 s), one more for
 * processes that could not watch, the sweep (3 s), and one more move of a shard.
 */
const STARVED_MS = 30_000;
/**
 * The longest wait of a subscription without any fault, though shards move and requests hang: CLOSING_MS of the
 * dispatcher, a claim, and the sweep.
 */
const PAUSE_MS = 8_000;
/** The longest wait in runs with few requests at once, each of which may hang for 15 s. */
const SATURATED_PAUSE_MS = 120_000;
/** The time after a crash within which another dispatcher must have taken over. */
const TAKEOVER_MS = 8_000;

/** Checks the invariants of any time; called every second. */
export function checkRun(deps: RunDeps): void {
  checkTakeover(deps);
  checkBytes(deps);
  for (const subscription of deps.tables.subscriptions.values()) {
    deps.monitor.checkCounter(subscription);
    deps.monitor.checkRecords(subscription);
    deps.monitor.checkPlaces(subscription);
    if (subscription.state === "active") checkStarvation(deps, subscription);
  }
}

function checkTakeover({ world, tables, cluster }: RunDeps): void {
  const sinceMs = Math.max(world.troubleMs, world.movedMs);
  if (cluster.serving.length === 0 || world.nowMs - sinceMs <= TAKEOVER_MS) return;
  const living = cluster.running.filter((one) => one.process.alive);
  const ids = new Set(living.map((one) => one.process.dispatcherId));
  const lost = tables.owners.findIndex((owner) => owner !== null && !ids.has(owner));
  if (lost >= 0) world.violate("takeover", `shard ${lost} is of ${tables.owners[lost]}`);
}

/** Checks that the last load of each actor began below the limit of bytes, and brought at most one entry too many. */
function checkBytes({ world, cluster }: RunDeps): void {
  const { eventBytes, limits } = world.settings;
  const mostPerLoad = FIRST_LOAD * ENTRY_BYTES + Math.max(...eventBytes);
  for (const { process, dispatcher } of cluster.running) {
    const { actors, bytes } = dispatcher.workload;
    if (process.alive && bytes > limits.bytes + actors * mostPerLoad)
      world.violate("bounded bytes", `${process.name}: ${bytes} bytes of ${actors} actors`);
  }
}

function checkStarvation(deps: RunDeps, subscription: SubscriptionRow): void {
  const { world, monitor } = deps;
  const watch = monitor.watch(subscription.id);
  const { progressMs, reorderedMs, hinderedMs } = watch;
  const sinceMs = Math.max(progressMs, subscription.changedMs, reorderedMs, hinderedMs);
  const pauseMs = world.settings.limits === LIMITS ? PAUSE_MS : SATURATED_PAUSE_MS;
  if (world.nowMs - world.troubleMs <= STARVED_MS || world.nowMs - sinceMs <= pauseMs) return;
  if (deps.cluster.serving.length === 0 || isUnderWay(deps, watch)) return;
  const limitMs = world.nowMs - pauseMs;
  const starved = headsOf(subscription).find((head) => readyMs(world, head) < limitMs);
  if (starved !== undefined)
    world.violate(
      "no starvation",
      `${subscription.id}#${starved.sequence} is due and nobody sends it`,
      subscription.id,
    );
  const batchMs = subscription.nextBatchAtMs;
  if (batchMs !== null && batchMs - EPOCH_MS - world.stepMs < limitMs)
    world.violate("no starvation", `the batch of ${subscription.id} is due`, subscription.id);
}

function isUnderWay({ tables }: RunDeps, { inFlight }: Watch): boolean {
  for (const post of inFlight)
    if (post.process.alive && tables.dispatchers.has(post.dispatcherId)) return true;
  return false;
}

function headsOf(subscription: SubscriptionRow): OutboxRow[] {
  const heads = new Map<LaneKey, OutboxRow>();
  for (const row of queueOf(subscription)) {
    const lane = laneOf(subscription.ordering, row);
    if (!heads.has(lane)) heads.set(lane, row);
  }
  return [...heads.values()];
}

function readyMs({ stepMs }: World, { dueAtMs, visibleMs }: OutboxRow): number {
  return dueAtMs === null ? visibleMs : dueAtMs - EPOCH_MS - stepMs;
}

/** Checks the invariants of a settled system whose receivers were told what they missed, if they are among `told`. */
export function checkEnd(
  { world, tables, monitor }: RunDeps,
  told: readonly SubscriptionRow[],
): void {
  for (const subscription of tables.subscriptions.values()) {
    monitor.checkPlaces(subscription);
    if (subscription.state === "deleted") continue;
    const watch = monitor.watch(subscription.id);
    checkArrivals(world, subscription, watch);
    if (told.includes(subscription)) checkMissed(world, subscription, watch);
    for (const eventId of watch.expected) {
      const waits = subscription.batch.some((event) => event.eventId === eventId);
      if (!waits && !watch.dispatched.has(eventId))
        world.violate("batch", `${eventId} got lost`, subscription.id);
    }
  }
}

/** Checks that everything delivered arrived, and that first arrivals follow the order of commits in each lane. */
function checkArrivals(world: World, { id, ordering, settled }: SubscriptionRow, watch: Watch) {
  for (const { sequence, state } of settled.values())
    if (state === "delivered" && !watch.firstAccepted.has(sequence))
      world.violate("no loss", `${id}#${sequence} never arrived`, id);
  const order = watch.reorderedMs > 0 ? "review" : ordering;
  const arrivals = [...watch.firstAccepted.keys()].flatMap((place) => {
    const row = settled.get(place);
    return row === undefined ? [] : [{ lane: String(laneOf(order, row)), place }];
  });
  for (const { late, by } of judgeArrivals(arrivals).overtaken)
    world.violate("order", `${id}#${by.place} arrived before #${late.place}`, id);
}

/** Whether no active subscription has work, and no deleted one has queued entries. */
export function isSettled({ tables }: Pick<RunDeps, "tables">): boolean {
  for (const subscription of tables.subscriptions.values()) {
    const { state, nextBatchAtMs, batch } = subscription;
    if (state === "disabled") continue;
    if (!isQueueEmpty(subscription)) return false;
    if (state === "deleted") continue;
    if (batch.length > 0 && nextBatchAtMs !== null) return false;
  }
  return true;
}
