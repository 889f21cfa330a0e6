import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";

import { answerOf, atCursor } from "../../../api/client.ts";
import { type LiveState, useCameBack } from "../../../session/live.ts";
import { type ReadPage, usePages } from "../../../ui/pages.ts";
import {
  ALL_FAILURES,
  type AttemptRow,
  isMatch,
  type MessageFilter,
  messageQuery,
} from "../data/filters.ts";
import { type FollowAttempts, keys, useReader } from "../data/data.ts";
import { type Message, readableAt, type Reader } from "../data/reads.ts";

const PAGE = 100;
/** A page that found nothing goes on by itself so many times; then somebody has to want it. */
const EMPTY_PAGES = 10;

async function readPage(
  reader: Reader,
  id: string,
  filter: MessageFilter,
  cursor: string | undefined,
): Promise<ReadPage<Message>> {
  let page = await readMessages(reader, id, filter, { limit: PAGE, cursor });
  for (let i = 0; i < EMPTY_PAGES && page.data.length === 0 && page.next_cursor !== null; i++)
    page = await readMessages(reader, id, filter, { limit: PAGE, cursor: page.next_cursor });
  return { rows: page.data, next: page.next_cursor };
}

export function readMessages(
  reader: Reader,
  id: string,
  filter: MessageFilter,
  { limit, cursor }: { readonly limit: number; readonly cursor: string | undefined },
) {
  const { messages } = readableAt(reader, id);
  type Query = NonNullable<Parameters<typeof messages.get>[0]>["query"];
  const given = { limit, ...messageQuery(filter, Date.now()), ...atCursor(cursor) };
  // A filter of the address was checked as far as we know; the server has the last word.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return answerOf(messages.get({ query: given as unknown as NonNullable<Query> }));
}

function useMessagePages(id: string, filter: MessageFilter) {
  const reader = useReader();
  return usePages(keys.messages(id, filter), (cursor) => readPage(reader, id, filter, cursor), {
    isReadOnce: true,
  });
}

/** One event as the list of them has it: with its review. */
export function useMessage(id: string, eventId: string) {
  const reader = useReader();
  const filter = { event_id: eventId };
  return useQuery({
    queryKey: keys.messages(id, { ...filter, limit: 1 }),
    queryFn: async () => {
      const page = await readMessages(reader, id, filter, { limit: 1, cursor: undefined });
      return page.data[0] ?? null;
    },
  });
}

/** The newest page is read again so often at the most, whatever comes. */
const PAUSE_MS = 2_000;
const LOOK_MS = 200;

interface MessageStream {
  readonly live: LiveState;
  readonly follow: FollowAttempts;
  /** Whether the newest row is in view: only then it may change at once, else it would move what one reads. */
  readonly isAtTop: () => boolean;
}

/** Reads the messages that fit the filter, and reads the newest again when an attempt has come that may be one of them. */
export function useMessages(id: string, filter: MessageFilter, stream: MessageStream) {
  const { pages, slots, onView, readNewest } = useMessagePages(id, filter);
  const { live, follow, isAtTop } = stream;
  const [isBehind, setBehind] = useState(live === "waiting" || (pages.data?.pages.length ?? 0) > 1);
  const [wasLive, setWasLive] = useState(live);
  if (live !== wasLive) {
    setWasLive(live);
    if (live === "waiting") setBehind(true);
  }
  const hasNews = useRef(false);
  useCameBack(live, () => {
    hasNews.current = true;
  });
  const showNewest = async () => {
    hasNews.current = false;
    await readNewest();
    setBehind(false);
  };
  const latest = useRef({ filter, isAtTop, showNewest });
  useEffect(() => {
    latest.current = { filter, isAtTop, showNewest };
  });
  useEffect(() => {
    let quietUntil = 0;
    const take = () => {
      if (!hasNews.current || performance.now() < quietUntil) return;
      hasNews.current = false;
      if (!latest.current.isAtTop()) {
        setBehind(true);
        return;
      }
      quietUntil = Number.POSITIVE_INFINITY;
      void latest.current.showNewest().finally(() => (quietUntil = performance.now() + PAUSE_MS));
    };
    const timer = setInterval(take, LOOK_MS);
    const leave = follow((row) => {
      if (mayMatch(row, latest.current.filter)) hasNews.current = true;
    });
    return () => {
      clearInterval(timer);
      leave();
    };
  }, [follow]);
  return { pages, rows: slots, onView, isBehind, showNewest };
}

/** Whether an attempt may belong to the list; what it is about and what was answered the stream does not tell. */
function mayMatch(
  row: AttemptRow,
  { event, event_id, outcome, since, until }: MessageFilter,
): boolean {
  if (outcome === ALL_FAILURES && row.outcome === "delivered") return false;
  const named = outcome === undefined || outcome === ALL_FAILURES ? {} : { outcome };
  return isMatch(row, {
    ...named,
    ...(event !== undefined && { event }),
    ...(event_id !== undefined && { event_id }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
  });
}
