import { answerOf, type ApiClient } from "../../api/api-client.ts";
import { atCursor } from "../../api/cursor.ts";
import { useApi } from "../../session/session.tsx";
import { useList } from "../../ui/list.tsx";
import type { AuditQuery } from "./audit-filters.ts";

function readEntries(api: ApiClient, query: AuditQuery, cursor: string | undefined) {
  return answerOf(api.admin["audit-log"].get({ query: { ...query, ...atCursor(cursor) } }));
}

export type AuditEntry = Awaited<ReturnType<typeof readEntries>>["data"][number];

export function useAuditLog(query: AuditQuery) {
  const api = useApi();
  return useList(["audit-log", query], (cursor) => readEntries(api, query, cursor));
}
