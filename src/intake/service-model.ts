import { type Static, type TObject, Type } from "@sinclair/typebox";

import { pageQuery } from "../http/list.ts";
import { isRowId } from "../http/ids.ts";
import { literals } from "../http/principal.ts";
import { type RowOf, storedJson } from "../http/shown.ts";
import { instantAnswer, instantText, orNull, rowId, storableText } from "../http/text.ts";
import { CATALOG, CONNECTION_EVENTS, TEST_EVENT } from "../outbox/event.ts";
import { METADATA } from "../reviews/events.ts";

const closedObject = { additionalProperties: false } as const;

/** Maximum number of actions of one request. */
export const MAX_ACTIONS = 500;
const ACTION_ID_CHARS = 200;

const actingParty = Type.Object(
  {
    type: literals(["user", "staff", "system"], {
      description:
        "`staff` acts on behalf of the account and is shown as its owner, like an impersonation.",
    }),
    user_id: Type.Optional(rowId()),
  },
  { ...closedObject, title: "ActingParty", description: "Who acted; `user_id` for a user." },
);

const ACTION_EVENTS = CATALOG.flatMap(({ value }) => (value === TEST_EVENT ? [] : [value]));

const EXAMPLE_ACTION = {
  id: "assign-5521",
  event: "review_assigned",
  actor: { type: "user", user_id: 31 },
  occurred_at: "2026-06-01T12:00:00.000+00:00",
  review_id: 42,
  metadata: { user_id: 31 },
};

export const ActionBody = Type.Object(
  {
    id: Object.assign(storableText([1, ACTION_ID_CHARS]), {
      description: "The service's own id of the action; a known one is not taken again.",
    }),
    event: literals(ACTION_EVENTS, { description: "An event of the catalog." }),
    actor: actingParty,
    occurred_at: instantText(),
    review_id: Type.Optional(rowId()),
    store_review_site_id: Type.Optional(rowId()),
    error_code: Type.Optional(
      orNull(storableText([1, 100]), {
        description: "Why the axis fails, for an event about a site.",
      }),
    ),
    metadata: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description: "The metadata of the event, as its body shows them.",
      }),
    ),
  },
  { ...closedObject, title: "Action", examples: [EXAMPLE_ACTION] },
);
export type Action = Static<typeof ActionBody>;

export const ActionsBody = Type.Object(
  {
    actions: Type.Array(ActionBody, {
      minItems: 1,
      maxItems: MAX_ACTIONS,
      description: "In the order in which they are recorded.",
    }),
  },
  { ...closedObject, title: "Actions" },
);

export const ActionsAnswer = Type.Object(
  {
    accepted: Type.Integer({ description: "Actions whose ids were new." }),
    unchanged: Type.Integer({
      description: "Accepted actions that say what is so already, and were not recorded.",
    }),
    duplicates: Type.Integer({ description: "Actions whose ids were known." }),
  },
  { title: "TakenActions", examples: [{ accepted: 12, unchanged: 2, duplicates: 1 }] },
);

const METADATA_OF = new Map<string, TObject>(
  Object.entries(METADATA).map(([event, { properties }]) => [
    event,
    Type.Object(properties, closedObject),
  ]),
);

/** Returns the schema of an event's metadata; undefined for an event about a site, which has no metadata. */
export const metadataOf = (event: string): TObject | undefined => METADATA_OF.get(event);

/**
 * Returns whether an event refers to a review, such as a posting at a site. A change of a connection refers only to the
 * connection.
 */
export const namesReview = (event: string): boolean =>
  !CONNECTION_EVENTS.some((one) => one === event);

const INBOX_ACTION_STATES = ["waiting", "rejected"] as const;

export const inboxQuery = Type.Object({
  ...pageQuery(isRowId),
  state: Type.Optional(literals(INBOX_ACTION_STATES)),
});

export const InboxObject = Type.Object(
  {
    position: Type.Integer({ description: "Its place in the inbox, and its id." }),
    service_id: Type.Integer({ description: "The service that inserted it." }),
    partner_id: Type.Integer({ description: "The partner of its subject; 0 for none." }),
    state: literals(INBOX_ACTION_STATES, { description: "Whether it waits or is set aside." }),
    action: storedJson(
      Type.Unknown({
        description: "The action as the service inserted it; null for one of over 1 MiB.",
      }),
    ),
    errors: orNull(Type.Record(Type.String(), Type.String()), {
      description: "The reasons of a rejection by field.",
    }),
    inserted_at: Object.assign(instantAnswer(), { description: "The time of the insert." }),
  },
  {
    title: "InboxAction",
    examples: [
      {
        position: 118,
        service_id: 5,
        state: "rejected",
        action: EXAMPLE_ACTION,
        errors: { review_id: "names no review of the service" },
      },
    ],
  },
);
export type InboxRow = RowOf<typeof InboxObject>;

export const InboxStatus = Type.Object(
  {
    waiting: Type.Integer({ description: "Actions that wait, up to 10,000." }),
    rejected: Type.Integer({ description: "Actions that are set aside, up to 10,000." }),
    oldest_waiting_at: orNull(instantAnswer(), {
      description: "The time of the first waiting one.",
    }),
  },
  { title: "InboxStatus", examples: [{ waiting: 0, rejected: 1 }] },
);
