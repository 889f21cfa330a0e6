/** Which body an event has: contract 8.2 or 8.3. */
type EnvelopeKind = "review" | "site_connection";
export type PayloadMode = "full" | "minimal";
export type Axis = "pull" | "post";

interface CatalogEvent {
  readonly value: string;
  readonly category: "review" | "response" | "posting" | "connection" | "test";
  readonly envelope: EnvelopeKind;
  readonly description: string;
  /** Review-impacting: a batch subscription sends it. */
  readonly in_batch: boolean;
  readonly subscribable: boolean;
}

const review = { envelope: "review", in_batch: true, subscribable: true } as const;
const posting = {
  category: "posting",
  envelope: "site_connection",
  in_batch: true,
  subscribable: true,
} as const;
const connection = {
  category: "connection",
  envelope: "site_connection",
  in_batch: false,
  subscribable: true,
} as const;

/** Every event value there is (contract 8.1). */
export const CATALOG = [
  {
    value: "review_received",
    category: "review",
    ...review,
    description: "A review site reported a new review.",
  },
  {
    value: "review_updated",
    category: "review",
    ...review,
    description: "The reviewer changed the rating or the text of a review.",
  },
  {
    value: "review_removed",
    category: "review",
    ...review,
    description: "A review disappeared from its site.",
  },
  {
    value: "profanity_detected",
    category: "review",
    ...review,
    description: "A new or changed review contains profanity.",
  },
  {
    value: "review_flagged",
    category: "review",
    ...review,
    description: "The account flagged a review for a check.",
  },
  {
    value: "flag_status_changed",
    category: "review",
    ...review,
    description: "The flag of a review moved to another status.",
  },
  {
    value: "review_assigned",
    category: "review",
    ...review,
    description: "A review was assigned to a user.",
  },
  {
    value: "note_added",
    category: "review",
    ...review,
    description: "A user added an internal note to a review.",
  },
  {
    value: "response_submitted",
    category: "response",
    ...review,
    description: "The account submitted its first response to a review.",
  },
  {
    value: "response_updated",
    category: "response",
    ...review,
    description: "The account changed its response to a review.",
  },
  {
    value: "response_deleted",
    category: "response",
    ...review,
    description: "The account deleted its response to a review.",
  },
  {
    value: "homeowner_notified_of_response",
    category: "response",
    ...review,
    description:
      "The reviewer was to be told of a posted response; metadata.native_email says what became of the mail.",
  },
  {
    value: "response_post_succeeded",
    ...posting,
    description: "The review site published a response.",
  },
  {
    value: "response_post_failed",
    ...posting,
    description: "The review site did not take a response.",
  },
  {
    value: "review_pull_connected",
    ...connection,
    description: "Review collection from a site works again.",
  },
  {
    value: "review_pull_disconnected",
    ...connection,
    description: "Review collection from a site stopped working.",
  },
  {
    value: "response_post_connected",
    ...connection,
    description: "Posting responses to a site works again.",
  },
  {
    value: "response_post_disconnected",
    ...connection,
    description: "Posting responses to a site stopped working.",
  },
  {
    value: "webhook.test",
    category: "test",
    envelope: "review",
    in_batch: false,
    subscribable: false,
    description: "A test that the partner asked for; sent whatever the filter says.",
  },
] as const satisfies readonly CatalogEvent[];

export type EventValue = (typeof CATALOG)[number]["value"];
export const TEST_EVENT = "webhook.test";

/** The values of the events filter: all but `webhook.test`. */
export const SUBSCRIBABLE_EVENTS: readonly EventValue[] = CATALOG.filter(
  (one) => one.subscribable,
).map((one) => one.value);

const IN_BATCH: ReadonlySet<string> = new Set(
  CATALOG.filter((one) => one.in_batch).map((one) => one.value),
);

export function isInBatch(event: EventValue): boolean {
  return IN_BATCH.has(event);
}

/** Who did it (contract 8.5): a user, or a review site as `system`. */
type Actor =
  | { readonly type: "user"; readonly id: number; readonly name: string }
  | { readonly type: "system"; readonly id: null; readonly name: string };

/** The `review` object of a full body, as it was when the action happened. */
export interface ReviewFacts {
  readonly id: number;
  readonly external_review_id: string;
  readonly store_id: number;
  readonly review_site_id: number;
  readonly source_platform: string;
  readonly rate: number;
  readonly reviewer: string | null;
}

/** The part of a site-connection body that is about the site, in the order of contract 8.3. */
export interface SiteFacts {
  readonly store: { readonly id: number };
  readonly review_site: {
    readonly store_review_site_id: number;
    readonly review_site_id: number;
    readonly name: string;
    readonly connection_status: "connected" | "disconnected";
    readonly disconnect_reason: string | null;
  };
  readonly axis: Axis;
  readonly error_code: string | null;
  readonly reason: string | null;
}

/** One action for the audit trail, and with it everything that its webhook body will ever say. */
export interface RecordedAction {
  /** ULID; the same in every slot (contract 7.3). */
  readonly eventId: string;
  readonly event: Exclude<EventValue, typeof TEST_EVENT>;
  readonly partnerId: number;
  readonly accountId: number;
  readonly storeId: number;
  readonly storeReviewSiteId: number;
  readonly reviewId: number | null;
  readonly actor: Actor;
  /** `review` for the review envelope, `site` for the site-connection envelope: exactly one. */
  readonly about: { readonly review: ReviewFacts } | { readonly site: SiteFacts };
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly occurredAt: Date;
}

/** The facts of an event, which never change (contract 7.3). The `Json` fields are texts as stored. */
export interface EventFacts {
  readonly eventId: string;
  readonly event: string;
  readonly occurredAt: Date;
  readonly partnerId: number;
  readonly reviewHistoryId: number;
  readonly reviewId: number | null;
  readonly storeId: number;
  readonly storeReviewSiteId: number;
  readonly axis: Axis | null;
  readonly actorJson: string;
  readonly reviewJson: string | null;
  readonly siteJson: string | null;
  readonly metadataJson: string;
}
