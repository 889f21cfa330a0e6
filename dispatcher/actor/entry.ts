import type { EventFacts, PayloadMode } from "../../src/outbox/event.ts";

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
