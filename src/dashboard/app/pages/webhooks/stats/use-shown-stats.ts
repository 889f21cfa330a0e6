import { useMemo } from "react";
import { useSearchParams } from "wouter";

import { useHealth, useStats } from "../data/data.ts";
import type { Span } from "../data/stats-range.ts";
import { withPresent } from "./stats-series.ts";

type Stack = "outcome" | "event";

/** Keeps the stacking of the chart (by outcome or by event) in the address. */
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

/**
 * Reads the statistics of a span, with the current length of the queue. Counts by event are requested only if
 * the chart shows them.
 */
export function useShownStats(id: string, span: Span) {
  const [stack] = useStack();
  const query = useStats(id, span, stack === "event");
  const health = useHealth(id).data;
  // All queued events of a disabled subscription are held.
  const queued = health === undefined ? 0 : health.pending + health.held;
  const { data, dataUpdatedAt } = query;
  const stats = useMemo(
    () => data && withPresent(data, queued, dataUpdatedAt),
    [data, queued, dataUpdatedAt],
  );
  return { query, stats };
}
