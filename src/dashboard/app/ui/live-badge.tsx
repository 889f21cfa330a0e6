import { Text } from "@mantine/core";

import type { LiveState } from "../api/event-stream.ts";

const WORDS: Readonly<Record<LiveState, string>> = {
  connecting: "Connecting …",
  live: "Updates live",
  waiting: "Reconnecting …",
};

/** Says whether the page follows the server by itself. */
export function LiveBadge({ state }: { readonly state: LiveState }) {
  return (
    <Text size="sm" c="dimmed" component="output" className="live-badge" data-state={state}>
      <span className="live-dot" aria-hidden />
      {WORDS[state]}
    </Text>
  );
}
