import { SEND_AHEAD } from "../../dispatcher/actor/lane.ts";
import { MAX_QUEUED } from "../../dispatcher/actor/state.ts";
import type { Loaded, LoadRequest } from "../../dispatcher/actor/event.ts";
import type { AttemptRecord } from "../../dispatcher/store/attempt-queries.ts";
import type { DeliveryRequest, PostResult } from "../../dispatcher/delivery/deliver.ts";
import { laneOf } from "../verdicts/lanes.ts";
import { DISABLED_AT, failuresAfter } from "../verdicts/outcome.ts";
import { checkLeaving, checkPost, PARALLEL_REVIEWS, PARALLEL_TESTS } from "./check-post.ts";
import { placeIn } from "./check-numbers.ts";
import { checkDispatch, checkRecord } from "./check-record.ts";
import type { Process } from "./process.ts";
import { entryOf, misplaced, queueOf } from "./log.ts";
import {
  isNamed,
  type DispatcherRow,
  type HistoryRow,
  type OutboxRow,
  type SubscriptionRow,
  type Tables,
} from "./tables.ts";
import { createWatch, findEntry, type Post, type Watch } from "./watch.ts";
import { STEP_EXCUSE_MS, type World } from "./world.ts";

/** The most entries of one lane that a process can have sent without a record. */
const MAY_REPEAT = SEND_AHEAD + 1;
/** The time after a claim, or after the last fault, in which the first sweep of an unclean shard may still run. */
const FIRST_SWEEP_MS = 10_000;
/** The time within which an undisturbed process has renewed its lease. */
const RENEWED_MS = 3_000;

/** Observes everything at the edges of the dispatchers and checks it against the invariants. */
export class Monitor {
  readonly #world: World;
  readonly #tables: Tables;
  readonly #watches = new Map<string, Watch>();

  constructor(world: World, tables: Tables) {
    this.#world = world;
    this.#tables = tables;
  }

  watch(subscriptionId: string): Watch {
    let watch = this.#watches.get(subscriptionId);
    if (watch === undefined) this.#watches.set(subscriptionId, (watch = createWatch()));
    return watch;
  }

  /** Notes a request. Returns undefined if the process is dead, or if no event was recorded for it. */
  posting(process: Process, request: DeliveryRequest): Post | undefined {
    if (!process.alive) return undefined;
    const [, , , id = "", version] = request.url.split("/");
    const subscription = this.#tables.subscription(id);
    const eventId = request.headers["X-SVC-Delivery"] ?? "";
    const attempt = Number(request.headers["X-SVC-Attempt"]);
    const entry = findEntry(subscription, eventId, this.watch(id));
    if (entry === undefined) {
      this.#world.violate("no invented delivery", `${id}: nobody recorded ${eventId}`, id);
      return undefined;
    }
    const post: Post = {
      process,
      dispatcherId: process.dispatcherId,
      subscription,
      entry,
      attempt,
      isNamed: typeof request.body === "string" && isNamed(request.body),
      ordering: subscription.orderings[Number(version)] ?? subscription.ordering,
      isNumbered: subscription.headersOf[Number(version)] === true,
      place: placeIn(request.headers),
      startedMs: this.#world.nowMs,
      startedWallMs: process.wallMs,
      startedMonotonicMs: process.clock.monotonicMs(),
      leftMs: undefined,
      ended: false,
      endedMs: 0,
      endedMonotonicMs: 0,
      recorded: false,
      blame: undefined,
      outcome: undefined,
    };
    this.#world.posts += 1;
    if (this.#world.traced) {
      const what = `${id}#${entry.sequence}/${attempt} ${eventId}, settings ${version}`;
      this.#world.trace(process.name, `POST ${what}`);
    }
    const watch = this.watch(id);
    checkPost({ world: this.#world, tables: this.#tables, watch }, post);
    this.#remember(watch, post);
    return post;
  }

  #remember(watch: Watch, post: Post): void {
    const { sequence, isTest } = post.entry;
    watch.inFlight.add(post);
    const posts = watch.posts.get(sequence);
    if (posts === undefined) watch.posts.set(sequence, [post]);
    else posts.push(post);
    if (!isTest) watch.lastPosted.set(post.dispatcherId, sequence);
  }

  /** Notes that the first byte of a POST leaves its process. */
  leaving(post: Post): void {
    post.leftMs = this.#world.nowMs;
    const watch = this.watch(post.subscription.id);
    checkLeaving({ world: this.#world, tables: this.#tables, watch }, post);
  }

  /** Notes that the receiver accepted the POST. */
  accepted({ subscription, entry, place }: Post): void {
    const { firstAccepted, receiver, received } = this.watch(subscription.id);
    if (!firstAccepted.has(entry.sequence)) firstAccepted.set(entry.sequence, this.#world.nowMs);
    if (place === undefined) return;
    if (receiver.take(place) !== received.has(entry.eventId))
      this.#world.violate(
        "a number that it has is a repeat",
        `${subscription.id}: ${place.number}`,
      );
    received.add(entry.eventId);
  }

  /** Notes the commit of events. */
  recorded(id: string, events: readonly OutboxRow[]): void {
    const { recordedEvents, numbers } = this.watch(id);
    for (const { eventId, sequence } of events)
      numbers.set(eventId, recordedEvents.push({ eventId, sequence }));
  }

  /** Notes that the process got the result of a POST. */
  answered(post: Post, outcome: PostResult["kind"]): void {
    const { id } = post.subscription;
    const watch = this.watch(id);
    post.ended = true;
    post.endedMs = this.#world.nowMs;
    post.endedMonotonicMs = post.process.clock.monotonicMs();
    post.outcome = outcome;
    // Near the 20th failure fewer requests are allowed (contract 7.9).
    const room = DISABLED_AT - watch.failures;
    const { size } = watch.inFlight;
    if (size >= Math.min(PARALLEL_REVIEWS, room)) watch.saturatedMs = this.#world.nowMs;
    const tests = [...watch.inFlight].filter(({ entry }) => entry.isTest).length;
    if (tests >= PARALLEL_TESTS || size >= room) watch.testsSaturatedMs = this.#world.nowMs;
    watch.inFlight.delete(post);
    watch.laneProgressMs.set(laneOf(post.ordering, post.entry), this.#world.nowMs);
    watch.progressMs = this.#world.nowMs;
    if (outcome === "accepted") tellAccepted(watch, post);
    if (outcome === "accepted" && post.leftMs === undefined)
      this.#world.violate("no invented answer", `${id}: to what never left`, id);
    if (!this.#world.traced) return;
    const what = `${id}#${post.entry.sequence}/${post.attempt} ${outcome}`;
    this.#world.trace(post.process.name, `answer ${what}`);
  }

  loading(process: Process, requests: readonly LoadRequest[]): void {
    for (const request of requests) {
      const { id, limit, after } = request;
      this.#notePossibleRepeats(process, request);
      const { firstLoaded, lastPosted } = this.watch(id);
      // The first load of a claim begins at 0, so this request was made before the lease was lost.
      if (after > 0 && !firstLoaded.has(this.#claimOf(process, request))) continue;
      const last = lastPosted.get(process.dispatcherId) ?? 0;
      let queued = 0;
      for (const row of queueOf(this.#tables.subscription(id), last + 1)) {
        if (row.sequence > after) break;
        if (!row.isTest) queued += 1;
      }
      // One more entry may wait for its slot.
      if (queued + limit > MAX_QUEUED + 1)
        this.#world.violate("bounded memory", `${id}: ${queued} queued, ${limit} more asked`, id);
      if (this.#world.traced)
        this.#world.trace(process.name, `loads ${limit} of ${id} after ${after}`);
    }
  }

  loaded(process: Process, { request, found }: Loaded, snapshotMs: number): void {
    this.#notePossibleRepeats(process, request);
    const watch = this.watch(request.id);
    watch.settings.set(process, { snapshotMs, handedMs: this.#world.nowMs });
    if (snapshotMs < watch.erasedMs) watch.outlivedMs.set(process, this.#world.nowMs);
    if (found !== undefined) watch.firstLoaded.set(this.#claimOf(process, request), request);
  }

  /** Called at the instant of the commit, before the entry moves. */
  committing(commit: {
    readonly dispatcherId: string;
    readonly record: AttemptRecord;
    readonly subscription: SubscriptionRow;
    readonly moves: boolean;
    readonly isRepeat: boolean;
    readonly dueAtMs: number | null;
  }): void {
    const { id } = commit.subscription;
    const watch = this.watch(id);
    watch.progressMs = this.#world.nowMs;
    const { sequence } = commit.record;
    const entry = entryOf(commit.subscription, sequence);
    if (entry !== undefined)
      watch.laneProgressMs.set(laneOf(commit.subscription.ordering, entry), this.#world.nowMs);
    checkRecord({ world: this.#world, tables: this.#tables, watch }, commit);
    watch.recorded.add(commit.record.id);
    if (!commit.moves) return;
    const { kind } = commit.record.decision;
    if (watch.disabled) {
      if (kind === "failed")
        this.#world.violate("20 failures", `${id}#${sequence} failed after the 20th failure`, id);
      return;
    }
    if (kind === "delivered" || kind === "failed")
      watch.failures = failuresAfter(watch.failures, kind);
    watch.disabled = watch.failures >= DISABLED_AT;
  }

  /** Checks that there is no gap between the offset and the rows, and no entry in both. */
  checkPlaces(subscription: SubscriptionRow): void {
    const wrong = misplaced(subscription);
    if (wrong === undefined) return;
    this.#world.violate("one place", `${subscription.id}: ${wrong}`, subscription.id);
  }

  checkCounter({ id, state, failures }: SubscriptionRow): void {
    if (state === "deleted") return;
    const watch = this.watch(id);
    if (watch.failures === failures && watch.disabled === (state === "disabled")) return;
    const expected = `${watch.failures}${watch.disabled ? " and disabled" : ""}`;
    this.#world.violate(
      "exact counter",
      `${id}: ${failures}, ${state}; it should be ${expected}`,
      id,
    );
  }

  /** Notes that a lease expired: the dispatcher may have sent the first entries of each lane of these shards. */
  expired({ id, process }: DispatcherRow, shards: readonly number[]): void {
    const { nowMs, postgresDownMs } = this.#world;
    const wellMs = nowMs - Math.max(process.troubledMs, postgresDownMs);
    if (process.alive && process.dispatcherId === id && wellMs > RENEWED_MS)
      this.#world.violate("no expiry of a live lease", `${id} renews its lease, which is expired`);
    for (const subscription of this.#tables.subscriptions.values()) {
      if (!shards.includes(subscription.shard)) continue;
      const watch = this.watch(subscription.id);
      watch.expiredMs = nowMs;
      watch.wasActive = subscription.state === "active";
      this.#allowRepeats(subscription);
    }
  }

  #claimOf({ dispatcherId }: Process, { shard }: LoadRequest): string {
    return `${dispatcherId} ${this.#tables.epochs[shard]}`;
  }

  /**
   * Notes the entries of an unclean shard that its new holder may repeat. They are those at its first load, and once
   * more at a load after it discarded its queues.
   */
  #notePossibleRepeats(process: Process, request: LoadRequest): void {
    const { id, shard, generation } = request;
    const { nowMs, troubleMs } = this.#world;
    const first = this.watch(id).firstLoaded.get(this.#claimOf(process, request));
    if (first !== undefined && first.generation === generation) return;
    if (!this.#tables.unclean[shard]) return;
    const untilMs = Math.max(this.#tables.claimedMs[shard] ?? 0, troubleMs) + FIRST_SWEEP_MS;
    const subscription = this.#tables.subscription(id);
    const [head] = queueOf(subscription);
    // The sweep has found the subscription, but others had their turn first.
    const hasWaited = head !== undefined && head.visibleMs < untilMs;
    if (nowMs < untilMs || hasWaited) this.#allowRepeats(subscription);
  }

  #allowRepeats(subscription: SubscriptionRow): void {
    const { id, ordering } = subscription;
    const { mayRepeat } = this.watch(id);
    const { nowMs, steppedMs, postgresMs } = this.#world;
    // A process that has not noticed a step of the clock yet may take any retry for a due one.
    const isStepping = nowMs - steppedMs < STEP_EXCUSE_MS;
    const due = [...queueOf(subscription)].filter(
      ({ dueAtMs }) => isStepping || (dueAtMs ?? 0) <= postgresMs,
    );
    // One more, because a head that becomes due at this instant counts here and not in the dispatcher.
    for (const lane of Map.groupBy(due, (row) => laneOf(ordering, row)).values())
      for (const { sequence } of lane.slice(0, MAY_REPEAT + 1)) mayRepeat.add(sequence);
  }

  /** Checks that every new attempt in the tables is one whose commit was checked against its POST. */
  checkRecords({ id, attempts }: SubscriptionRow): void {
    const { erasedMs } = this.#tables;
    const watch = this.watch(id);
    // Attempts are never deleted, so the iterator continues at the new ones.
    watch.unchecked ??= attempts.keys();
    for (; watch.checked < attempts.size; watch.checked++) {
      const attempt = watch.unchecked.next().value ?? "";
      if (!watch.recorded.has(attempt))
        this.#world.violate("no invented record", `${attempt} of ${id} is of no POST`, id);
      const row = attempts.get(attempt);
      if (row?.isNamed === true && erasedMs.has(row.eventId))
        this.#world.violate("no response of the erased", `${attempt} of ${id} has one`, id);
    }
  }

  enabled(id: string): void {
    const watch = this.watch(id);
    watch.failures = 0;
    watch.disabled = false;
  }

  /** Notes that an event waits for the next batch. */
  batched(id: string, event: HistoryRow): void {
    const watch = this.watch(id);
    watch.expected.add(event.eventId);
    watch.batchedMs.set(event.eventId, this.#world.nowMs);
  }

  skipped(id: string, eventId: string): void {
    this.watch(id).expected.delete(eventId);
  }

  /** Notes that all queued entries are skipped. */
  skippedThrough({ id, lastSequence }: SubscriptionRow): void {
    const watch = this.watch(id);
    watch.skippedThrough = lastSequence;
    watch.skippedMs = this.#world.nowMs;
  }

  /** Notes that events of the partner are erased. */
  erased({ id }: SubscriptionRow): void {
    this.watch(id).erasedMs = this.#world.nowMs;
  }

  /** Notes that commits of the subscription fail for a while. */
  hindered({ id }: SubscriptionRow, forMs: number): void {
    this.#world.hinderedMs = this.#world.nowMs;
    const watch = this.watch(id);
    watch.hinderedMs = Math.max(watch.hinderedMs, this.#world.nowMs + forMs);
  }

  /** Notes a change of the ordering, after which other entries are heads. */
  reordered(id: string): void {
    const watch = this.watch(id);
    watch.reorderedMs = this.#world.nowMs;
    watch.progressMs = this.#world.nowMs;
  }

  /** Notes a dispatched batch. `readMs`: the time at which its waiting events were read. */
  dispatched(
    subscription: SubscriptionRow,
    entries: readonly OutboxRow[],
    { windowId, readMs }: { readonly windowId: string; readonly readMs: number },
  ): void {
    const watch = this.watch(subscription.id);
    watch.progressMs = this.#world.nowMs;
    watch.dispatchedMs = this.#world.nowMs;
    const deps = { world: this.#world, tables: this.#tables, watch };
    checkDispatch(deps, subscription, { entries, windowId, readMs });
    for (const { eventId } of entries) watch.dispatched.add(eventId);
  }
}

function tellAccepted({ acceptedBy }: Watch, { entry, dispatcherId }: Post): void {
  acceptedBy.getOrInsertComputed(entry.sequence, () => new Set()).add(dispatcherId);
}
