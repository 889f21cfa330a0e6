import { queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";

import { allPages, answerOf, type ApiClient, type DataOf, pageAt } from "../../api/client.ts";
import { useApi } from "../../session/session.tsx";
import { listOptions } from "../../ui/pages.ts";
import type { FlagMove, ReviewQuery } from "./review-model.ts";

/**
 * Reads the connections between the account's stores and the review sites. The names of stores and review sites
 * come from this response, too.
 */
export const sitesOptions = (api: ApiClient) =>
  queryOptions({
    queryKey: ["sites"],
    queryFn: () =>
      allPages((cursor) => answerOf(api.account["review-sites"].get({ query: pageAt(cursor) }))),
    staleTime: 0,
  });

export type StoreReviewSite = DataOf<typeof sitesOptions>[number];

export const reviewOptions = (api: ApiClient, id: string) =>
  queryOptions({
    queryKey: ["review", id],
    // Encodes the review id, because the address may contain any text as id and the API client does not encode
    // path segments.
    queryFn: () => answerOf(api.account.reviews({ id: encodeURIComponent(id) }).get()),
  });

export type ReviewWithHistory = DataOf<typeof reviewOptions>;
export type Review = Omit<ReviewWithHistory, "history">;

/** Cached names of users and stores may be up to a minute old, because names rarely change. */
const NAMES_STALE_MS = 60_000;

export const reviewsOptions = (api: ApiClient, query: ReviewQuery) =>
  listOptions(["reviews", query], (cursor) =>
    answerOf(api.account.reviews.get({ query: { ...query, ...pageAt(cursor) } })),
  );

/**
 * Reads the active users of the account. With `storeId`, reads only the users who can see that store, because
 * only they can be assigned its reviews.
 */
export const colleaguesOptions = (api: ApiClient, storeId?: number) =>
  queryOptions({
    queryKey: ["colleagues", storeId],
    queryFn: () =>
      allPages((cursor) => {
        const query = { ...pageAt(cursor), ...(storeId && { store_id: storeId }) };
        return answerOf(api.account.users.get({ query }));
      }),
    staleTime: NAMES_STALE_MS,
  });

/** Returns functions that map the ids in a review (users, stores, review sites) to names. */
export function useNames() {
  const api = useApi();
  const { data: sites } = useQuery({ ...sitesOptions(api), staleTime: NAMES_STALE_MS });
  const { data: users } = useQuery(colleaguesOptions(api));
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

/**
 * Requests that change a review. The page shows the returned review immediately, and the history and the review
 * lists are read again.
 */
export function useReviewActions(reviewId: number) {
  const api = useApi();
  const queries = useQueryClient();
  const review = api.account.reviews({ id: reviewId });
  const show = (answer: Review) => {
    const { queryKey } = reviewOptions(api, String(reviewId));
    queries.setQueryData(queryKey, (before) => before && { ...before, ...answer });
    void queries.invalidateQueries({ queryKey });
    void queries.invalidateQueries({ queryKey: ["reviews"] });
    return answer;
  };
  return {
    assign: async (userId: number) => {
      return show(await answerOf(review.assign.post({ user_id: userId })));
    },
    addNote: async (text: string) => {
      return show(await answerOf(review.notes.post({ body: text.trim() })));
    },
    flag: async (reason: string) => {
      return show(await answerOf(review.flag.post({ reason: reason.trim() })));
    },
    moveFlag: async (status: FlagMove) => {
      return show(await answerOf(review["flag-status"].post({ status })));
    },
    respond: async (text: string) => {
      return show(await answerOf(review.response.post({ body: text.trim() })));
    },
    deleteResponse: async () => show(await answerOf(review.response.delete())),
  };
}
