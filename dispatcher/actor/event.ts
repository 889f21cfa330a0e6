import type { EventFacts, PayloadMode } from "../../src/outbox/event.ts";
import type { Decision } from "./decide.ts";

/** An entry in the queue of a subscription: an event of its log, or a row of `outbox`. */
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
  /**
   * True if the entry has waited for its retry, or for that of an earlier entry of its review. The load then returned
   * no other entry of the review.
   */
  readonly isFirstOnly: boolean;
  /** The size in bytes of the JSON of the event in UTF-8; 0 for a test. */
  readonly bytes: number;
  /** The number of the event at the subscription; null if the request does not carry it (contract 7.19). */
  readonly number: number | null;
  /** The number of the last event before this entry in the queue; 0 if there is none or `number` is null. */
  readonly settledBefore: number;
  /**
   * The recorded facts of the event. Undefined for a test (`isTest`), because its body has sample values. Undefined for
   * another entry if its `review_history` row does not exist; such an entry is not sent. The sender sets the field to
   * undefined once the body is composed. It changes the entry itself, because a copy without the facts would cost a
   * microsecond.
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
  /**
   * With lanes by review, the number up to which every event was delivered or given up before the load. With one lane,
   * the number before the first held event, or the last one. Null if requests do not carry numbers (contract 7.19).
   */
  readonly settledLimit: number | null;
  /** The subscription's own headers, which follow after ours (contract 6.22); null without any. */
  readonly headers: Readonly<Record<string, string>> | null;
  /** The due time of the next batch; null for a subscription with immediate delivery. */
  readonly nextBatchAt: Date | null;
  /**
   * The test whose outcome decides whether this disabled subscription is enabled (contract 6.16). Until then nothing
   * else is sent. Null for an active subscription.
   */
  readonly pendingTestEventId: string | null;
  /** The permanent failures in a row that were recorded before the load (contract 7.9). */
  readonly consecutiveFailureCount: number;
  /**
   * The number of erasures of the partner's events before the load (contract 10.8). It applies to every entry of the
   * load.
   */
  readonly erasures: number;
  /**
   * The ids of the partner's accounts that are not active, in one text. Events of these accounts are held (contract
   * 10.1).
   */
  readonly inactiveAccounts: string;
}

/** A query for the settings and next entries of a subscription, sent by its actor. */
export interface LoadRequest {
  /** The id of the subscription that the actor belongs to. */
  readonly id: string;
  readonly shard: number;
  /** The ordering that the actor knows; undefined before its first load. */
  readonly ordering?: Subscription["ordering"] | undefined;
  /** Whether requests carry numbers, as far as the actor knows (contract 7.19). */
  readonly isNumbered?: boolean;
  /** The generation of the actor when it sent the request. The actor ignores results of an older generation. */
  readonly generation: number;
  /** Only entries above this sequence number are read. Tests are always read. */
  readonly after: number;
  /** The most entries to read, besides tests; 0 reads the settings and tests only. */
  readonly limit: number;
  /** The load ends with the entry that brings the sum of bytes to this limit, so it returns at least one entry. */
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
         * The earliest time after now at which the retry of an entry is due. Set only if lanes are by review; then
         * `entries` contains neither the entries that wait for a retry nor the later entries of their reviews.
         */
        readonly nextDueAt?: Date | undefined;
      }
    | undefined;
}

/** The inputs of an actor, which are no webhook events. */
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
  /** The transactions that turn the due batch into entries have ended, with or without success. */
  | { readonly kind: "batched" }
  /**
   * The actor has to stop: the process shuts down, releases the shard, or needs the actor's place for another
   * subscription.
   */
  | { readonly kind: "stopped" };

/** A piece of work that the dispatcher performs for an actor. */
export type Effect =
  | { readonly kind: "load"; readonly request: LoadRequest }
  | {
      readonly kind: "send";
      readonly lane: string;
      readonly entry: Entry;
      readonly subscription: Subscription;
      /** True if a dispatcher that crashed may have made this attempt before. */
      readonly possiblyRepeated: boolean;
      /** The instant at which the subscription's settings were read; see `isFresh`. */
      readonly readAt: Date;
    }
  /** Turns the due batch of the subscription into entries. */
  | { readonly kind: "batch" }
  /**
   * Reports `rechecked` after a delay. A planned wake (`sleep`) does not fit: when it comes, an actor that loads often
   * no longer needs it, but takes it as a sign of new entries, loads again and plans another wake.
   */
  | { readonly kind: "recheck"; readonly afterMs: number }
  /**
   * Plans a wake of the subscription for an instant. The wake comes even if the actor was dropped before that instant.
   */
  | { readonly kind: "sleep"; readonly until: Date }
  /** Drops the actor from memory. The next wake loads it again. */
  | { readonly kind: "drop" };
