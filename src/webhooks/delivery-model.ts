import { Type, type Static } from "@sinclair/typebox";

import { literals } from "../http/principal.ts";
import type { RowOf } from "../http/shown.ts";
import { instantAnswer, instantText, orNull, ulidText } from "../http/text.ts";
import { eventId, eventValue } from "./model.ts";

export const OUTCOMES = ["delivered", "retry", "failed", "interrupted"] as const;
export type Outcome = (typeof OUTCOMES)[number];

/**
 * States of a delivery. `pending` and `waiting` are queued. `held` waits until the subscription is enabled or the
 * account is activated. In the other states, the delivery is settled.
 */
export const DELIVERY_STATES = [
  "pending",
  "waiting",
  "held",
  "delivered",
  "failed",
  "skipped",
] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

const headers = Type.Record(Type.String(), Type.Union([Type.String(), Type.Array(Type.String())]), {
  examples: [{ "content-type": "application/json" }],
});

const exampleAttempt = {
  sequence: 1_042,
  duration_ms: 84,
  status_code: 200,
  request_digest: "9f86d081884c7d659a2feaa0c55ad015",
  request_erased: false,
  response_truncated: false,
  possibly_repeated: false,
  resent: false,
};

/** An attempt as the API shows it (contract 6.13). */
export const AttemptObject = Type.Object(
  {
    id: Type.String({ description: "ULID." }),
    event_id: eventId,
    event: Type.String(),
    attempt: Type.Integer({ description: "1 to 4, as in `X-SVC-Attempt`." }),
    round: Type.Integer({
      description: "From 1. Each redelivery starts another.",
    }),
    sequence: Type.Integer({ description: "Position of the round in the queue." }),
    started_at: instantAnswer(),
    duration_ms: Type.Integer(),
    outcome: literals(OUTCOMES),
    status_code: orNull(Type.Integer()),
    error_code: orNull(Type.String(), {
      description:
        "Cause of the failure: http_status, timeout, dns, connect, tls, blocked_address, …",
    }),
    tls_reason: orNull(Type.String()),
    request_headers: orNull(headers),
    request_body: orNull(Type.String(), {
      description:
        "The exact text that was sent and signed; null if it cannot be reproduced or was erased.",
    }),
    request_digest: orNull(Type.String(), {
      description:
        "The first 16 bytes of the SHA-256 of the body that was sent, in hex digits; null where the body itself is stored.",
    }),
    request_erased: Type.Boolean({
      description: "The body named a person whose data was erased, so it cannot be shown.",
    }),
    response_headers: orNull(headers),
    response_excerpt: orNull(Type.String()),
    response_truncated: Type.Boolean(),
    next_attempt_at: orNull(instantAnswer()),
    possibly_repeated: Type.Boolean({
      description: "A process that stopped unexpectedly may have sent the same attempt.",
    }),
    resent: Type.Boolean({
      description:
        "Sent twice because a reused connection closed before the first byte of a response.",
    }),
  },
  { title: "Attempt", examples: [exampleAttempt] },
);

export type Attempt = RowOf<typeof AttemptObject>;

/**
 * An attempt without its request and response, which may be long, as live streams and the list of deliveries show it.
 */
export const AttemptSummaryObject = Type.Omit(
  AttemptObject,
  [
    "request_headers",
    "request_body",
    "request_digest",
    "request_erased",
    "response_headers",
    "response_excerpt",
    "response_truncated",
  ],
  { title: "AttemptSummary", examples: [exampleAttempt] },
);
export type AttemptSummary = RowOf<typeof AttemptSummaryObject>;

/** Filters of the list of attempts (contract 6.13). `since` is inclusive, `until` exclusive. */
export const attemptFilters = {
  event: Type.Optional(eventValue),
  event_id: Type.Optional(ulidText()),
  outcome: Type.Optional(literals(OUTCOMES)),
  since: Type.Optional(instantText()),
  until: Type.Optional(instantText()),
};

export interface AttemptFilter {
  readonly event: string | undefined;
  readonly eventId: string | undefined;
  readonly outcome: Outcome | undefined;
  readonly since: Date | undefined;
  readonly until: Date | undefined;
}

/** The number of an event in a delivery (contract 6.13). */
export const deliverySequence = Type.Integer({
  description: "Number of the event (`X-SVC-Sequence`); without one, position of its last round.",
});

/** The state of the last round of an event, with the attempts of all rounds (contract 6.13). */
export const DeliveryObject = Type.Object(
  {
    event_id: eventId,
    event: Type.String(),
    sequence: deliverySequence,
    state: literals(DELIVERY_STATES, {
      description:
        "pending and waiting (for a retry): queued; held: queued while the subscription is disabled.",
    }),
    created_at: instantAnswer(),
    settled_at: orNull(instantAnswer()),
    attempts: Type.Array(AttemptObject, { description: "Attempts of all rounds, oldest first." }),
  },
  {
    title: "Delivery",
    examples: [
      { sequence: 1_042, state: "delivered", settled_at: "2026-06-01T12:00:00.000+00:00" },
    ],
  },
);

export type Delivery = RowOf<typeof DeliveryObject>;

export const RecoverBody = Type.Object(
  {
    since: instantText(),
    until: Type.Optional(instantText()),
    dry_run: Type.Optional(Type.Boolean({ description: "Whether to count without queueing." })),
  },
  { title: "Recovery", additionalProperties: false },
);

export type RecoverInput = Static<typeof RecoverBody>;

/** The most events that one request delivers again (contract 6.14). */
const MAX_REDELIVERED = 100;

export const RedeliverBody = Type.Object(
  {
    event_ids: Type.Optional(
      Type.Array(ulidText(), {
        minItems: 1,
        maxItems: MAX_REDELIVERED,
        uniqueItems: true,
        explain: `must be 1 to ${MAX_REDELIVERED} different event ids`,
        description: "The ids of the events, in the order of delivery.",
        examples: [["01JWNB9PR0ZV8X2D3F4G5H6J00"]],
      }),
    ),
    sequences: Type.Optional(
      Type.Array(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }), {
        minItems: 1,
        maxItems: MAX_REDELIVERED,
        uniqueItems: true,
        explain: `must be 1 to ${MAX_REDELIVERED} different numbers`,
        description: "Instead of `event_ids`, the numbers of the events (`X-SVC-Sequence`).",
        examples: [[17, 18]],
      }),
    ),
  },
  {
    title: "Redelivery",
    examples: [{ event_ids: ["01JWNB9PR0ZV8X2D3F4G5H6J00"] }],
    additionalProperties: false,
  },
);

export type RedeliverInput = Static<typeof RedeliverBody>;

export const RedeliverAnswer = Type.Object(
  {
    queued: Type.Integer({ description: "Number of events that this call queued." }),
  },
  { title: "RedeliveredEvents", examples: [{ queued: 12 }] },
);

export const QueuedEventAnswer = Type.Object({ event_id: eventId }, { title: "QueuedEvent" });
export const RecoverAnswer = Type.Object(
  {
    queued: Type.Integer({
      description: "Number of events that it queued, or would queue.",
    }),
    sequences: Type.Optional(
      Type.String({ examples: ["17-25,31"], description: "Their numbers, if all have one." }),
    ),
  },
  { title: "RecoveredEvents", examples: [{ queued: 12 }] },
);
