import { useEffect, useRef } from "react";

import type { LiveState } from "../api/event-stream.ts";

/** Tells when a stream is there again after it was away: it does not bring later what happened meanwhile. */
export function useCameBack(live: LiveState, onBack: () => void): void {
  const wasAway = useRef(false);
  const latest = useRef(onBack);
  useEffect(() => {
    latest.current = onBack;
  });
  useEffect(() => {
    if (live === "live" && wasAway.current) latest.current();
    if (live !== "connecting") wasAway.current = live === "waiting";
  }, [live]);
}
