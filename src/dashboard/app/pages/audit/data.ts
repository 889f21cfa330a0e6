import { queryOptions } from "@tanstack/react-query";

import { type ApiClient, answerOf, pageAt } from "../../api/client.ts";
import { useSession } from "../../session/session.tsx";
import { listOptions, type RowOf } from "../../ui/pages.ts";
import { type AuditQuery, PERIODS } from "./audit-words.ts";

/**
 * Returns whether the signed-in user is an operator. Operators read the audit log of all companies. Partners
 * read only the entries of their own users and of their accounts' users.
 */
export const useIsOperator = (): boolean => useSession().company.type === "platform";

export function auditLogOptions(api: ApiClient, isOperator: boolean, query: AuditQuery) {
  const log = isOperator ? api.admin["audit-log"] : api.partner["audit-log"];
  return listOptions(["audit-log", query], (cursor) =>
    answerOf(log.get({ query: { ...untilNow(query), ...pageAt(cursor) } })),
  );
}

/** Converts a preset period of the query to a period that ends now. */
function untilNow({ within = "", ...query }: AuditQuery) {
  const [, ms] = PERIODS[within] ?? [];
  return ms === undefined ? query : { ...query, since: new Date(Date.now() - ms).toISOString() };
}

/** Number of entries that a page of another object shows. */
const RECENT_ENTRIES = 5;

/** Reads the newest entries that match the filter. */
export const recentOptions = (api: ApiClient, isOperator: boolean, query: AuditQuery) =>
  queryOptions({
    queryKey: ["audit-log", "recent", query],
    queryFn: async () => {
      const log = isOperator ? api.admin["audit-log"] : api.partner["audit-log"];
      return (await answerOf(log.get({ query: { ...untilNow(query), limit: RECENT_ENTRIES } })))
        .data;
    },
  });

export type AuditEntry = RowOf<typeof auditLogOptions>;
