import { Type, type Static, type TLiteral } from "@sinclair/typebox";

import { instantText, storableText, ulidText } from "../http/text.ts";
import { isoInstant } from "../lib/clock.ts";
import { MAX_URL_CHARS } from "../lib/egress.ts";
import { CATALOG, SUBSCRIBABLE_EVENTS, type PayloadMode } from "../outbox/event.ts";

/** decisions.md 3, catalog. */
export const BATCH_INTERVAL_HOURS = [1, 2, 4, 6, 8, 12, 24] as const;
export const DELIVERY_KINDS = ["immediate", "batch"] as const;
export const PAYLOAD_MODES = ["full", "minimal"] as const;
export const ORDERINGS = ["subscription", "review"] as const;
export const OUTCOMES = ["delivered", "retry", "failed", "interrupted"] as const;
const LABEL_CHARS = 100;

export type DeliveryKind = (typeof DELIVERY_KINDS)[number];
export type Ordering = (typeof ORDERINGS)[number];
export type Outcome = (typeof OUTCOMES)[number];
export type SubscriptionState = "active" | "disabled" | "deleted";

function literals<const T extends string | number>(values: readonly T[]) {
  return Type.Union(values.map((value): TLiteral<T> => Type.Literal(value)));
}

function orNull<T extends Parameters<typeof Type.Array>[0]>(schema: T, explain?: string) {
  return Type.Union([schema, Type.Null()], explain === undefined ? {} : { explain });
}

const intervals = BATCH_INTERVAL_HOURS.join(", ");

/** The fields that the partner sets; rules between them are in decide.ts. */
export const NewSubscriptionBody = Type.Object(
  {
    label: storableText([1, LABEL_CHARS]),
    webhook_url: storableText([1, MAX_URL_CHARS]),
    delivery_kind: literals(DELIVERY_KINDS),
    batch_interval_hours: Type.Optional(
      orNull(literals(BATCH_INTERVAL_HOURS), `must be one of ${intervals}`),
    ),
    events: Type.Optional(
      orNull(
        Type.Array(literals(SUBSCRIBABLE_EVENTS), { minItems: 1, uniqueItems: true }),
        "must be null for all events, or a list of event values",
      ),
    ),
    payload_mode: Type.Optional(literals(PAYLOAD_MODES)),
    suppress_native_notifications: Type.Optional(Type.Boolean()),
    ordering: Type.Optional(literals(ORDERINGS)),
  },
  { additionalProperties: false },
);
export type NewSubscriptionInput = Static<typeof NewSubscriptionBody>;

/** What is stored of those fields, defaults and pins applied. */
export interface SubscriptionSettings {
  readonly label: string;
  readonly webhookUrl: string;
  readonly deliveryKind: DeliveryKind;
  readonly batchIntervalHours: number | null;
  readonly events: string[] | null;
  readonly payloadMode: PayloadMode;
  readonly suppressNativeNotifications: boolean;
  readonly ordering: Ordering;
}

export interface Subscription extends SubscriptionSettings {
  /** ULID. */
  readonly id: string;
  readonly partnerId: number;
  readonly shard: number;
  readonly state: SubscriptionState;
  readonly consecutiveFailureCount: number;
  readonly disabledAt: Date | null;
  readonly disabledReason: string | null;
  readonly lastBatchDispatchedAt: Date | null;
  readonly nextBatchAt: Date | null;
  readonly secretFingerprint: string;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly deletedAt: Date | null;
}

const nullableText = orNull(Type.String());

/** decisions.md 3, subscription object. */
export const SubscriptionObject = Type.Object({
  id: Type.String(),
  label: Type.String(),
  webhook_url: Type.String(),
  delivery_kind: literals(DELIVERY_KINDS),
  batch_interval_hours: orNull(Type.Integer()),
  events: orNull(Type.Array(Type.String())),
  payload_mode: literals(PAYLOAD_MODES),
  suppress_native_notifications: Type.Boolean(),
  ordering: literals(ORDERINGS),
  is_active: Type.Boolean(),
  consecutive_failure_count: Type.Integer(),
  disabled_at: nullableText,
  disabled_reason: nullableText,
  last_batch_dispatched_at: nullableText,
  next_batch_at: nullableText,
  secret_fingerprint: Type.String(),
  created_at: Type.String(),
  updated_at: Type.String(),
  deleted_at: nullableText,
});

export const SubscriptionWithSecret = Type.Composite([
  SubscriptionObject,
  Type.Object({ secret: Type.String() }),
]);

export function showSubscription(one: Subscription): Static<typeof SubscriptionObject> {
  return {
    id: one.id,
    label: one.label,
    webhook_url: one.webhookUrl,
    delivery_kind: one.deliveryKind,
    batch_interval_hours: one.batchIntervalHours,
    events: one.events,
    payload_mode: one.payloadMode,
    suppress_native_notifications: one.suppressNativeNotifications,
    ordering: one.ordering,
    is_active: one.state === "active",
    consecutive_failure_count: one.consecutiveFailureCount,
    disabled_at: instantOrNull(one.disabledAt),
    disabled_reason: one.disabledReason,
    last_batch_dispatched_at: instantOrNull(one.lastBatchDispatchedAt),
    next_batch_at: instantOrNull(one.nextBatchAt),
    secret_fingerprint: one.secretFingerprint,
    created_at: isoInstant(one.createdAt),
    updated_at: isoInstant(one.updatedAt),
    deleted_at: instantOrNull(one.deletedAt),
  };
}

export interface Attempt {
  /** ULID of the start. */
  readonly id: string;
  readonly eventId: string;
  readonly event: string;
  readonly attempt: number;
  readonly round: number;
  readonly sequence: number;
  readonly startedAt: Date;
  readonly durationMs: number;
  readonly outcome: Outcome;
  readonly statusCode: number | null;
  readonly errorCode: string | null;
  readonly requestHeaders: unknown;
  readonly requestBody: string;
  readonly responseHeaders: unknown;
  readonly responseExcerpt: string | null;
  readonly responseTruncated: boolean;
  readonly nextAttemptAt: Date | null;
}

const headers = Type.Record(Type.String(), Type.Unknown());

/** decisions.md 3, attempt object. */
export const AttemptObject = Type.Object({
  id: Type.String(),
  event_id: Type.String(),
  event: Type.String(),
  attempt: Type.Integer(),
  round: Type.Integer(),
  sequence: Type.Integer(),
  started_at: Type.String(),
  duration_ms: Type.Integer(),
  outcome: literals(OUTCOMES),
  status_code: orNull(Type.Integer()),
  error_code: nullableText,
  request_headers: headers,
  request_body: Type.String(),
  response_headers: orNull(headers),
  response_excerpt: nullableText,
  response_truncated: Type.Boolean(),
  next_attempt_at: nullableText,
});

export function showAttempt(one: Attempt) {
  return {
    id: one.id,
    event_id: one.eventId,
    event: one.event,
    attempt: one.attempt,
    round: one.round,
    sequence: one.sequence,
    started_at: isoInstant(one.startedAt),
    duration_ms: one.durationMs,
    outcome: one.outcome,
    status_code: one.statusCode,
    error_code: one.errorCode,
    request_headers: one.requestHeaders,
    request_body: one.requestBody,
    response_headers: one.responseHeaders,
    response_excerpt: one.responseExcerpt,
    response_truncated: one.responseTruncated,
    next_attempt_at: instantOrNull(one.nextAttemptAt),
  };
}

/** decisions.md 3, attempts. `since` belongs to the range, `until` does not. */
export const attemptFilters = {
  event: Type.Optional(literals(CATALOG.map((one) => one.value))),
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

export const CatalogAnswer = Type.Object({
  events: Type.Array(
    Type.Object({
      value: Type.String(),
      category: Type.String(),
      envelope: Type.String(),
      description: Type.String(),
      in_batch: Type.Boolean(),
      subscribable: Type.Boolean(),
    }),
  ),
  batch_interval_hours: Type.Array(Type.Integer()),
});

function instantOrNull(at: Date | null): string | null {
  return at === null ? null : isoInstant(at);
}
