import { type Static, Type } from "@sinclair/typebox";

import type { reviews } from "../../db/schema/reviews.ts";
import { pageQuery } from "../http/list.ts";
import { isRowId } from "../http/ids.ts";
import { literals } from "../http/principal.ts";
import { type RowOf, shown, storedJson } from "../http/shown.ts";
import {
  instantAnswer,
  instantText,
  orNull,
  rowId,
  searchText,
  storableText,
} from "../http/text.ts";
import type { ReviewFacts } from "../outbox/event.ts";
import { FLAG_MOVES, FLAG_STATUSES } from "./events.ts";

/**
 * A review with the data about its site that webhook bodies and API answers contain. The reviewer's email and the
 * profane words are omitted, because neither of them contains these.
 */
export type Review = Omit<typeof reviews.$inferSelect, "reviewerEmail" | "profanity"> &
  Pick<RowOf<typeof ReviewObject>, "reviewSiteId" | "sourcePlatform">;

/** Builds the review object of a webhook body (contract 8.2 and 8.5). */
export function reviewFacts(
  review: Pick<
    Review,
    "id" | "externalReviewId" | "storeId" | "reviewSiteId" | "sourcePlatform" | "rate" | "reviewer"
  >,
): ReviewFacts {
  return {
    id: review.id,
    external_review_id: review.externalReviewId,
    store_id: review.storeId,
    review_site_id: review.reviewSiteId,
    source_platform: review.sourcePlatform,
    rate: review.rate,
    reviewer: review.reviewer,
  };
}

const RESPONSE_CHARS = 10_000;
const REASON_CHARS = 1_000;
const NOTE_CHARS = 10_000;

const closedObject = { additionalProperties: false };
export const ResponseBody = Type.Object(
  { body: storableText([1, RESPONSE_CHARS]) },
  { ...closedObject, title: "ResponseInput" },
);
export const FlagBody = Type.Object(
  { reason: storableText([1, REASON_CHARS]) },
  { ...closedObject, title: "FlagInput" },
);
export const FlagStatusBody = Type.Object(
  { status: literals(FLAG_MOVES) },
  { ...closedObject, title: "FlagStatus" },
);
export const AssignBody = Type.Object(
  { user_id: rowId() },
  { ...closedObject, title: "Assignment" },
);
export const NoteBody = Type.Object(
  { body: storableText([1, NOTE_CHARS]) },
  {
    ...closedObject,
    title: "NoteInput",
    examples: [{ body: "Called the customer, who will come back." }],
  },
);

export const reviewQuery = Type.Object({
  ...pageQuery(isRowId),
  external_review_id: Type.Optional(storableText([1, 255])),
  q: Type.Optional(searchText()),
  store_id: Type.Optional(rowId()),
  rate: Type.Optional(Type.Integer({ minimum: 1, maximum: 5 })),
  source_platform: Type.Optional(storableText([1, 64])),
  assigned_user_id: Type.Optional(rowId()),
  responded: Type.Optional(literals(["true", "false"])),
  flag_status: Type.Optional(literals(FLAG_STATUSES)),
});
export type ReviewQuery = Static<typeof reviewQuery>;

const nullableText = orNull(Type.String());
const nullableId = orNull(Type.Integer());
const nullableInstant = orNull(instantAnswer());

/** The actor of an event, in webhook bodies and in the history of a review (contract 8.5). */
export const EventActor = Type.Object(
  { type: literals(["user", "system"]), id: nullableId, name: Type.String() },
  {
    title: "EventActor",
    examples: [{ type: "system", id: null, name: "google" }],
    description: "The user who acted, or the review site as `system`.",
  },
);

/** The review of an event, in webhook bodies and in the history of a partner (contract 8.5). */
export const EventReview = Type.Object(
  {
    id: Type.Integer(),
    external_review_id: Type.String(),
    store_id: Type.Integer(),
    review_site_id: Type.Integer(),
    source_platform: Type.String(),
    rate: Type.Integer({ minimum: 1, maximum: 5 }),
    reviewer: nullableText,
  },
  {
    title: "EventReview",
    examples: [{ id: 42 }],
    description: "The review at the time of the event.",
  },
);

export const ReviewObject = Type.Object(
  {
    id: Type.Integer(),
    external_review_id: Type.String(),
    external_id: orNull(Type.String(), { description: "The platform's own id; null without one." }),
    store_id: Type.Integer(),
    store_review_site_id: Type.Integer(),
    review_site_id: Type.Integer(),
    source_platform: Type.String(),
    rate: Type.Integer(),
    reviewer: nullableText,
    content: Type.String(),
    reviewed_at: instantAnswer(),
    removed_at: nullableInstant,
    response: Type.Union([
      Type.Object(
        { body: Type.String(), user_id: nullableId, responded_at: nullableInstant },
        { title: "ReviewResponse" },
      ),
      Type.Null(),
    ]),
    flag: Type.Union([
      Type.Object(
        { status: Type.String(), reason: nullableText },
        { title: "ReviewFlag", examples: [{ status: "under_review" }] },
      ),
      Type.Null(),
    ]),
    assigned_user_id: nullableId,
    created_at: instantAnswer(),
    updated_at: instantAnswer(),
  },
  { title: "Review", examples: [{ id: 42 }] },
);

export function showReview(one: Review): Static<typeof ReviewObject> {
  const { responseBody, responseUserId, respondedAt, flagStatus, flagReason } = one;
  const response =
    responseBody === null ? null : { body: responseBody, userId: responseUserId, respondedAt };
  const flag = flagStatus === null ? null : { status: flagStatus, reason: flagReason };
  // The fields of webhook bodies come first, in the order in which webhook bodies contain them.
  return { ...reviewFacts(one), ...shown(ReviewObject, { ...one, response, flag }) };
}

const historyId = Type.Integer({ examples: [9_001] });
// `storedJson` shows the column without checking it: the column has no static type, but every event is recorded with
// the metadata of its kind.
const recordedMetadata = storedJson(
  Type.Record(Type.String(), Type.Unknown(), {
    examples: [
      { content: "Late twice. Friendly though.", reviewed_at: "2026-06-01T11:58:00.000+00:00" },
    ],
  }),
);

export const HistoryObject = Type.Object(
  {
    id: historyId,
    event_id: Type.String(),
    event: Type.String(),
    // `storedJson` shows the columns without checking them: every event is recorded with values of these shapes.
    actor: storedJson(EventActor),
    metadata: recordedMetadata,
    occurred_at: instantAnswer(),
  },
  { title: "HistoryEntry" },
);

export type HistoryEntry = RowOf<typeof HistoryObject>;

export const ReviewWithHistory = Type.Composite(
  [ReviewObject, Type.Object({ history: Type.Array(HistoryObject) })],
  { title: "ReviewWithHistory", extends: ReviewObject },
);

/** A review as its partner sees it: with its account. */
export const PartnerReviewObject = Type.Composite(
  [Type.Object({ account_id: Type.Integer() }), ReviewObject],
  { title: "PartnerReview", extends: ReviewObject },
);

export const PartnerReviewWithHistory = Type.Composite(
  [PartnerReviewObject, Type.Object({ history: Type.Array(HistoryObject) })],
  { title: "PartnerReviewWithHistory", extends: PartnerReviewObject },
);

export function showPartnerReview(one: Review): Static<typeof PartnerReviewObject> {
  return { account_id: one.accountId, ...showReview(one) };
}

/**
 * Returns the sort key for lists in the order of the last change: the instant of the change in ms, and the id of the
 * review.
 */
export const changeKeyOf = ({ updatedAt, id }: Review): string => `${updatedAt.getTime()}.${id}`;
const isChangeKey = (key: string): boolean => /^\d{1,15}\.[1-9]\d{0,15}$/.test(key);

export const partnerReviewQuery = Type.Object({
  ...pageQuery(isChangeKey),
  updated_since: Type.Optional(instantText()),
});

/** The largest id that JSON and JavaScript represent exactly. */
const MAX_BIGID = Number.MAX_SAFE_INTEGER;

export const partnerHistoryQuery = Type.Object({
  ...pageQuery(isRowId),
  after: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: MAX_BIGID,
      examples: [9_001],
      description:
        "The `id` of the last row that the caller has. The list continues after that row.",
    }),
  ),
  since: Type.Optional(instantText()),
});
export type PartnerHistoryQuery = Static<typeof partnerHistoryQuery>;

/** A row of the history as its partner sees it. Exactly one of `review` and `site` is null. */
export const PartnerHistoryObject = Type.Object(
  {
    id: historyId,
    event_id: Type.String(),
    event: Type.String(),
    account_id: Type.Integer(),
    store_id: Type.Integer(),
    store_review_site_id: Type.Integer(),
    review_id: nullableId,
    // `storedJson` shows the columns without checking them: every event is recorded with values of these shapes.
    actor: storedJson(EventActor),
    review: storedJson(
      orNull(EventReview, {
        description: "The review at the time of the event; null for a site-connection event.",
      }),
    ),
    site: storedJson(
      orNull(Type.Record(Type.String(), Type.Unknown()), {
        description: "`store` and `review_site` of a site-connection event; null for others.",
      }),
    ),
    metadata: recordedMetadata,
    is_imported: Type.Boolean({
      description: "Whether an import created it; no webhook was sent.",
    }),
    occurred_at: instantAnswer(),
    recorded_at: instantAnswer(),
  },
  { title: "HistoryRow", examples: [{ site: null }] },
);
export type PartnerHistoryRow = RowOf<typeof PartnerHistoryObject>;

const AxisObject = Type.Object(
  {
    connected: Type.Boolean(),
    error_code: nullableText,
    since: Type.Union([instantAnswer(), Type.Null()], {
      description: "Time of the last change; null if it never changed.",
    }),
  },
  { title: "Axis", description: "`pull` collects reviews, `post` posts responses." },
);

/** A store's connection with a review site, as its account sees it. */
export const StoreReviewSiteObject = Type.Object(
  {
    id: Type.Integer(),
    store_id: Type.Integer(),
    store_name: Type.String(),
    review_site_id: Type.Integer(),
    provider: Type.String(),
    name: Type.String(),
    pull: AxisObject,
    post: AxisObject,
  },
  { title: "StoreReviewSite", examples: [{ id: 11, name: "Google" }] },
);
export type StoreReviewSite = RowOf<typeof StoreReviewSiteObject>;

/**
 * Query of the users of an account. `store_id` limits the list to users with access to that store, to whom its reviews
 * may be assigned.
 */
export const colleagueQuery = Type.Object({
  ...pageQuery(isRowId),
  store_id: Type.Optional(rowId()),
});
export type ColleagueQuery = Static<typeof colleagueQuery>;

/**
 * An active user of an account, as its colleagues see it. `store_ids` are the stores of a location user; null for a
 * user with access to every store of the account.
 */
export const ColleagueObject = Type.Object(
  {
    id: Type.Integer(),
    email: Type.String(),
    name: Type.String(),
    role: Type.String(),
    store_ids: Type.Union([Type.Array(Type.Integer()), Type.Null()]),
  },
  {
    title: "Colleague",
    examples: [{ id: 32, name: "Sam Kaur", role: "account_user", store_ids: null }],
  },
);
export type Colleague = RowOf<typeof ColleagueObject>;
