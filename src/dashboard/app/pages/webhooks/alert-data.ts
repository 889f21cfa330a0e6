import { queryOptions, useQueryClient } from "@tanstack/react-query";

import { answerOf, type ApiClient, type DataOf } from "../../api/client.ts";
import { useApi } from "../../session/session.tsx";

export const alertsOptions = (api: ApiClient) =>
  queryOptions({
    queryKey: ["webhooks", "alerts"],
    queryFn: () => answerOf(api.partner.alerts.get()),
  });

export type AlertSettings = DataOf<typeof alertsOptions>;
export type AlertKind = AlertSettings["kinds"][number];

/**
 * Values of the form for alert settings before they are sent. The fields have the same names as in the API. The
 * recipients are text with one email address per line.
 */
export interface AlertDraft extends Omit<AlertSettings, "recipients" | "webhook_url"> {
  readonly toOwners: boolean;
  readonly recipients: string;
  readonly webhook_url: string;
}

export const alertDraftOf = (one: AlertSettings): AlertDraft => ({
  ...one,
  toOwners: one.recipients === null,
  recipients: (one.recipients ?? []).join("\n"),
  webhook_url: one.webhook_url ?? "",
});

/**
 * Converts the form's values to the request body of the alert settings API. Recipients are sent only if they changed,
 * because the API mails each sent recipient who has not confirmed the address.
 */
function alertsBody(draft: AlertDraft, before: AlertSettings | undefined) {
  const { kinds, oldest_waiting_minutes, digest_minutes } = draft;
  const lines = draft.recipients.split(/[\s,;]+/).filter((line) => line !== "");
  const recipients = draft.toOwners ? null : lines;
  return {
    ...(recipients?.join() !== before?.recipients?.join() && { recipients }),
    kinds,
    oldest_waiting_minutes,
    digest_minutes,
    webhook_url: draft.webhook_url.trim() || null,
  };
}

export function useAlertActions() {
  const api = useApi();
  const queries = useQueryClient();
  const { alerts } = api.partner;
  const keep = ({ secret, ...settings }: AlertSettings & { readonly secret: string | null }) => {
    queries.setQueryData(alertsOptions(api).queryKey, settings);
    return secret;
  };
  return {
    /** Saves the alert settings. Returns the signing secret if this request created one, otherwise null. */
    update: async (draft: AlertDraft) => {
      const before = queries.getQueryData(alertsOptions(api).queryKey);
      return keep(await answerOf(alerts.patch(alertsBody(draft, before))));
    },
    /** Mails another link to the recipients who have not confirmed their address. */
    askAgain: async ({ recipients }: AlertSettings) =>
      keep(await answerOf(alerts.patch({ recipients }))),
    rotateSecret: async () => keep(await answerOf(alerts["rotate-secret"].post())),
    /** Reads the signing secret of alerts. The API writes each read into the audit log. */
    readSecret: async () => (await answerOf(alerts.secret.post())).secret,
  };
}

/** Phrases that name an alert in the list of sent alerts, where they follow the time. */
const ALERT_PHRASES: Readonly<Record<AlertKind, string>> = {
  head_retrying: "an event failed twice",
  oldest_waiting: "an event waited too long",
  failures_5: "5 failures in a row",
  failures_10: "10 failures in a row",
  failures_18: "18 failures in a row",
  disabled: "disabled",
  recovered: "recovered",
};

export const isAlertKind = (value: string): value is AlertKind => value in ALERT_PHRASES;

export function alertPhrase(kind: string): string {
  return isAlertKind(kind) ? ALERT_PHRASES[kind] : kind;
}
