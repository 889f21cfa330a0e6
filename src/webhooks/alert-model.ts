import { Type, type Static } from "@sinclair/typebox";

import type { alertSettings } from "../../db/schema/alerts.ts";
import { literals } from "../http/principal.ts";
import { shown } from "../http/shown.ts";
import { instantAnswer, orNull, receiving, storableText } from "../http/text.ts";
import { MAX_URL_CHARS } from "../lib/egress.ts";
import { ADDRESS_BYTES, eachMailbox, hasMailbox } from "../lib/email.ts";
import { ALERT_DEFAULTS, ALERT_KINDS } from "../outbox/alert.ts";
import { SecretAnswer } from "./model.ts";

const MAX_RECIPIENTS = 10;
/** An upper bound for the length of a code, which contains an address in base64. */
const MAX_CODE_CHARS = 1_000;
const DAY_MINUTES = 1_440;
/**
 * The smallest number of minutes that an alert setting may let an event wait. Backlogs are counted every five minutes,
 * and the alert is raised when two counts have seen the event waiting.
 */
const MIN_WAITING_MINUTES = 10;

const minutes = (minimum: number, description: string) =>
  Type.Integer({
    minimum,
    maximum: DAY_MINUTES,
    explain: `must be a whole number of minutes from ${minimum} to ${DAY_MINUTES}`,
    description,
  });

const settingsFields = {
  recipients: receiving(
    orNull(
      Type.Array(storableText([3, ADDRESS_BYTES]), {
        minItems: 1,
        maxItems: MAX_RECIPIENTS,
        uniqueItems: true,
      }),
      {
        explain: `must be null for the owners, or a list of 1 to ${MAX_RECIPIENTS} addresses`,
        description:
          "Recipients of mails; null for the partner's owners. Each address must be confirmed with a mailed link.",
      },
    ),
  ),
  kinds: Type.Array(literals(ALERT_KINDS), {
    uniqueItems: true,
    description: "Kinds of alerts to send, by mail and by POST; `disabled` is always sent.",
  }),
  oldest_waiting_minutes: minutes(
    MIN_WAITING_MINUTES,
    "Minutes that an event may wait before `oldest_waiting` is raised.",
  ),
  digest_minutes: minutes(
    0,
    "Minimum minutes between two mails. Mails about a disabled subscription are sent immediately.",
  ),
  webhook_url: receiving(
    orNull(storableText([1, MAX_URL_CHARS]), {
      description: "URL that receives alerts.",
    }),
  ),
};

export const AlertSettingsUpdate = Type.Partial(Type.Object(settingsFields), {
  title: "AlertSettingsUpdate",
  examples: [{ recipients: ["ops@partner.example"], digest_minutes: 10 }],
  additionalProperties: false,
});
export type AlertSettingsUpdate = Static<typeof AlertSettingsUpdate>;

const answeredSettings = {
  ...settingsFields,
  unconfirmed_recipients: Type.Array(Type.String(), {
    description: "Recipients that have not confirmed and get no mails yet.",
  }),
  secret_fingerprint: orNull(SecretAnswer.properties.secret_fingerprint),
  updated_at: orNull(instantAnswer()),
};
export const AlertSettingsObject = Type.Object(answeredSettings, {
  title: "AlertSettings",
  examples: [
    {
      recipients: ["ops@partner.example"],
      unconfirmed_recipients: [],
      kinds: ["oldest_waiting", "disabled"],
      oldest_waiting_minutes: 15,
      digest_minutes: 10,
      updated_at: "2026-06-01T12:00:00.000+00:00",
    },
  ],
});
/** The code in the link that a recipient is mailed (contract 6.21). */
export const RecipientCode = Type.Object(
  { code: storableText([1, MAX_CODE_CHARS]) },
  { title: "RecipientCode", additionalProperties: false },
);
export const ConfirmedRecipient = Type.Object(
  { email: Type.String({ description: "The address that now receives the alerts." }) },
  { title: "ConfirmedRecipient", examples: [{ email: "ops@partner.example" }] },
);

export const AlertSettingsWithSecret = Type.Object(
  {
    ...answeredSettings,
    secret: orNull(SecretAnswer.properties.secret, {
      description: "Signing secret, if this request created one.",
    }),
  },
  { title: "AlertSettingsWithSecret", extends: AlertSettingsObject },
);

/** Alert settings of a partner; `updatedAt` is null for the defaults. */
export type AlertSettings = Omit<
  typeof alertSettings.$inferSelect,
  "id" | "partnerId" | "sealedSecret" | "updatedAt"
> & { readonly updatedAt: Date | null };

export const DEFAULTS: AlertSettings = {
  ...ALERT_DEFAULTS,
  recipients: null,
  confirmedRecipients: [],
  kinds: [...ALERT_KINDS],
  webhookUrl: null,
  secretFingerprint: null,
  updatedAt: null,
};

/** Returns the recipients that have not confirmed, each mailbox once. */
export function unconfirmedOf({
  recipients,
  confirmedRecipients,
}: Pick<AlertSettings, "recipients" | "confirmedRecipients">): string[] {
  return eachMailbox(recipients ?? []).filter((one) => !hasMailbox(confirmedRecipients, one));
}

/** Shows the alert settings; their kinds have a fixed order. */
export function showSettings(settings: AlertSettings): Static<typeof AlertSettingsObject> {
  const kinds = ALERT_KINDS.filter((kind) => settings.kinds.includes(kind));
  const unconfirmedRecipients = unconfirmedOf(settings);
  return shown(AlertSettingsObject, { ...settings, kinds, unconfirmedRecipients });
}
