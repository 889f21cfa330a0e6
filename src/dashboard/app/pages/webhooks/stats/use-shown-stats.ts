import { useMemo } from "react";
import { useSearchParams } from "wouter";

import { useHealth, useStats } from "../data/data.ts";
import type { Span } from "../data/stats-range.ts";
import { withPresent } from "./stats-series.ts";

export type Stack = "outcome" | "event";

/** What the bars of a chart are parts of; it is in the address. */
export function useStack(): readonly [Stack, (next: Stack) => void] {
  const [params, setParams] = useSearchParams();
  const stack = params.get("stack") === "event" ? "event" : "outcome";
  const set = (next: Stack) =>
    setParams(
      (before) => {
        const after = new URLSearchParams(before);
        if (next === "event") after.set("stack", next);
        else after.delete("stack");
        return after;
      },
      { replace: true },
    );
  return [stack, set];
}

/** The stats of a span with the queue as it is now, by event where that is what the chart shows. */
export function useShownStats(id: string, span: Span) {
  const [stack] = useStack();
  const query = useStats(id, span, stack === "event");
  const health = useHealth(id).data;
  // Of a disabled subscription all of the queue is held.
  const queued = health === undefined ? 0 : health.pending + health.held;
  const { data, dataUpdatedAt } = query;
  const stats = useMemo(
    () => data && withPresent(data, queued, dataUpdatedAt),
    [data, queued, dataUpdatedAt],
  );
  return { query, stats };
}
