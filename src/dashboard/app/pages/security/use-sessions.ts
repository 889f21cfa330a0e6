import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";

import { useApi } from "../../session.tsx";
import { problemOf } from "../../ui/explain.ts";

type ApiClient = ReturnType<typeof useApi>;

const KEY = ["sessions"];
const PAGE = 20;
const WHOLE_PAGE = 100;

const readPage = (api: ApiClient, limit: number, cursor: string | undefined) =>
  api.call("GET", "/account/sessions", { query: { limit, ...(cursor && { cursor }) } });

/** A sign-in with a live token. */
export type SignedIn = Awaited<ReturnType<typeof readPage>>["data"][number];

export function useSessions() {
  const api = useApi();
  const cache = useQueryClient();
  const query = useInfiniteQuery({
    queryKey: KEY,
    queryFn: ({ pageParam }) => readPage(api, PAGE, pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  });
  const refresh = () => cache.invalidateQueries({ queryKey: KEY });
  return {
    sessions: query.data?.pages.flatMap((page) => page.data),
    error: query.error,
    retry: () => void query.refetch(),
    next: query.hasNextPage ? () => void query.fetchNextPage() : undefined,
    end: async (one: SignedIn) => {
      await endOne(api, one);
      await refresh();
    },
    /** Those of pages that were never shown, too. */
    endOthers: async () => {
      try {
        for (const one of await others(api)) await endOne(api, one);
      } finally {
        await refresh();
      }
    },
  };
}

async function others(api: ApiClient): Promise<SignedIn[]> {
  const found: SignedIn[] = [];
  let cursor: string | undefined;
  do {
    const page = await readPage(api, WHOLE_PAGE, cursor);
    found.push(...page.data.filter((one) => !one.is_current));
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
  return found;
}

/** One that has ended by itself meanwhile is what was asked for. */
async function endOne(api: ApiClient, { id }: SignedIn): Promise<void> {
  try {
    await api.call("DELETE", "/account/sessions/:id", { params: { id } });
  } catch (error) {
    if (problemOf(error)?.status !== 404) throw error;
  }
}
