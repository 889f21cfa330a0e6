import { MAX_QUEUED, PARALLEL_REVIEWS } from "../../dispatcher/actor/state.ts";
import type { LoadRequest } from "../../dispatcher/actor/event.ts";
import type { AttemptRecord } from "../../dispatcher/store/attempt.ts";
import { DISABLE_AFTER_FAILURES } from "../../dispatcher/actor/decide.ts";
import type { DeliveryRequest, Outcome } from "../../dispatcher/delivery/deliver.ts";
import { checkLeaving, checkPost, PARALLEL_TESTS } from "./check-post.ts";
import { checkDispatch, checkRecord } from "./check-record.ts";
import type { Process } from "./process.ts";
import type { HistoryRow, OutboxRow, SubscriptionRow, Tables } from "./tables.ts";
import { createWatch, laneOf, type Post, type Watch } from "./watch.ts";
import type { World } from "./world.ts";

/** Of how many lanes the dispatcher that ends a lease tells. */
const LANES_TOLD = 2 * PARALLEL_REVIEWS;
/** For how long after a change of the ordering entries may still be under way in lanes of the old one. */
const REORDER_EXCUSE_MS = 60_000;

/** Sees everything that happens at the edges of the dispatchers, and holds it against the invariants. */
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

  /** A request leaves a process. Undefined if the process is dead already, or nobody recorded the event. */
  posting(process: Process, request: DeliveryRequest): Post | undefined {
    if (!process.alive) return undefined;
    const [, , , id = "", version] = request.url.split("/");
    const subscription = this.#tables.subscription(id);
    const eventId = request.headers["X-SVC-Delivery"] ?? "";
    const attempt = Number(request.headers["X-SVC-Attempt"]);
    const entry = findEntry(subscription, eventId);
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
      ordering: subscription.orderings[Number(version)] ?? subscription.ordering,
      startedMs: this.#world.nowMs,
      startedWallMs: process.wallMs,
      leftMs: undefined,
      ended: false,
      endedWallMs: 0,
      outcome: undefined,
    };
    this.#world.posts += 1;
    const what = `${id}#${entry.sequence}/${attempt} ${eventId}, settings ${version}`;
    this.#world.trace(process.name, `POST ${what}`);
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

  /** The first byte of a POST leaves its process. */
  leaving(post: Post): void {
    post.leftMs = this.#world.nowMs;
    checkLeaving({ world: this.#world, tables: this.#tables }, post);
  }

  /** The receiver took it. */
  accepted({ subscription, entry }: Post): void {
    const { firstAccepted } = this.watch(subscription.id);
    if (!firstAccepted.has(entry.sequence)) firstAccepted.set(entry.sequence, this.#world.nowMs);
  }

  /** The process was told how a POST ended. */
  answered(post: Post, outcome: Outcome["kind"]): void {
    const { id } = post.subscription;
    const watch = this.watch(id);
    post.ended = true;
    post.endedWallMs = post.process.wallMs;
    post.outcome = outcome;
    if (watch.inFlight.size >= PARALLEL_REVIEWS) watch.crowdedMs = this.#world.nowMs;
    const tests = watch.inFlight.values().filter((one) => one.entry.isTest);
    if ([...tests].length >= PARALLEL_TESTS) watch.testsCrowdedMs = this.#world.nowMs;
    watch.inFlight.delete(post);
    watch.laneProgressMs.set(laneOf(post.ordering, post.entry), this.#world.nowMs);
    watch.progressMs = this.#world.nowMs;
    if (outcome === "accepted") tellAccepted(watch, post);
    if (outcome === "accepted" && post.leftMs === undefined)
      this.#world.violate("no invented answer", `${id}: to what never left`, id);
    const what = `${id}#${post.entry.sequence}/${post.attempt} ${outcome}`;
    this.#world.trace(post.process.name, `answer ${what}`);
  }

  loading(process: Process, requests: readonly LoadRequest[]): void {
    for (const { id, limit, after } of requests) {
      const last = this.watch(id).lastPosted.get(process.dispatcherId) ?? 0;
      const { outbox } = this.#tables.subscription(id);
      const queued = outbox.filter(
        (row) => !row.isTest && row.sequence > last && row.sequence <= after,
      ).length;
      // One more entry may wait for its slot.
      if (queued + limit > MAX_QUEUED + 1)
        this.#world.violate("bounded memory", `${id}: ${queued} queued, ${limit} more asked`, id);
      this.#world.trace(process.name, `loads ${limit} of ${id} after ${after}`);
    }
  }

  loaded(process: Process, id: string, snapshotMs: number): void {
    this.watch(id).settings.set(process, { snapshotMs, handedMs: this.#world.nowMs });
  }

  /** Called at the instant of the commit, before the entry moves. */
  committing(commit: {
    readonly dispatcherId: string;
    readonly record: AttemptRecord;
    readonly subscription: SubscriptionRow;
    readonly moves: boolean;
    readonly isRepeat: boolean;
  }): void {
    const { id } = commit.subscription;
    const watch = this.watch(id);
    watch.progressMs = this.#world.nowMs;
    const { sequence } = commit.record;
    const entry = commit.subscription.outbox.find((row) => row.sequence === sequence);
    if (entry !== undefined)
      watch.laneProgressMs.set(laneOf(commit.subscription.ordering, entry), this.#world.nowMs);
    checkRecord({ world: this.#world, tables: this.#tables, watch }, commit);
    if (!commit.moves || watch.disabled) return;
    const { kind } = commit.record.decision;
    if (kind === "delivered") watch.failures = 0;
    if (kind === "failed") watch.failures += 1;
    watch.disabled = watch.failures >= DISABLE_AFTER_FAILURES;
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

  /** A dispatcher was declared dead, and these of its entries were told as interrupted: all that it may have sent. */
  buried(dispatcherId: string, subscription: SubscriptionRow, told: readonly OutboxRow[]): void {
    const { posts, reorderedMs } = this.watch(subscription.id);
    if (this.#world.nowMs - reorderedMs < REORDER_EXCUSE_MS) return;
    const lanes = new Set(told.map((row) => laneOf(subscription.ordering, row)));
    for (const row of subscription.outbox) {
      if (told.includes(row)) continue;
      const sent = posts
        .get(row.sequence)
        ?.find((post) => post.dispatcherId === dispatcherId && post.attempt === row.attempt);
      // A known gap: while a commit is slow, more lanes can have something unrecorded than are looked at.
      if (lanes.size >= LANES_TOLD && !lanes.has(laneOf(subscription.ordering, row))) continue;
      // A process with another clock than that of Postgres may have sent what is not due yet for Postgres.
      if (sent === undefined || sent.process.skewMs !== 0) continue;
      if (sent.outcome === "aborted" || sent.leftMs === undefined) continue;
      const what = `${subscription.id}#${row.sequence}/${row.attempt} of ${dispatcherId}`;
      this.#world.violate("every POST has its record", `nobody tells of ${what}`, subscription.id);
    }
  }

  enabled(id: string): void {
    const watch = this.watch(id);
    watch.failures = 0;
    watch.disabled = false;
  }

  /** An event waits for the next batch. */
  batched(id: string, event: HistoryRow): void {
    this.watch(id).expected.add(event.eventId);
  }

  skipped(id: string, eventId: string): void {
    this.watch(id).expected.delete(eventId);
  }

  /** The ordering was changed, so other entries than before are heads. */
  reordered(id: string): void {
    const watch = this.watch(id);
    watch.reorderedMs = this.#world.nowMs;
    watch.progressMs = this.#world.nowMs;
  }

  dispatched(subscription: SubscriptionRow, entries: readonly OutboxRow[]): void {
    const watch = this.watch(subscription.id);
    watch.progressMs = this.#world.nowMs;
    checkDispatch({ world: this.#world, tables: this.#tables, watch }, subscription, entries);
    for (const { eventId } of entries) watch.dispatched.add(eventId);
  }
}

function tellAccepted({ acceptedBy }: Watch, { entry, dispatcherId }: Post): void {
  const known = acceptedBy.get(entry.sequence);
  if (known === undefined) acceptedBy.set(entry.sequence, new Set([dispatcherId]));
  else known.add(dispatcherId);
}

/** The unsettled entry of an event, or else the last settled one. */
function findEntry(subscription: SubscriptionRow, eventId: string): OutboxRow | undefined {
  const unsettled = subscription.outbox.find((row) => row.eventId === eventId);
  if (unsettled !== undefined) return unsettled;
  let last: OutboxRow | undefined;
  for (const row of subscription.settled.values()) if (row.eventId === eventId) last = row;
  return last;
}
