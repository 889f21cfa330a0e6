import { answerOf, type ApiClient, pageAt } from "../../api/client.ts";
import { useApi, useSession } from "../../session/session.tsx";
import { useList } from "../../ui/list.tsx";
import type { AuditQuery } from "./audit-words.ts";

/**
 * Returns whether the user is an operator, who reads the log of all companies. A partner reads that of its
 * own users and those of its accounts.
 */
export const useIsOperator = (): boolean => useSession().company.type === "platform";

interface Reading {
  readonly isOperator: boolean;
  readonly query: AuditQuery;
}

function readEntries(api: ApiClient, { isOperator, query }: Reading, cursor: string | undefined) {
  const log = isOperator ? api.admin["audit-log"] : api.partner["audit-log"];
  return answerOf(log.get({ query: { ...query, ...pageAt(cursor) } }));
}

export type AuditEntry = Awaited<ReturnType<typeof readEntries>>["data"][number];

export function useAuditLog(query: AuditQuery) {
  const api = useApi();
  const isOperator = useIsOperator();
  return useList(["audit-log", query], (cursor) => readEntries(api, { isOperator, query }, cursor));
}
