import { useQuery, useQueryClient } from "@tanstack/react-query";

import { answerOf, type ApiClient } from "../../../api/api-client.ts";
import { useApi } from "../../../session/session.tsx";

const KEY = ["webhooks", "alerts"];

function readAlerts(api: ApiClient) {
  return answerOf(api.partner.alerts.get());
}

export type AlertSettings = Awaited<ReturnType<typeof readAlerts>>;
export type AlertKind = AlertSettings["kinds"][number];

export function useAlerts() {
  const api = useApi();
  return useQuery({ queryKey: KEY, queryFn: () => readAlerts(api) });
}

/** What is told of trouble, as the form edits it: one address a line. */
export interface AlertDraft {
  readonly toOwners: boolean;
  readonly recipients: string;
  readonly kinds: readonly AlertKind[];
  readonly waitingMinutes: number;
  readonly digestMinutes: number;
  readonly url: string;
}

export const ALERT_FIELDS = {
  recipients: "recipients",
  kinds: "kinds",
  waitingMinutes: "oldest_waiting_minutes",
  digestMinutes: "digest_minutes",
  url: "webhook_url",
} as const;

export function alertDraftOf(one: AlertSettings): AlertDraft {
  return {
    toOwners: one.recipients === null,
    recipients: (one.recipients ?? []).join("\n"),
    kinds: one.kinds,
    waitingMinutes: one.oldest_waiting_minutes,
    digestMinutes: one.digest_minutes,
    url: one.webhook_url ?? "",
  };
}

/** What is sent of a draft. */
function alertsBody(draft: AlertDraft) {
  const lines = draft.recipients.split(/[\s,;]+/).filter((line) => line !== "");
  const url = draft.url.trim();
  return {
    recipients: draft.toOwners ? null : lines,
    kinds: [...draft.kinds],
    oldest_waiting_minutes: draft.waitingMinutes,
    digest_minutes: draft.digestMinutes,
    webhook_url: url === "" ? null : url,
  };
}

export function useAlertActions() {
  const api = useApi();
  const queries = useQueryClient();
  const { alerts } = api.partner;
  const keep = ({ secret, ...settings }: AlertSettings & { readonly secret: string | null }) => {
    queries.setQueryData(KEY, settings);
    return secret;
  };
  return {
    /** Answers the secret, if this made one. */
    update: async (draft: AlertDraft) => keep(await answerOf(alerts.patch(alertsBody(draft)))),
    rotateSecret: async () => keep(await answerOf(alerts["rotate-secret"].post())),
    /** The server writes each look into the audit log. */
    readSecret: async () => (await answerOf(alerts.secret.post())).secret,
  };
}
