import type { Entry, Subscription } from "./event.ts";
import { laneName, MAX_UNRECORDED, SEND_AHEAD } from "./lane.ts";

/*
 * Attempts in doubt. A dispatcher that crashes may have made POSTs without a committed attempt record. The next holder
 * of its shards repeats these attempts, and the new attempt records say that they are possible repeats (contract 7.4).
 */

/**
 * The most entries of a lane that a crashed dispatcher may have sent without a committed attempt record. Contract 7.4
 * counts one entry under way and 16 uncommitted entries; a lane in fact has one fewer of them at a time.
 */
const MAX_IN_DOUBT_PER_LANE = SEND_AHEAD + 1;
/**
 * The size of a first load that shows every entry of a lane that may have been sent, even if the first entry of the
 * lane waits for a retry.
 */
export const IN_DOUBT_LOAD = MAX_IN_DOUBT_PER_LANE + 1;
/**
 * The most lanes of one subscription whose entries are marked as in doubt. A crashed process leaves attempts without an
 * attempt record in at most MAX_UNRECORDED lanes. The limit is higher, because loads may show many other lanes first:
 * lanes that wait for a retry, and lanes from which the crashed process sent nothing.
 */
const MAX_LANES = 32 * MAX_UNRECORDED;

interface SeenLane {
  /** The numbers of entries of the lane: those that loads have shown, and those that were marked as in doubt. */
  shown: number;
  marked: number;
  /** The sequence number of the last entry of the lane that a load has shown. */
  last: number;
}

/**
 * The attempts of one subscription that the crashed holder of its shard may have made. They belong to the first entries
 * of each lane, if these were due at the takeover and existed at the first load.
 */
export class InDoubtAttempts {
  /** The instant at which this process took the shard over. */
  readonly takenOverAt: Date;
  /**
   * The subscription's ordering at the first load. Later changes of the setting are ignored, so that the lanes stay
   * the same.
   */
  ordering: Subscription["ordering"] | undefined;
  /** The last sequence number at the first load; entries above it cannot have been sent by the crashed dispatcher. */
  lastSequence: number | undefined;
  /**
   * The lanes that loads have shown, by name; undefined once loads have shown every lane. From then on no entry is
   * marked as in doubt.
   */
  lanes: Map<string, SeenLane> | undefined = new Map();
  /**
   * The sequence numbers of the entries that are marked as in doubt, each until the repeat of its attempt is answered.
   */
  readonly marked = new Set<number>();

  constructor(takenOverAt: Date) {
    this.takenOverAt = takenOverAt;
  }
}

/**
 * Marks an entry that a load has shown as in doubt if the crashed dispatcher may have sent it. The entries of a lane
 * are passed in their order.
 */
export function markInDoubt(inDoubt: InDoubtAttempts, entry: Entry): void {
  const { takenOverAt, ordering, lastSequence, lanes, marked } = inDoubt;
  if (!lanes || ordering === undefined || entry.sequence > (lastSequence ?? 0)) return;
  const lane = laneName(ordering, entry);
  if (!lanes.has(lane) && lanes.size >= MAX_LANES) return;
  const seen = lanes.getOrInsert(lane, { shown: 0, marked: 0, last: 0 });
  if (entry.sequence <= seen.last) return;
  seen.last = entry.sequence;
  seen.shown += 1;
  // An entry that is due after the takeover is not marked, because it was not under way at the takeover. The entries
  // behind it may have been, because its wait may come from a later attempt, by a process that has released the shard
  // or crashed since.
  if (entry.dueAt !== null && entry.dueAt > takenOverAt) return;
  if (seen.shown > IN_DOUBT_LOAD || seen.marked >= MAX_IN_DOUBT_PER_LANE) return;
  seen.marked += 1;
  marked.add(entry.sequence);
}

/** Notes that loads have shown every lane, and frees the memory of the lanes. */
export function complete(inDoubt: InDoubtAttempts): void {
  inDoubt.lanes = undefined;
}

/** Notes that no attempt is in doubt any more: every entry that is sent from now on was recorded after the takeover. */
export function resolve(inDoubt: InDoubtAttempts): void {
  complete(inDoubt);
  inDoubt.marked.clear();
}

export function isResolved({ lanes, marked }: InDoubtAttempts): boolean {
  return lanes === undefined && marked.size === 0;
}

interface SubscriptionKey {
  readonly subscriptionId: string;
  readonly shard: number;
}

interface DroppedActor {
  readonly id: string;
  readonly shard: number;
  readonly inDoubt: InDoubtAttempts | undefined;
  readonly lanes: ReadonlyMap<string, unknown>;
  readonly nextDueAt: Date | undefined;
  readonly subscription: Subscription | undefined;
  readonly stopping: boolean;
}

interface InDoubtShard {
  readonly takenOverAt: Date;
  /**
   * True once the first sweep of the shard has ended, so that every subscription with entries from before the
   * takeover is known.
   */
  isSwept: boolean;
  /**
   * The attempts in doubt by subscription. Undefined for a subscription that had no actor yet, because thousands of
   * subscriptions may wait for their turn, and an id takes less memory.
   */
  readonly bySubscription: Map<string, InDoubtAttempts | undefined>;
}

/** The attempts in doubt of all shards. They outlive the actors, which are dropped while their first entries wait. */
export class InDoubtShards {
  readonly #shards = new Map<number, InDoubtShard>();

  /** Notes that this process took over `shards`. The former holders of the `unclean` ones among them crashed. */
  begin(shards: readonly number[], unclean: readonly number[], takenOverAt: Date): void {
    for (const shard of shards) this.#shards.delete(shard);
    for (const shard of unclean)
      this.#shards.set(shard, { takenOverAt, isSwept: false, bySubscription: new Map() });
  }

  /** Notes that a sweep has woken every subscription of these shards that has a due entry or batch. */
  swept(shards: readonly number[]): void {
    for (const id of shards) {
      const shard = this.#shards.get(id);
      if (shard !== undefined) shard.isSwept = true;
      this.#prune(id);
    }
  }

  /** Notes that a woken subscription may have attempts in doubt. */
  note({ subscriptionId, shard: id }: SubscriptionKey): void {
    const shard = this.#shards.get(id);
    if (shard?.isSwept === false) shard.bySubscription.getOrInsert(subscriptionId, undefined);
  }

  /** Returns the attempts in doubt of a subscription that `note` has registered. */
  of({ subscriptionId, shard: id }: SubscriptionKey): InDoubtAttempts | undefined {
    const shard = this.#shards.get(id);
    if (!shard?.bySubscription.has(subscriptionId)) return undefined;
    const known = shard.bySubscription.get(subscriptionId);
    const inDoubt = known ?? new InDoubtAttempts(shard.takenOverAt);
    shard.bySubscription.set(subscriptionId, inDoubt);
    return inDoubt;
  }

  /**
   * Resolves the attempts of a dropped actor that has nothing left to send. Until the first sweep of the shard has
   * ended, the subscription stays known as resolved, so that an event that is recorded after the takeover and wakes it
   * before that end is not taken for a possible repeat.
   */
  dropped(actor: DroppedActor): void {
    const { id, shard: shardId, inDoubt, lanes, nextDueAt, subscription, stopping } = actor;
    if (inDoubt === undefined) return;
    const isEmpty = lanes.size === 0 && nextDueAt === undefined;
    const isDone = isEmpty && subscription !== undefined && !stopping;
    if (!isDone && !isResolved(inDoubt)) return;
    resolve(inDoubt);
    const shard = this.#shards.get(shardId);
    if (shard?.isSwept !== true) return;
    shard.bySubscription.delete(id);
    if (shard.bySubscription.size === 0) this.#shards.delete(shardId);
  }

  /** Whether the shard may still have attempts in doubt. */
  has(shard: number): boolean {
    this.#prune(shard);
    return this.#shards.has(shard);
  }

  #prune(id: number): void {
    const shard = this.#shards.get(id);
    if (!shard?.isSwept) return;
    for (const [subscriptionId, inDoubt] of shard.bySubscription)
      if (inDoubt !== undefined && isResolved(inDoubt)) shard.bySubscription.delete(subscriptionId);
    if (shard.bySubscription.size === 0) this.#shards.delete(id);
  }
}
