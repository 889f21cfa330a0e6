import { useInfiniteQuery, useQueryClient, type InfiniteData } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";

import { useApi } from "../../session.tsx";
import type { LiveState } from "../../ui/live.ts";
import { isMatch, mergeRows, rowOf, type AttemptFilter, type AttemptRow } from "./attempt-rows.ts";
import { keys } from "./data.ts";
import type { ApiClient } from "../../ui/api-client.ts";
import type { FollowAttempts } from "./use-subscription-live.ts";

const PAGE = 100;
/** More at once, and the stream itself may have left some out. */
const BURST = 100;
const FLUSH_MS = 200;

async function readPage(api: ApiClient, id: string, filter: AttemptFilter, cursor: string) {
  type Request = Parameters<typeof api.call<"GET", "/partner/webhooks/:id/deliveries">>[2];
  const query = { limit: PAGE, ...filter, ...(cursor !== "" && { cursor }) };
  // A filter of the address was checked as far as we know; the server has the last word.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const request = { params: { id }, query } as Request;
  const page = await api.call("GET", "/partner/webhooks/:id/deliveries", request);
  // The bodies are left behind: of thousands of rows they would fill the memory.
  return { rows: page.data.map(rowOf), next: page.next_cursor };
}

type Page = Awaited<ReturnType<typeof readPage>>;

/** Page by page; more than one are not asked again by themselves, for that asks for every one of them. */
function usePages(id: string, filter: AttemptFilter) {
  const api = useApi();
  return useInfiniteQuery({
    queryKey: keys.attempts(id, filter),
    queryFn: ({ pageParam }) => readPage(api, id, filter, pageParam),
    initialPageParam: "",
    getNextPageParam: ({ next }) => next,
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnMount: ({ state: { data } }) => (data?.pages.length === 1 ? "always" : false),
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  });
}

interface Following {
  readonly live: LiveState;
  readonly follow: FollowAttempts;
  /** Whether the newest row is in view: then what is new may appear at once, else it would move what one reads. */
  readonly isAtTop: () => boolean;
}

/** The attempts that fit the filter, newest first, and how many more have come meanwhile. */
export function useAttempts(id: string, filter: AttemptFilter, following: Following) {
  const client = useQueryClient();
  const pages = usePages(id, filter);
  const { arrived, waiting, isBehind, forget } = useArrivals(filter, following);
  // Kept from an earlier look, and what has come since was told to nobody.
  const [isKept, setKept] = useState((pages.data?.pages.length ?? 0) > 1);
  const rows = useMemo(
    () => mergeRows(arrived, pages.data?.pages.flatMap((page) => page.rows) ?? []),
    [arrived, pages.data],
  );
  /** The newest page alone; what is shown stays until it is there. */
  const showNewest = async () => {
    const queryKey = keys.attempts(id, filter);
    client.setQueryData<InfiniteData<Page, string>>(queryKey, (old) => old && firstOf(old));
    await client.refetchQueries({ queryKey });
    forget();
    setKept(false);
  };
  return { pages, rows, waiting, isBehind: isBehind || isKept, showNewest };
}

function firstOf({ pages, pageParams }: InfiniteData<Page, string>): InfiniteData<Page, string> {
  return { pages: pages.slice(0, 1), pageParams: pageParams.slice(0, 1) };
}

/** What the stream has told since the list was read. */
function useArrivals(filter: AttemptFilter, { live, follow, isAtTop }: Following) {
  const [arrived, setArrived] = useState<readonly AttemptRow[]>([]);
  const [waiting, setWaiting] = useState(0);
  const [isBehind, setBehind] = useState(false);
  const [wasLive, setWasLive] = useState(live);
  if (live !== wasLive) {
    setWasLive(live);
    // Whatever happens while the stream is away is not told.
    if (live === "waiting") setBehind(true);
  }
  const latest = useRef({ filter, isAtTop });
  useEffect(() => {
    latest.current = { filter, isAtTop };
  });
  useEffect(() => {
    let batch: AttemptRow[] = [];
    const take = () => {
      const fresh = batch;
      batch = [];
      if (fresh.length >= BURST) setBehind(true);
      if (fresh.length === 0) return;
      if (latest.current.isAtTop()) setArrived((before) => [...before, ...fresh]);
      else setWaiting((before) => before + fresh.length);
    };
    const timer = setInterval(take, FLUSH_MS);
    const leave = follow((row) => {
      if (isMatch(row, latest.current.filter)) batch.push(rowOf(row));
    });
    return () => {
      clearInterval(timer);
      leave();
    };
  }, [follow]);
  const forget = () => {
    setArrived([]);
    setWaiting(0);
    setBehind(false);
  };
  return { arrived, waiting, isBehind, forget };
}
