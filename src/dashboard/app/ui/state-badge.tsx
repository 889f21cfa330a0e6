import { Badge } from "@mantine/core";

import { sentence } from "./format.ts";

const COLORS: Readonly<Record<string, string>> = {
  active: "teal",
  connected: "teal",
  delivered: "teal",
  pending: "blue",
  waiting: "yellow",
  retry: "yellow",
  held: "yellow",
  under_review: "yellow",
  interrupted: "gray",
  skipped: "gray",
  inactive: "gray",
  locked: "yellow",
  failing: "yellow",
  disabled: "red",
  disconnected: "red",
  failed: "red",
};

/** Shows a state as a word; the colour only repeats it. */
export function StateBadge({ state }: { readonly state: string }) {
  return (
    <Badge color={COLORS[state] ?? "gray"} variant="light" tt="none" radius="sm" flex="none">
      {sentence(state)}
    </Badge>
  );
}
