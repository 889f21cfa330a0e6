import { Type, type Static } from "@sinclair/typebox";

import type { webhookSubscriptions } from "../../db/schema/webhooks.ts";
import { literals } from "../http/principal.ts";
import { shown } from "../http/shown.ts";
import {
  instantAnswer,
  lineText,
  orNull,
  receiving,
  secretText,
  storableText,
} from "../http/text.ts";
import { MAX_URL_CHARS } from "../lib/egress.ts";
import { standardSecret } from "../lib/secrets.ts";
import { CATALOG, SUBSCRIBABLE_EVENTS } from "../outbox/event.ts";
import { ownHeaders } from "./header-rules.ts";

/** The intervals that a batch subscription may choose (contract 6.10). */
export const BATCH_INTERVAL_HOURS = [1, 2, 4, 6, 8, 12, 24] as const;
const DELIVERY_KINDS = ["immediate", "batch"] as const;
const PAYLOAD_MODES = ["full", "minimal"] as const;
const ORDERINGS = ["subscription", "review"] as const;
const LABEL_CHARS = 100;
/**
 * The longest grace period in hours, in which deliveries also carry a signature of the previous secret (contract
 * 6.11).
 */
const MAX_GRACE_HOURS = 72;

const intervalList = BATCH_INTERVAL_HOURS.join(", ");

const batchInterval = literals(BATCH_INTERVAL_HOURS, {
  title: "BatchInterval",
  examples: [4],
  description: "Hours between batch dispatches.",
});
const deliveryKind = literals(DELIVERY_KINDS, {
  title: "DeliveryKind",
  description: "Immediate or batch delivery.",
});

const settingsFields = {
  label: lineText([1, LABEL_CHARS]),
  webhook_url: receiving(storableText([1, MAX_URL_CHARS])),
  delivery_kind: deliveryKind,
  batch_interval_hours: orNull(batchInterval, {
    explain: `must be one of ${intervalList}`,
    description: "Hours between batches; for batch only.",
  }),
  events: orNull(Type.Array(literals(SUBSCRIBABLE_EVENTS), { minItems: 1, uniqueItems: true }), {
    explain: "must be null for all events, or a list of event values",
    title: "EventFilter",
    description: "The events to deliver; null for all. Has no effect on batch.",
  }),
  payload_mode: literals(PAYLOAD_MODES, {
    description: "Full or minimal bodies; always `full` on batch.",
  }),
  suppress_native_notifications: Type.Boolean({
    description: "Omits the platform's own mails about review actions; false on batch.",
  }),
  ordering: literals(ORDERINGS, {
    title: "Ordering",
    description: "Whether a retry blocks all later events, or only those of the same review.",
  }),
  standard_webhooks: Type.Boolean({
    description:
      "Adds `webhook-id`, `webhook-timestamp` and `webhook-signature` of Standard Webhooks.",
  }),
  sequence_headers: Type.Boolean({
    description:
      "Adds `X-SVC-Sequence` and `X-SVC-Settled`, by which a receiver finds missed events; false on batch.",
  }),
  headers: ownHeaders,
};

const { label, webhook_url, delivery_kind, ...defaultedFields } = settingsFields;

/** Fields of a subscription that a partner sets. Rules between fields are in decide.ts. */
export const NewSubscriptionBody = Type.Object(
  { label, webhook_url, delivery_kind, ...Type.Partial(Type.Object(defaultedFields)).properties },
  {
    title: "SubscriptionInput",
    examples: [
      {
        label: "Reviews to our CRM",
        webhook_url: "https://partner.example/hooks/reviews",
        delivery_kind: "immediate",
        events: null,
        ordering: "review",
        standard_webhooks: true,
      },
    ],
    additionalProperties: false,
  },
);
export type NewSubscriptionInput = Static<typeof NewSubscriptionBody>;

/** Any subset of the fields of a subscription; absent fields keep their values (contract 6.9). */
export const SubscriptionUpdateBody = Type.Partial(Type.Object(settingsFields), {
  title: "SubscriptionUpdate",
  examples: [{ label: "Reviews to our CRM", ordering: "review" }],
  additionalProperties: false,
});
export type SubscriptionUpdate = Static<typeof SubscriptionUpdateBody>;

export const RotateBody = Type.Object(
  {
    grace_period_hours: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: MAX_GRACE_HOURS,
        description:
          "Hours in which deliveries also have `X-SVC-Signature-Previous`, which is computed with the old secret.",
      }),
    ),
  },
  { title: "SecretRotation", examples: [{ grace_period_hours: 24 }], additionalProperties: false },
);

export const eventId = Type.String({
  title: "EventId",
  examples: ["01JWNB9PR0ZV8X2D3F4G5H6J00"],
  description: "ULID; the `X-SVC-Delivery` of every attempt.",
});
export const eventValue = literals(
  CATALOG.map(({ value }) => value),
  { title: "EventValue", description: "Event value." },
);

export const TestBody = Type.Object(
  {
    event: Type.Optional(eventValue),
  },
  { title: "Test", additionalProperties: false },
);

export const EnableBody = Type.Object(
  {
    held: Type.Optional(
      literals(["deliver", "skip"], {
        description:
          "Whether events that were recorded while it was disabled are delivered or skipped.",
      }),
    ),
    test: Type.Optional(
      Type.Boolean({
        description:
          "Sends a test event first. The subscription is enabled only if the response is a 2xx.",
      }),
    ),
  },
  { title: "Enabling", additionalProperties: false },
);
export const OperatorEnableBody = Type.Pick(EnableBody, ["held"], {
  title: "OperatorEnabling",
  additionalProperties: false,
});

/** `disabled_reason` of a subscription that a user has disabled. */
export const DISABLED_BY_HAND = "manual";
/** `disabled_reason` of a subscription that an operator has disabled; only operators enable it again. */
export const DISABLED_BY_OPERATOR = "operator";

/** `disabled_reason` of a subscription that the suspension of its partner has disabled. */
export const SUSPENDED = "suspended";

const PERSON_REASONS: readonly (string | null)[] = [
  DISABLED_BY_HAND,
  DISABLED_BY_OPERATOR,
  SUSPENDED,
];
/** Returns whether a person disabled the subscription. Such a disabling is not an incident. */
export const isDisabledByPerson = (reason: string | null): boolean =>
  PERSON_REASONS.includes(reason);

const REASON_CHARS = 500;
/** The reason why an operator disables or deletes a subscription. */
const operatorReason = lineText([1, REASON_CHARS]);
export const OperatorDisableBody = Type.Object(
  { reason: operatorReason },
  {
    title: "OperatorDisabling",
    examples: [{ reason: "The endpoint answers with a sign-in page." }],
    additionalProperties: false,
  },
);
export const OperatorDeleteQuery = Type.Object({ reason: operatorReason });

/** A row of a subscription without its secrets. */
export type Subscription = Omit<
  typeof webhookSubscriptions.$inferSelect,
  "number" | "sealedSecret" | "sealedPreviousSecret" | "sealedHeaders" | "beginsAt"
>;

/** Settings after the defaults and the fixed settings of a batch subscription were applied. */
export type SubscriptionSettings = Pick<
  Subscription,
  | "label"
  | "webhookUrl"
  | "deliveryKind"
  | "batchIntervalHours"
  | "events"
  | "payloadMode"
  | "suppressNativeNotifications"
  | "ordering"
  | "standardWebhooks"
  | "sequenceHeaders"
  | "headerNames"
>;

const fingerprintText = Type.String({
  pattern: "^[0-9a-f]{16}$",
  description: "The first 8 bytes of the secret's SHA-256.",
});
const signingSecret = secretText({
  pattern: "^[0-9a-f]{64}$",
  description:
    "The key of the signatures. Use the text itself as the key; do not decode its digits.",
});

/** Both forms of a signing secret, as the API shows it (contract 6.6). */
const secretFields = {
  secret: signingSecret,
  standard_webhooks_secret: orNull(secretText(), {
    description:
      "The same key in the form of Standard Webhooks: `whsec_` and base64. Null without `standard_webhooks`.",
    examples: [
      "whsec_NGYwYzhhMWRlMmIzNzk2NWE0YzhkMGUxZjIwMzdiNmM1OWU4YTFkNGI3YzIwZjNlNmQ1YTQ5MTgyYjdjMGUzZg==",
    ],
  }),
};

/** Fields of a subscription as the API shows it (contract 6.8). */
const subscriptionFields = {
  id: Type.String({ description: "ULID." }),
  label: Type.String(),
  webhook_url: Type.String(),
  delivery_kind: deliveryKind,
  batch_interval_hours: orNull(Type.Integer()),
  events: orNull(Type.Array(Type.String()), { description: "Event filter; null for all events." }),
  payload_mode: literals(PAYLOAD_MODES),
  suppress_native_notifications: Type.Boolean(),
  ordering: literals(ORDERINGS),
  standard_webhooks: Type.Boolean({
    description: "Whether deliveries also carry the headers of Standard Webhooks.",
  }),
  sequence_headers: Type.Boolean({
    description: "Whether deliveries also carry `X-SVC-Sequence` and `X-SVC-Settled`.",
  }),
  header_names: Type.Array(Type.String(), {
    description: "The names of the subscription's own headers; their values are not shown.",
    examples: [["X-Api-Key"]],
  }),
  is_active: Type.Boolean({ description: "False while disabled." }),
  consecutive_failure_count: Type.Integer({ description: "Permanent failures in a row." }),
  disabled_at: orNull(instantAnswer()),
  disabled_reason: orNull(Type.String()),
  disabled_note: orNull(Type.String(), {
    description: "The operator's reason; null unless `disabled_reason` is `operator`.",
  }),
  pending_test_event_id: orNull(Type.String(), {
    description:
      "Id of the test event whose response decides whether the subscription is enabled; null without one.",
    examples: ["01JWNB9PR0ZV8X2D3F4G5H6J00"],
  }),
  last_batch_dispatched_at: orNull(instantAnswer()),
  next_batch_at: orNull(instantAnswer()),
  secret_fingerprint: fingerprintText,
  previous_secret_expires_at: orNull(instantAnswer(), {
    description: "End of the grace period of the previous secret; null without one.",
  }),
  created_at: instantAnswer(),
  updated_at: instantAnswer(),
  deleted_at: orNull(instantAnswer()),
};
export const SubscriptionObject = Type.Object(subscriptionFields, {
  title: "Subscription",
  // The values that the example of a create leads to.
  examples: [
    {
      suppress_native_notifications: false,
      ordering: "review",
      sequence_headers: false,
      header_names: [],
      consecutive_failure_count: 0,
      pending_test_event_id: null,
    },
  ],
});

export function showSubscription(row: Subscription): Static<typeof SubscriptionObject> {
  return shown(SubscriptionObject, { ...row, isActive: row.state === "active" });
}

/** Shows the secret of a subscription, also in the form of Standard Webhooks if `standard_webhooks` is set. */
export function showSecretForms(
  secret: string,
  { standardWebhooks }: Pick<Subscription, "standardWebhooks">,
) {
  return { secret, standard_webhooks_secret: standardWebhooks ? standardSecret(secret) : null };
}

export const SubscriptionWithSecret = Type.Object(
  { ...subscriptionFields, ...secretFields },
  { title: "SubscriptionWithSecret", extends: SubscriptionObject },
);

export const RotatedSubscription = Type.Object(
  {
    ...subscriptionFields,
    ...secretFields,
    check_url: Type.String({
      description: "A POST to it checks whether the endpoint accepts both signatures.",
      examples: [
        "https://reviews.example/api/v1/partner/webhooks/01JWNB9PR0ZV8X2D3F4G5H6J00/check",
      ],
    }),
  },
  { title: "RotatedSubscription", extends: SubscriptionWithSecret },
);

export const EnabledSubscription = Type.Object(
  {
    ...subscriptionFields,
    test_event_id: Type.Optional(
      Type.String({ description: "Id of the test event, if `test` was set." }),
    ),
  },
  { title: "EnabledSubscription", extends: SubscriptionObject },
);

export const SecretAnswer = Type.Object(
  {
    secret: signingSecret,
    secret_fingerprint: fingerprintText,
  },
  { title: "Secret" },
);
export const SubscriptionSecretAnswer = Type.Object(
  { ...secretFields, secret_fingerprint: fingerprintText },
  { title: "SubscriptionSecret", extends: SecretAnswer },
);
