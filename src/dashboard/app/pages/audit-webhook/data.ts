import { queryOptions } from "@tanstack/react-query";

import { answerOf, type ApiClient, apiErrorOf, type DataOf } from "../../api/client.ts";
import { useApi } from "../../session/session.tsx";
import { useRefresh } from "../../ui/pages.ts";

const READ_AGAIN_MS = 2_000;

/** Reads the audit webhook with its progress; null if there is none. */
export const auditWebhookOptions = (api: ApiClient) =>
  queryOptions({
    queryKey: ["audit-webhook"],
    queryFn: async () => {
      try {
        return await answerOf(api.admin["audit-webhook"].get());
      } catch (error) {
        if (apiErrorOf(error)?.status === 404) return null;
        throw error;
      }
    },
    refetchInterval: READ_AGAIN_MS,
  });

export type AuditWebhook = NonNullable<DataOf<typeof auditWebhookOptions>>;

/** Row with which the audit webhook goes on: the one after the last sent one, the next one, or the oldest one. */
export type Start = "here" | "newest" | "oldest";

export interface WebhookDraft {
  readonly url: string;
  readonly start: Start;
}

/** Requests that set and remove the audit webhook. */
export function useAuditWebhookActions() {
  const { "audit-webhook": webhook, "audit-log": log } = useApi().admin;
  const { inBackground, andRead } = useRefresh(["audit-webhook"]);
  return {
    /** Sets the URL, and returns the new secret, which the API never returns again. */
    set: async ({ url, start }: WebhookDraft): Promise<string> => {
      const body = { url: url.trim(), ...(start !== "here" && { start }) };
      return (await inBackground(answerOf(webhook.put(body)))).secret;
    },
    /** Adds the entry of a test, and returns its time in the audit log. */
    test: async (): Promise<string> => {
      await andRead(answerOf(webhook.test.post()));
      const query = { action: "AUDIT_WEBHOOK_TESTED" as const, limit: 1 };
      const { data } = await answerOf(log.get({ query }));
      return data[0]?.at ?? "";
    },
    remove: () => andRead(answerOf(webhook.delete())),
  };
}
