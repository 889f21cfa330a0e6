import type { EventFacts, PayloadMode } from "../../src/outbox/event.ts";
import type { Decision } from "./decide.ts";

/** What the bodies of all events say of themselves. */
export type EventIdentity = Pick<EventFacts, "event" | "eventId" | "partnerId" | "occurredAt">;

/** What the body of an entry is made from; a test has no facts but sample values. */
export type BodySource =
  | { readonly kind: "recorded"; readonly facts: EventFacts }
  | ({ readonly kind: "test" } & EventIdentity);

/** What is to be delivered to a subscription: an event of its log, or a row of `outbox`. */
export interface Entry {
  readonly sequence: number;
  /** It was read from the log. The offset may have passed it since, and it then has a row in `outbox`. */
  readonly isLogged: boolean;
  readonly eventId: string;
  readonly event: string;
  readonly isTest: boolean;
  readonly payloadMode: PayloadMode;
  readonly reviewId: number | null;
  readonly batchJobId: string | null;
  readonly recordedAt: Date;
  readonly round: number;
  /** The number that its next POST carries, 1 to 4. */
  readonly attempt: number;
  /** It is not sent before this instant; null for at once. */
  readonly dueAt: Date | null;
  /** `missing`: the row of `review_history` that the entry names does not exist, so its body cannot be composed. */
  readonly source: BodySource | { readonly kind: "missing" };
}

export type SendableEntry = Entry & { readonly source: BodySource };

export function isSendable(entry: Entry): entry is SendableEntry {
  return entry.source.kind !== "missing";
}

/** What an actor needs to know of its subscription; read anew with every load. */
export interface Subscription {
  readonly id: string;
  readonly shard: number;
  readonly partnerId: number;
  readonly webhookUrl: string;
  readonly ordering: "subscription" | "review";
  readonly secret: string;
  /** The former secret, during the grace period of a rotation. */
  readonly previousSecret: string | null;
  /** Null for the immediate slot. */
  readonly nextBatchAt: Date | null;
}

/** What an actor asks Postgres for. */
export interface LoadRequest {
  /** Of the subscription. */
  readonly id: string;
  readonly shard: number;
  /** The actor's when it asked: the answer to an older load is not used. */
  readonly generation: number;
  /** Only entries behind this sequence, tests apart. */
  readonly after: number;
  /** How many entries at the most, tests apart; 0 to read the settings and tests alone. */
  readonly limit: number;
  /** Reviews with a lane in memory; null stands for the lane of events without a review. */
  readonly exceptReviews: readonly (number | null)[];
}

/** The answer to a load; `found` is absent if the subscription is not active. */
export interface Loaded {
  readonly request: LoadRequest;
  readonly found:
    | {
        readonly subscription: Subscription;
        readonly entries: readonly Entry[];
        readonly tests: readonly Entry[];
        /** The last that was given out. */
        readonly lastSequence: number;
      }
    | undefined;
}

/** What happened. */
export type ActorEvent =
  /** There may be something new in Postgres, or a wait is over. */
  | { readonly kind: "woken" }
  /** The time of a `recheck` has passed. */
  | { readonly kind: "rechecked" }
  | { readonly kind: "loaded"; readonly loaded: Loaded }
  /** The send was never begun; `isEnded`: because its subscription is not active any more. */
  | { readonly kind: "unsent"; readonly lane: string; readonly isEnded: boolean }
  /** The send failed on our side, before anything reached the receiver. */
  | { readonly kind: "postponed"; readonly lane: string; readonly until: Date }
  | { readonly kind: "answered"; readonly lane: string; readonly decision: Decision }
  /** The outcome is in Postgres; `active` says whether the subscription still is. */
  | {
      readonly kind: "committed";
      readonly lane: string;
      readonly decision: Decision;
      readonly active: boolean;
    }
  /** The due batch was dispatched, or could not be. */
  | { readonly kind: "batched" }
  /** The process stops, or gives up the shard. */
  | { readonly kind: "stopped" };

/** What the process has to do for an actor. */
export type Effect =
  | { readonly kind: "load"; readonly request: LoadRequest }
  | {
      readonly kind: "send";
      readonly lane: string;
      readonly entry: Entry;
      readonly subscription: Subscription;
      /** A dead process may have made this attempt before. */
      readonly possiblyRepeated: boolean;
      /** When the subscription was read: see `isFresh`. */
      readonly readAt: Date;
    }
  /** Dispatch the batch that is due. */
  | { readonly kind: "batch" }
  /**
   * Tell `rechecked` after so long. A planned wake cannot do this: an actor that loads often has no need of it by then, and
   * would take it for news and plan the next one.
   */
  | { readonly kind: "recheck"; readonly afterMs: number }
  /** Plan a wake for that instant. */
  | { readonly kind: "sleep"; readonly until: Date }
  /** Forget the actor: a wake loads it again. */
  | { readonly kind: "drop" };
