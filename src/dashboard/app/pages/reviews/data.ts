import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";

import { useApi } from "../../session.tsx";
import { allPages } from "../../ui/all-pages.ts";

type Api = ReturnType<typeof useApi>;
const loadReview = (api: Api, id: string) =>
  api.call("GET", "/account/reviews/:id", { params: { id } });
const loadSites = (api: Api) =>
  allPages((cursor) =>
    api.call("GET", "/account/review-sites", { query: { limit: 100, ...(cursor && { cursor }) } }),
  );
export type ReviewWithHistory = Awaited<ReturnType<typeof loadReview>>;
export type Review = Omit<ReviewWithHistory, "history">;
export type StoreReviewSite = Awaited<ReturnType<typeof loadSites>>[number];

/** People and stores change rarely; a minute old is fresh enough for their names. */
const NAMES_STALE_MS = 60_000;

/** The stores' connections with review sites; from them come the names of stores and sources, too. */
export function useSites(staleTime = 0) {
  const api = useApi();
  return useQuery({
    queryKey: ["sites"],
    queryFn: () => loadSites(api),
    staleTime,
  });
}

/** The names that a review has as ids. */
export function useNames() {
  const { data: sites } = useSites(NAMES_STALE_MS);
  const { data: users } = useColleagues();
  return useMemo(() => {
    const stores = new Map(sites?.map((one) => [one.store_id, one.store_name]));
    const sources = new Map(sites?.map((one) => [one.provider, one.name]));
    const people = new Map(users?.map((one) => [one.id, one.name]));
    return {
      stores: [...stores].toSorted(([, a], [, b]) => a.localeCompare(b)),
      sources: [...sources].toSorted(([, a], [, b]) => a.localeCompare(b)),
      store: (id: number) => stores.get(id) ?? `Store ${id}`,
      source: (slug: string) => sources.get(slug) ?? slug,
      user: (id: number) => people.get(id) ?? "a former colleague",
    };
  }, [sites, users]);
}

/** Active users of the account; with a store only those who see it: whom its reviews may be assigned to. */
export function useColleagues(storeId?: number) {
  const api = useApi();
  return useQuery({
    queryKey: ["colleagues", storeId],
    queryFn: () =>
      allPages((cursor) =>
        api.call("GET", "/account/users", {
          query: { limit: 100, ...(cursor && { cursor }), ...(storeId && { store_id: storeId }) },
        }),
      ),
    staleTime: NAMES_STALE_MS,
  });
}

export function useReview(id: string) {
  const api = useApi();
  return useQuery({ queryKey: ["review", id], queryFn: () => loadReview(api, id) });
}

/** After an action: what it answered is shown at once, the history and the lists follow. */
export function useShowReview() {
  const queries = useQueryClient();
  return (answer: Review) => {
    const key = ["review", String(answer.id)];
    queries.setQueryData<ReviewWithHistory>(key, (before) => before && { ...before, ...answer });
    void queries.invalidateQueries({ queryKey: key });
    void queries.invalidateQueries({ queryKey: ["reviews"] });
  };
}
