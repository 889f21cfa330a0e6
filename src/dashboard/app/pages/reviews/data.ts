import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";

import type { ApiClient } from "../../api/api-client.ts";
import { allPages, atCursor } from "../../api/cursor.ts";
import { useApi } from "../../session/session.tsx";
import { useList } from "../../ui/list.tsx";
import { useSites } from "../sites/data.ts";
import type { FlagMove } from "./flag-moves.ts";
import type { ReviewQuery } from "./review-filters.ts";

function readReview(api: ApiClient, id: string) {
  return api.call("GET", "/account/reviews/:id", { params: { id } });
}

export type ReviewWithHistory = Awaited<ReturnType<typeof readReview>>;
export type Review = Omit<ReviewWithHistory, "history">;

/** People and stores change rarely; a minute old is fresh enough for their names. */
const NAMES_STALE_MS = 60_000;

export function useReviews(query: ReviewQuery) {
  const api = useApi();
  return useList(["reviews", query], (cursor) =>
    api.call("GET", "/account/reviews", { query: { ...query, ...atCursor(cursor) } }),
  );
}

export function useReview(id: string) {
  const api = useApi();
  return useQuery({ queryKey: ["review", id], queryFn: () => readReview(api, id) });
}

/** Reads the active users of the account; with a store only those who see it, to whom its reviews may be assigned. */
export function useColleagues(storeId?: number) {
  const api = useApi();
  return useQuery({
    queryKey: ["colleagues", storeId],
    queryFn: () =>
      allPages((cursor) =>
        api.call("GET", "/account/users", {
          query: { limit: 100, ...atCursor(cursor), ...(storeId && { store_id: storeId }) },
        }),
      ),
    staleTime: NAMES_STALE_MS,
  });
}

/** Answers the names of what a review has as ids. */
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

/** The actions on a review. The answer of each is shown at once; the history and the lists follow. */
export function useReviewActions(reviewId: number) {
  const api = useApi();
  const queries = useQueryClient();
  const params = { id: String(reviewId) };
  const show = (answer: Review) => {
    const key = ["review", params.id];
    queries.setQueryData<ReviewWithHistory>(key, (before) => before && { ...before, ...answer });
    void queries.invalidateQueries({ queryKey: key });
    void queries.invalidateQueries({ queryKey: ["reviews"] });
    return answer;
  };
  return {
    assign: async (userId: number) => {
      const body = { user_id: userId };
      return show(await api.call("POST", "/account/reviews/:id/assign", { params, body }));
    },
    addNote: async (text: string) => {
      const body = { body: text.trim() };
      return show(await api.call("POST", "/account/reviews/:id/notes", { params, body }));
    },
    flag: async (reason: string) => {
      const body = { reason: reason.trim() };
      return show(await api.call("POST", "/account/reviews/:id/flag", { params, body }));
    },
    moveFlag: async (status: FlagMove) => {
      const body = { status };
      return show(await api.call("POST", "/account/reviews/:id/flag-status", { params, body }));
    },
    respond: async (text: string) => {
      const body = { body: text.trim() };
      return show(await api.call("POST", "/account/reviews/:id/response", { params, body }));
    },
    deleteResponse: async () =>
      show(await api.call("DELETE", "/account/reviews/:id/response", { params })),
  };
}
