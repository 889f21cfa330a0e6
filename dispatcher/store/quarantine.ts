import type { QuarantinedLane } from "../../src/outbox/quarantined-lane.ts";
import type { Clock } from "../../src/lib/clock.ts";
import type { Failure } from "./group-runner.ts";

/**
 * The time in milliseconds for which a lane counts as quarantined after it was noted last, which is longer than twice
 * the longest pause between two tries.
 */
const QUARANTINE_SHOWN_MS = 65_000;
/** The most quarantined lanes that a renewal of the lease publishes. */
export const MAX_QUARANTINED_SHOWN = 200;

export type NewQuarantine = Omit<QuarantinedLane, "since">;

/**
 * The quarantined lanes of this process. Each part of the dispatcher notes a lane with every failed try, and the
 * renewal of the lease publishes them, because other processes do not know them.
 */
export class Quarantine {
  readonly #clock: Clock;
  readonly #lanes = new Map<string, { readonly lane: QuarantinedLane; readonly atMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Notes that a try has failed. `key` is the name of the lane, or the id of the subscription if it is quarantined as a
   * whole.
   */
  note(key: string, lane: NewQuarantine): void {
    const known = this.#lanes.get(keyOf(key, lane));
    const since = known?.lane.since ?? this.#clock.now().toISOString();
    this.#lanes.set(keyOf(key, lane), {
      lane: { ...lane, since },
      atMs: this.#clock.monotonicMs(),
    });
  }

  /** Notes that a try for this reason has succeeded, or that the lane is gone. */
  end(key: string, reason: QuarantinedLane["reason"]): void {
    // Nothing is looked up while no lane is quarantined, which is the usual case, because every delivery calls this
    // method.
    if (this.#lanes.size > 0) this.#lanes.delete(keyOf(key, { reason }));
  }

  clear(): void {
    this.#lanes.clear();
  }

  /** The lanes that are quarantined now, the oldest quarantine first. */
  list(): QuarantinedLane[] {
    const fromMs = this.#clock.monotonicMs() - QUARANTINE_SHOWN_MS;
    for (const [key, { atMs }] of this.#lanes) if (atMs < fromMs) this.#lanes.delete(key);
    return Array.from(this.#lanes.values(), ({ lane }) => lane);
  }
}

const keyOf = (key: string, { reason }: Pick<QuarantinedLane, "reason">) => `${reason} ${key}`;

/** Describes a subscription that is quarantined as a whole, without an entry. */
export function wholly(subscriptionId: string, reason: QuarantinedLane["reason"]): NewQuarantine {
  return {
    subscription_id: subscriptionId,
    reason,
    event_id: null,
    sequence: null,
    review_id: null,
  };
}

interface TryResult {
  readonly reason: "unreadable" | "unrecordable";
  readonly failure: Failure | undefined;
  readonly entry?: Pick<QuarantinedLane, "event_id" | "sequence">;
}

/** Notes the result of a try of a quarantined subscription. Without a failure its quarantine has ended. */
export function noteFailure(
  quarantine: Quarantine | undefined,
  id: string,
  { reason, failure, entry }: TryResult,
) {
  const present = failure === "waits" ? "locked" : reason;
  for (const other of [reason, "locked"] as const)
    if (failure === undefined || other !== present) quarantine?.end(id, other);
  if (failure !== undefined && failure !== "store")
    quarantine?.note(id, { ...wholly(id, present), ...entry });
}
