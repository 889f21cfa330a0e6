import { nextBatchAt } from "../../dispatcher/actor/decide.ts";
import type { Session } from "./network.ts";
import { append, queueOf, skipQueued } from "./log.ts";
import type { Prng } from "./prng.ts";
import {
  type HistoryRow,
  newSubscription,
  type OutboxRow,
  type SettledRow,
  type SubscriptionRow,
} from "./tables.ts";
import type { ApiDeps, Writers } from "./writers.ts";
import { SHARDS } from "../../src/outbox/schedule.ts";

const MANY_TESTS = 20;

/** The transactions of the API in which partners change their subscriptions. */
export class Changes {
  readonly #deps: ApiDeps;
  readonly #writers: Writers;
  #created = 0;

  constructor(deps: ApiDeps, writers: Writers) {
    this.#deps = deps;
    this.#writers = writers;
  }

  create(partnerId: number, kind: SubscriptionRow["kind"]): void {
    const { world, tables } = this.#deps;
    const { workload: random, settings } = world;
    const intervalHours = random.int(1, 2);
    const id = `S${String(++this.#created).padStart(2, "0")}`;
    const row = newSubscription({
      id,
      partnerId,
      // Some runs have few shards, so that subscriptions share them; the last shards are the first to move.
      shard: random.chance(0.6) ? SHARDS - random.int(1, 2) : random.int(0, SHARDS - 1),
      host: random.chance(0.2) ? "shared.example" : `${id.toLowerCase()}.example`,
      kind,
      createdAtMs: world.wallMs,
      ordering: kind === "immediate" && random.chance(0.4) ? "review" : "subscription",
      sequenceHeaders: kind === "immediate" && world.numbering.chance(0.6),
      intervalHours,
      nextBatchAtMs: kind === "batch" ? world.postgresMs + intervalHours * settings.hourMs : null,
    });
    row.changedMs = world.nowMs;
    tables.subscriptions.set(id, row);
    world.trace("api", `creates ${id} ${kind} ${row.ordering} in shard ${row.shard}`);
  }

  /** Makes a random change to a subscription of a partner. */
  async change(partnerId: number): Promise<void> {
    const { world, tables } = this.#deps;
    const target = tables.slot(partnerId, world.workload.chance(0.7) ? "immediate" : "batch");
    if (target === undefined) return;
    const draw = world.workload.next();
    if (target.state === "disabled" && draw < 0.6)
      return this.enable(target, world.workload.chance(0.7));
    if (draw < 0.08) return this.#replace(target);
    if (draw < 0.35) return this.#sendTests(target);
    if (draw < 0.55) {
      await this.redeliver(target, (rows) => this.#pickUnskipped(rows));
      return;
    }
    if (draw < 0.75 && target.kind === "immediate") return this.reorder(target);
    return this.#change(target);
  }

  async enable(target: SubscriptionRow, deliver: boolean): Promise<void> {
    const { world, monitor } = this.#deps;
    const session = this.#session();
    await target.sequenceLock.hold(async () => {
      await session.work(world.workload.latency(3, 100));
      if (target.state === "deleted") return;
      // The run of failures ends in every state.
      target.failures = 0;
      monitor.enabled(target.id);
      if (target.state === "active") return;
      target.state = "active";
      target.changedMs = world.nowMs;
      world.trace("api", `enables ${target.id}, ${deliver ? "deliver" : "skip"}`);
      if (deliver) return hastenFirstRetry(target, world.postgresMs);
      this.#skipAll(target, "skipped");
      if (target.nextBatchAtMs === null) return;
      target.lastBatchAtMs = world.postgresMs;
      if (target.nextBatchAtMs > world.postgresMs) return;
      const intervalMs = target.intervalHours * world.settings.hourMs;
      const next = nextBatchAt(
        new Date(target.nextBatchAtMs),
        intervalMs,
        new Date(world.postgresMs),
      );
      target.nextBatchAtMs = next.getTime();
    });
    this.#wake(target);
  }

  /** Deletes a subscription and fills its slot again, while entries are queued and under way. */
  async #replace(target: SubscriptionRow): Promise<void> {
    await this.remove(target);
    const { tables } = this.#deps;
    if (tables.slot(target.partnerId, target.kind) === undefined)
      this.create(target.partnerId, target.kind);
  }

  async remove(target: SubscriptionRow): Promise<void> {
    const { world } = this.#deps;
    const session = this.#session();
    await target.sequenceLock.hold(async () => {
      if (!target.open) return;
      await session.work(world.workload.latency(5, 200));
      target.open = false;
      this.#skipAll(target, "deleted");
      target.state = "deleted";
      target.changedMs = world.nowMs;
      world.trace("api", `deletes ${target.id}`);
    });
  }

  #skipAll(target: SubscriptionRow, reason: "deleted" | "skipped"): void {
    const { world, monitor } = this.#deps;
    skipQueued(target, reason, world.nowMs);
    monitor.skippedThrough(target);
    target.window = undefined;
    for (const { eventId } of target.batch) this.#deps.monitor.skipped(target.id, eventId);
    target.batch = [];
  }

  /** Erases the reviewer of a review: in one transaction the events and the responses that name the person. */
  async erase(partnerId: number, random: Prng): Promise<void> {
    const { world, tables, monitor } = this.#deps;
    const reviewId = random.int(1, world.settings.reviewsPerPartner);
    await this.#session().work(random.latency(20, 500));
    const isOf = (one: Pick<HistoryRow, "reviewId">) => one.reviewId === reviewId;
    const own = [...tables.subscriptions.values()].filter((row) => row.partnerId === partnerId);
    for (const { log, outbox, settled, batch } of own)
      for (const { eventId } of [...log, ...outbox, ...settled.values(), ...batch].filter(isOf))
        tables.erasedMs.getOrInsert(eventId, world.nowMs);
    for (const row of own) {
      row.erasures += 1;
      monitor.erased(row);
      for (const attempt of row.attempts.values())
        if (tables.erasedMs.has(attempt.eventId)) attempt.isNamed = false;
    }
    world.trace("api", `erases review ${reviewId} of partner ${partnerId}`);
  }

  /** Sends one test, or more than a load returns. */
  async #sendTests(target: SubscriptionRow): Promise<void> {
    const count = this.#deps.world.workload.chance(0.1) ? MANY_TESTS : 1;
    for (let n = 0; n < count; n++) await this.sendTest(target, this.#writers.nextEventId());
  }

  async sendTest(target: SubscriptionRow, eventId: string): Promise<void> {
    const { world } = this.#deps;
    const session = this.#session();
    await target.sequenceLock.hold(async () => {
      await session.work(world.workload.latency(3, 50));
      if (target.state !== "active") return;
      const recordedAtMs = world.wallMs;
      this.#append(target, { eventId, isTest: true, reviewId: null, round: 1, recordedAtMs });
    });
    this.#wake(target);
  }

  /**
   * Queues the event of the entry that `choose` picks again. If the event is queued, makes its retry due now. Returns
   * false if neither is possible.
   */
  async redeliver(
    target: SubscriptionRow,
    choose: (rows: readonly (SettledRow | OutboxRow)[]) => OutboxRow | undefined,
  ): Promise<boolean> {
    const { world } = this.#deps;
    const session = this.#session();
    const isDone = await target.sequenceLock.hold(async () => {
      await session.work(world.workload.latency(3, 50));
      if (target.state !== "active") return false;
      const queue = [...queueOf(target)];
      const row = choose([...target.settled.values(), ...queue]);
      if (row === undefined) return false;
      const queued = queue.find((one) => one.eventId === row.eventId);
      if (queued !== undefined) {
        const isHastened = hastenRetry(target, queued, world.postgresMs);
        const what = `${target.id}#${queued.sequence}`;
        if (isHastened) world.trace("api", `makes the retry of ${what} due now`);
        return isHastened;
      }
      // The body of a test contains the time of its request.
      const recordedAtMs = row.isTest ? row.recordedAtMs : world.wallMs;
      this.#append(target, { ...row, round: row.round + 1, recordedAtMs });
      return true;
    });
    this.#wake(target);
    return isDone;
  }

  #pickUnskipped(rows: readonly (SettledRow | OutboxRow)[]): OutboxRow | undefined {
    const done = rows.filter((row) => ("state" in row ? row.state !== "skipped" : row.attempt > 1));
    return done.length === 0 ? undefined : this.#deps.world.workload.pick(done);
  }

  #append(
    target: SubscriptionRow,
    entry: Pick<OutboxRow, "eventId" | "isTest" | "reviewId" | "round" | "recordedAtMs">,
  ): void {
    const { world } = this.#deps;
    const { eventId, isTest, reviewId, round, recordedAtMs } = entry;
    const sequence = ++target.lastSequence;
    const row: OutboxRow = {
      sequence,
      eventId,
      isTest,
      reviewId,
      round,
      recordedAtMs,
      history: undefined,
      attempt: 1,
      dueAtMs: null,
      visibleMs: world.nowMs,
    };
    append(target, "row", [row]);
    const what = isTest ? "a test" : `${eventId} again`;
    world.trace("api", `commits ${target.id}#${sequence}, ${what}`);
  }

  async reorder(target: SubscriptionRow): Promise<void> {
    await this.#session().work(this.#deps.world.workload.latency(3, 50));
    if (target.state === "deleted") return;
    target.ordering = target.ordering === "review" ? "subscription" : "review";
    this.#newVersion(target);
    this.#deps.monitor.reordered(target.id);
    if (this.#deps.world.workload.chance(0.5)) this.#wake(target);
  }

  /** Switches the sequence headers on or off. */
  async renumber(target: SubscriptionRow): Promise<void> {
    await this.#session().work(this.#deps.world.numbering.latency(3, 50));
    if (target.state === "deleted") return;
    target.sequenceHeaders = !target.sequenceHeaders;
    this.#newVersion(target);
  }

  /** Changes the URL or the interval. */
  async #change(target: SubscriptionRow): Promise<void> {
    const { world } = this.#deps;
    await this.#session().work(world.workload.latency(3, 50));
    if (target.state === "deleted") return;
    if (target.nextBatchAtMs !== null) {
      const lastDueMs = target.nextBatchAtMs - target.intervalHours * world.settings.hourMs;
      target.intervalHours = world.workload.int(1, 3);
      const intervalMs = target.intervalHours * world.settings.hourMs;
      const nextMs = lastDueMs + intervalMs;
      target.nextBatchAtMs = nextMs > world.postgresMs ? nextMs : world.postgresMs + intervalMs;
    }
    this.#newVersion(target);
    if (world.workload.chance(0.5)) this.#wake(target);
  }

  #newVersion(target: SubscriptionRow): void {
    target.version += 1;
    target.orderings.push(target.ordering);
    target.headersOf.push(target.sequenceHeaders);
    const { id, version, ordering, sequenceHeaders } = target;
    const settings = `${ordering}, sequence headers ${sequenceHeaders ? "on" : "off"}`;
    this.#deps.world.trace("api", `changes ${id} to version ${version}, ${settings}`);
  }

  #session(): Session {
    const { network, postgres } = this.#deps;
    return network.session(postgres);
  }

  #wake({ id, shard }: SubscriptionRow): void {
    this.#deps.redis.wake([{ subscriptionId: id, shard }]);
  }
}

/** Simulates `hastenFirstRetry`. */
function hastenFirstRetry(target: SubscriptionRow, nowMs: number): void {
  const first = queueOf(target).find((row) => row.dueAtMs !== null && !row.isTest);
  if (first !== undefined) hastenRetry(target, first, nowMs);
}

/** Simulates `hastenRetry`. */
function hastenRetry(
  { outbox, skippedThrough }: SubscriptionRow,
  row: OutboxRow,
  nowMs: number,
): boolean {
  if (row.dueAtMs === null || row.dueAtMs <= nowMs) return false;
  row.dueAtMs = nowMs;
  for (const one of outbox)
    if (
      one.sequence > skippedThrough &&
      !one.isTest &&
      one.reviewId === row.reviewId &&
      (one.behindUntilMs ?? 0) > nowMs
    )
      one.behindUntilMs = nowMs;
  return true;
}
