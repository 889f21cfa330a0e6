import { useMemo } from "react";

import { useHealth, useStats } from "../data/data.ts";
import type { Span } from "../data/stats-range.ts";
import { withPresent } from "./stats-series.ts";
import { useStack } from "./use-stack.ts";

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
