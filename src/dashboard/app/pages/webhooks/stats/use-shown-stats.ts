import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";

import { useFilters } from "../../../ui/filters.tsx";
import { useReader } from "../data/data.ts";
import { healthOptions, statsOptions } from "../data/reads.ts";
import type { Span } from "../data/stats-range.ts";
import { withPresent } from "./stats-series.ts";

type Stack = "outcome" | "event";

/**
 * Returns whether the chart is stacked by outcome or by event, and a function that changes it. The choice is
 * kept in the address.
 */
export function useStack(): readonly [Stack, (next: Stack) => void] {
  const { get, set } = useFilters(["stack"]);
  const change = (next: Stack) => set({ stack: next === "event" ? next : undefined });
  return [get("stack") === "event" ? "event" : "outcome", change];
}

/**
 * Reads the statistics of a time span and adds the current length of the queue. Counts by event are requested
 * only when the chart shows them.
 */
export function useShownStats(id: string, span: Span) {
  const [stack] = useStack();
  const query = useQuery(statsOptions(useReader(), id, span, stack === "event"));
  const health = useQuery(healthOptions(useReader(), id)).data;
  // Adds pending and held events, because the queue of a disabled subscription consists of held events.
  const queued = health && health.pending + health.held;
  const { data, dataUpdatedAt } = query;
  const stats = useMemo(
    () => data && (queued === undefined ? data : withPresent(data, queued, dataUpdatedAt)),
    [data, queued, dataUpdatedAt],
  );
  return { ...query, data: stats };
}
