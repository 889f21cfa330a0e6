import type { EventFacts, PayloadMode } from "../../src/outbox/event.ts";
import type { Decision } from "./decide.ts";

/** A delivery that is due to a subscription: an event of its log, or a row of `outbox`. */
export interface Entry {
  readonly sequence: number;
  /**
   * True if the entry was read from the log instead of `outbox`. If the offset has passed the entry since, the entry
   * has a row in `outbox` now.
   */
  readonly isLogged: boolean;
  readonly eventId: string;
  readonly event: string;
  readonly isTest: boolean;
  readonly payloadMode: PayloadMode;
  readonly reviewId: number | null;
  readonly batchJobId: string | null;
  readonly recordedAt: Date;
  readonly round: number;
  /** The number of the entry's next POST, 1 to 4. */
  readonly attempt: number;
  /** The earliest instant of the entry's next POST; null means immediately. */
  readonly dueAt: Date | null;
  /** True if a load shows only this entry of its review, because the review waited. */
  readonly isFirstOnly: boolean;
  /** The size of the JSON of the event in UTF-8; 0 for a test. */
  readonly bytes: number;
  /**
   * The recorded facts of the event. Undefined for a test (`isTest`), because its body has sample values. Undefined for
   * another entry if its `review_history` row does not exist; such an entry is not sent. They are dropped once the body is
   * composed, and not left out of a copy, because each copy of an entry costs a microsecond.
   */
  facts: EventFacts | undefined;
}

/** The settings of a subscription that its actor needs. Every load reads them again. */
export interface Subscription {
  readonly partnerId: number;
  readonly webhookUrl: string;
  readonly ordering: "subscription" | "review";
  readonly secret: string;
  /** The former secret during the grace period of a rotation. */
  readonly previousSecret: string | null;
  /** Whether requests also carry the headers of Standard Webhooks (contract 7.18). */
  readonly standardWebhooks: boolean;
  /** The due time of the next batch; null for a subscription with immediate delivery. */
  readonly nextBatchAt: Date | null;
  /**
   * The test that decides whether this disabled subscription is enabled, so that nothing else is sent (contract 6.16); null
   * for an active subscription.
   */
  readonly pendingTestEventId: string | null;
  /** The permanent failures in a row that were recorded before the load (contract 7.9). */
  readonly consecutiveFailureCount: number;
  /** The number of erasures of the partner's events before the load (contract 10.8); those of an entry are the same. */
  readonly erasures: number;
  /** The accounts of the partner that are not active, as a text; their events are held (contract 10.1). */
  readonly inactiveAccounts: string;
}

/** A query for the settings and next entries of a subscription, sent by its actor. */
export interface LoadRequest {
  /** The id of the subscription that the actor belongs to. */
  readonly id: string;
  readonly shard: number;
  /** The ordering that the actor knows; undefined before its first load. */
  readonly ordering?: Subscription["ordering"] | undefined;
  /** The generation of the actor when it sent the request. The actor ignores results of an older generation. */
  readonly generation: number;
  /** Only entries above this sequence number are read. Tests are always read. */
  readonly after: number;
  /** The most entries to read, besides tests; 0 reads the settings and tests only. */
  readonly limit: number;
  /** The bytes of entries after which no further entry is read, so that at least one is. */
  readonly maxBytes: number;
  /** Reviews to leave out, because they have a lane in memory. Null stands for events without a review. */
  readonly exceptReviews: readonly (number | null)[];
}

/** The result of a load; `found` is undefined if the subscription is not active and has no pending test. */
export interface Loaded {
  readonly request: LoadRequest;
  readonly found:
    | {
        readonly subscription: Subscription;
        readonly entries: readonly Entry[];
        readonly tests: readonly Entry[];
        /** The last sequence number that was assigned in the subscription. */
        readonly lastSequence: number;
        /**
         * The first due time after now of an entry that waits for a retry, with lanes by review. Such an entry and those
         * behind it in its review are no part of `entries`.
         */
        readonly nextDueAt?: Date | undefined;
      }
    | undefined;
}

/** The events that an actor handles. */
export type ActorEvent =
  /** PostgreSQL may have new entries for the actor, or a wait is over. */
  | { readonly kind: "woken" }
  /** There is room in memory for the bytes of more entries. */
  | { readonly kind: "has_room" }
  /** The delay of a `recheck` has passed. */
  | { readonly kind: "rechecked" }
  | { readonly kind: "loaded"; readonly loaded: Loaded }
  /** A send did not begin. `isEnded`: the subscription is not active any more. */
  | { readonly kind: "unsent"; readonly lane: string; readonly isEnded: boolean }
  /** A send failed on our side, before any byte reached the receiver. */
  | { readonly kind: "postponed"; readonly lane: string; readonly until: Date }
  | { readonly kind: "answered"; readonly lane: string; readonly decision: Decision }
  /** The attempt record of a send is committed. `active`: the subscription is still active. */
  | {
      readonly kind: "committed";
      readonly lane: string;
      readonly decision: Decision;
      readonly active: boolean;
    }
  /** The dispatch of the due batch has succeeded or failed. */
  | { readonly kind: "batched" }
  /**
   * The actor has to stop: the process shuts down, releases the shard, or needs the actor's place for another
   * subscription.
   */
  | { readonly kind: "stopped" };

/** An action that the dispatcher performs for an actor. */
export type Effect =
  | { readonly kind: "load"; readonly request: LoadRequest }
  | {
      readonly kind: "send";
      readonly lane: string;
      readonly entry: Entry;
      readonly subscription: Subscription;
      /** A dispatcher that crashed may have made this attempt before. */
      readonly possiblyRepeated: boolean;
      /** The instant at which the subscription's settings were read; see `isFresh`. */
      readonly readAt: Date;
    }
  /** Dispatches the due batch of the subscription. */
  | { readonly kind: "batch" }
  /**
   * Reports `rechecked` after a delay. A planned wake (`sleep`) would not do: an actor that loads often no longer
   * needs the wake when it comes, but would take it for news and plan another wake.
   */
  | { readonly kind: "recheck"; readonly afterMs: number }
  /** Plans a wake of the subscription for an instant. The wake comes even if the actor was dropped meanwhile. */
  | { readonly kind: "sleep"; readonly until: Date }
  /** Drops the actor from memory. The next wake loads it again. */
  | { readonly kind: "drop" };
