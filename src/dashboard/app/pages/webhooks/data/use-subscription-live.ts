import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useRef } from "react";

import { useCameBack } from "../../../session/use-came-back.ts";
import { useLive } from "../../../session/use-live.ts";
import type { AttemptRow } from "./attempt-rows.ts";
import { keys } from "./data.ts";
import { streamPath } from "./reads.ts";
import { useReader } from "./use-reader.ts";

export type FollowAttempts = (listener: (row: AttemptRow) => void) => () => void;

/** One stream for the whole page of a subscription: it keeps what is shown fresh, and passes attempts on. */
export function useSubscriptionLive(id: string) {
  const client = useQueryClient();
  const listeners = useRef(new Set<(row: AttemptRow) => void>());
  const hasNews = useRef(false);
  const state = useLive(streamPath(useReader(), id), (event, data) => {
    if (event === "subscription") client.setQueryData(keys.one(id), data);
    if (event === "attempt") {
      hasNews.current = true;
      // What the stream says of an attempt is declared by the server beside the attempt itself.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      for (const listener of listeners.current) listener(data as AttemptRow);
    }
    if (event !== "health") return;
    client.setQueryData(keys.health(id), data);
    // The charts follow at the pace of the health, not of the attempts.
    if (hasNews.current) void client.invalidateQueries({ queryKey: keys.allStats(id) });
    hasNews.current = false;
  });
  useCameBack(state, () => {
    hasNews.current = true;
  });
  const follow: FollowAttempts = useCallback((listener) => {
    listeners.current.add(listener);
    return () => listeners.current.delete(listener);
  }, []);
  return { state, follow };
}
