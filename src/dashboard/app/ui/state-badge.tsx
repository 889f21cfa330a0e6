import { sentence } from "./format.ts";
import { Tag } from "./tag.tsx";

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
  return <Tag color={COLORS[state] ?? "gray"}>{sentence(state)}</Tag>;
}
