import { useQuery } from "@tanstack/react-query";

import { answerOf, type ApiClient } from "../../api/api-client.ts";
import { allPages, pageAt } from "../../api/cursor.ts";
import { useApi } from "../../session/session.tsx";

function readSites(api: ApiClient) {
  return allPages((cursor) => answerOf(api.account["review-sites"].get({ query: pageAt(cursor) })));
}

export type StoreReviewSite = Awaited<ReturnType<typeof readSites>>[number];

/** Reads the stores' connections with review sites; the names of stores and sources come from them, too. */
export function useSites(staleTime = 0) {
  const api = useApi();
  return useQuery({ queryKey: ["sites"], queryFn: () => readSites(api), staleTime });
}
