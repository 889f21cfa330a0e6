import { answerOf, type ApiClient, pageAt } from "../../api/client.ts";
import { useApi, useSession } from "../../session/session.tsx";
import { useList } from "../../ui/list.tsx";
import type { AuditQuery } from "./audit-words.ts";

/**
 * Returns whether the signed-in user is an operator. Operators read the audit log of all companies. Partners
 * read only the entries of their own users and of their accounts' users.
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
