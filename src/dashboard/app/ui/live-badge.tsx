import { Text } from "@mantine/core";

import type { LiveState } from "../api/event-stream.ts";

const WORDS: Readonly<Record<LiveState, string>> = {
  connecting: "Connecting …",
  live: "Live",
  waiting: "Reconnecting …",
};

/** Whether what is shown moves by itself. */
export function LiveBadge({ state }: { readonly state: LiveState }) {
  return (
    <Text size="sm" c="dimmed" component="output" className="live-badge" data-state={state}>
      <span className="live-dot" aria-hidden />
      {WORDS[state]}
    </Text>
  );
}
