export type PayloadMode = "full" | "minimal";
export type Axis = "pull" | "post";

interface EventKind {
  /** The form of the event's body: that of contract 8.2 or of contract 8.3. */
  readonly envelope: "review" | "site_connection";
  /** Whether batch subscriptions send the event. They send all events that affect a review. */
  readonly in_batch: boolean;
  readonly subscribable: boolean;
}

const REVIEW_EVENT_KIND: EventKind = { envelope: "review", in_batch: true, subscribable: true };
const EVENT_KINDS: Readonly<Record<string, EventKind>> = {
  review: REVIEW_EVENT_KIND,
  response: REVIEW_EVENT_KIND,
  posting: { envelope: "site_connection", in_batch: true, subscribable: true },
  connection: { envelope: "site_connection", in_batch: false, subscribable: true },
  test: { envelope: "review", in_batch: false, subscribable: false },
} satisfies Record<Category, EventKind>;

/** All event values (contract 8.1) by category, with their descriptions. */
const EVENTS = {
  review: {
    review_received: "A review site reported a new review.",
    review_updated: "The reviewer changed the rating or the text of a review.",
    review_removed: "A review disappeared from its site.",
    profanity_detected: "A new or changed review contains profanity.",
    review_flagged: "The account flagged a review.",
    flag_status_changed: "The status of a review's flag changed.",
    review_assigned: "A review was assigned to a user.",
    note_added: "A user added an internal note to a review.",
  },
  response: {
    response_submitted: "The account submitted its first response to a review.",
    response_updated: "The account changed its response to a review.",
    response_deleted: "The account deleted its response to a review.",
    homeowner_notified_of_response:
      "A posted response is announced to the reviewer by mail; metadata.native_email has the result of the mail.",
  },
  posting: {
    response_post_succeeded: "The review site published a response.",
    response_post_failed: "The review site failed to publish a response.",
  },
  connection: {
    review_pull_connected: "Review collection from a site works again.",
    review_pull_disconnected: "Review collection from a site stopped working.",
    response_post_connected: "Posting responses to a site works again.",
    response_post_disconnected: "Posting responses to a site stopped working.",
  },
  test: {
    "webhook.test": "A test that the partner requested; no filter applies to it.",
  },
};

type Category = keyof typeof EVENTS;
type EventsOf<C extends Category> = C extends Category ? keyof (typeof EVENTS)[C] : never;
export type EventValue = EventsOf<Category>;
/** The events whose body contains a review. */
export type ReviewEventValue = EventsOf<"review" | "response">;
export type ConnectionEventValue = EventsOf<"connection">;

/** The axis of an event about a site, and the state of the connection after the event (contract 8.3). */
interface SiteState {
  readonly axis: Axis;
  readonly isConnected: boolean;
  /** Whether the body contains an error code. */
  readonly isError: boolean;
}

const SITE_STATES: Readonly<Record<string, SiteState | undefined>> = {
  response_post_succeeded: { axis: "post", isConnected: true, isError: false },
  response_post_failed: { axis: "post", isConnected: true, isError: true },
  review_pull_connected: { axis: "pull", isConnected: true, isError: false },
  review_pull_disconnected: { axis: "pull", isConnected: false, isError: true },
  response_post_connected: { axis: "post", isConnected: true, isError: false },
  response_post_disconnected: { axis: "post", isConnected: false, isError: true },
} satisfies Record<EventsOf<"posting" | "connection">, SiteState>;

/** Returns the state that an event about a site reports; undefined for an event about a review. */
export function siteStateOf(event: string): SiteState | undefined {
  return SITE_STATES[event];
}

interface CatalogEvent extends EventKind {
  readonly value: EventValue;
  readonly category: Category;
  readonly description: string;
}

// The result is cast, because TypeScript's type of Object.entries loses the names of the keys.
// oxlint-disable-next-line typescript/no-unsafe-type-assertion
export const CATALOG = Object.entries(EVENTS).flatMap(([category, events]) =>
  Object.entries(events).map(([value, description]) => ({
    value,
    category,
    description,
    ...EVENT_KINDS[category],
  })),
) as readonly CatalogEvent[];

export const TEST_EVENT = "webhook.test";

const valuesOf = (events: readonly CatalogEvent[]): readonly EventValue[] =>
  events.map(({ value }) => value);

/** The events that change the connection of an axis. */
export const CONNECTION_EVENTS = valuesOf(CATALOG.filter((one) => one.category === "connection"));

/** The values that a subscription's filter may contain: all except `webhook.test`. */
export const SUBSCRIBABLE_EVENTS: readonly RecordedAction["event"][] = valuesOf(CATALOG).filter(
  (value) => value !== TEST_EVENT,
);

/** The events that a batch subscription sends. */
export const BATCH_EVENTS = valuesOf(CATALOG.filter((one) => one.in_batch));

/** The actor of an event: a user, or the review site as `system` (contract 8.5). */
type EventActor =
  | { readonly type: "user"; readonly id: number; readonly name: string }
  | { readonly type: "system"; readonly id: null; readonly name: string };

/** The `review` object of a full body, in its state at the time of the action. */
export interface ReviewFacts {
  readonly id: number;
  readonly external_review_id: string;
  readonly store_id: number;
  readonly review_site_id: number;
  readonly source_platform: string;
  readonly rate: number;
  readonly reviewer: string | null;
}

/** The site part of an event body, in the field order of contract 8.3. */
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

/** An action to record, with all data that its webhook body contains. */
export interface RecordedAction {
  /** ULID of the event. All subscriptions receive the event with the same id (contract 7.3). */
  readonly eventId: string;
  readonly event: Exclude<EventValue, typeof TEST_EVENT>;
  readonly partnerId: number;
  readonly accountId: number;
  readonly storeId: number;
  readonly storeReviewSiteId: number;
  readonly reviewId: number | null;
  readonly actor: EventActor;
  /** The subject of the event: `review` for a body about a review, `site` for a body about a site connection. */
  readonly about: { readonly review: ReviewFacts } | { readonly site: SiteFacts };
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly occurredAt: Date;
}

/**
 * The data of an event, which never changes (contract 7.3). The `Json` fields contain JSON text as the database stores
 * it.
 */
export interface EventFacts extends Omit<
  RecordedAction,
  "event" | "accountId" | "actor" | "about" | "metadata"
> {
  readonly event: string;
  readonly reviewHistoryId: number;
  readonly axis: Axis | null;
  readonly actorJson: string;
  readonly reviewJson: string | null;
  readonly siteJson: string | null;
  readonly metadataJson: string;
}
