import { Type, type Static } from "@sinclair/typebox";

import { literals } from "../http/principal.ts";
import type { RowOf } from "../http/shown.ts";
import { instantAnswer, orNull, receiving, secretText, storableText } from "../http/text.ts";
import { MAX_URL_CHARS } from "../lib/egress.ts";

/** Body that sets the audit webhook. Each request makes a new secret (contract 3.12). */
export const AuditWebhookBody = Type.Object(
  {
    url: Object.assign(receiving(storableText([1, MAX_URL_CHARS])), {
      description: "URL that gets the rows.",
    }),
    start: Type.Optional(
      literals(["oldest", "newest"], {
        description:
          "The first row to send: the oldest one, or the next one that is written. If absent, an existing webhook continues; a new one begins with the next row.",
      }),
    ),
  },
  {
    title: "AuditWebhookInput",
    examples: [{ url: "https://siem.example/audit", start: "oldest" }],
    additionalProperties: false,
  },
);
export type AuditWebhookBody = Static<typeof AuditWebhookBody>;

export const AuditWebhookObject = Type.Object(
  {
    url: Type.String({ description: "URL that gets the rows." }),
    cursor: orNull(Type.String(), {
      description: "The `cursor` of the last row that was accepted; null before the oldest one.",
    }),
    oldest_waiting_at: orNull(instantAnswer(), {
      description: "Time of the first row that is still to be sent; null if there is none.",
    }),
    delivered_at: orNull(instantAnswer(), { description: "Time of the last accepted POST." }),
    failures: Type.Integer({ description: "Failed POSTs since the last accepted one." }),
    last_error: orNull(
      Type.Object(
        { at: instantAnswer(), error: Type.String({ examples: ["http_503"] }) },
        { title: "AuditWebhookError" },
      ),
      { description: "The last failed POST; null if the last one was accepted." },
    ),
    next_attempt_at: orNull(instantAnswer(), {
      description: "Time of the next POST after a failure; null without one.",
    }),
    lost_rows: Type.Integer({
      description: "Rows that `AUDIT_RETENTION_DAYS` removed before they were accepted.",
    }),
    created_at: instantAnswer(),
    updated_at: instantAnswer(),
  },
  {
    title: "AuditWebhook",
    examples: [{ url: "https://siem.example/audit", cursor: "OTAyMTA", failures: 0, lost_rows: 0 }],
  },
);
export type AuditWebhookShown = RowOf<typeof AuditWebhookObject>;

/** The audit webhook with its secret, which only the response that sets it contains. */
export const AuditWebhookWithSecret = Type.Object(
  {
    ...AuditWebhookObject.properties,
    secret: secretText({
      pattern: "^whsec_",
      description: "The secret for libraries of Standard Webhooks. It is shown only here.",
    }),
  },
  {
    title: "AuditWebhookWithSecret",
    examples: [{ secret: "whsec_OWQ0MWE3YmU1MmMwZjg2M2UxZDcwOTRiNmEyYzU4ZjM" }],
    extends: AuditWebhookObject,
  },
);
