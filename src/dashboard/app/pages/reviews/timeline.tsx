import { Dimmed } from "../../ui/layout.tsx";
import { Text, ThemeIcon } from "@mantine/core";

import { Icon, type IconName } from "../../ui/icon.tsx";
import { Time } from "../../ui/time.tsx";
import { useNames } from "./data.ts";
import { describeEntry, type DESCRIPTIONS, type HistoryEntry, isDescribed } from "./history.ts";
import css from "./review.module.css";

const ICONS: Readonly<Record<keyof typeof DESCRIPTIONS, IconName>> = {
  review_received: "star",
  review_updated: "edit",
  review_removed: "trash",
  profanity_detected: "alert",
  review_flagged: "flag",
  flag_status_changed: "flag",
  review_assigned: "user",
  note_added: "list",
  response_submitted: "message",
  response_updated: "edit",
  response_deleted: "trash",
  homeowner_notified_of_response: "bell",
  response_post_succeeded: "check",
  response_post_failed: "alert",
};

/** Shows the history of a review, the latest entry first. */
export function Timeline({ entries }: { readonly entries: readonly HistoryEntry[] }) {
  return (
    <ol className={css.history} reversed aria-label="History, latest first">
      {entries.toReversed().map((one) => (
        <TimelineEntry key={one.id} entry={one} />
      ))}
    </ol>
  );
}

function TimelineEntry({ entry }: { readonly entry: HistoryEntry }) {
  const { who, what, quote, more } = describeEntry(entry, useNames());
  return (
    <li>
      <ThemeIcon variant="light" color="gray" size={30} radius="xl">
        <Icon name={isDescribed(entry.event) ? ICONS[entry.event] : "clock"} size={16} />
      </ThemeIcon>
      <div className="shrinks">
        <Text size="sm">
          <Text span fw={600} inherit>
            {who}
          </Text>{" "}
          {what}{" "}
          <Text span c="dimmed" inherit>
            · <Time at={entry.occurred_at} />
          </Text>
        </Text>
        {quote !== undefined && (
          <Text size="sm" component="blockquote" className={`${css.asWritten} ${css.quote}`}>
            {quote}
          </Text>
        )}
        {more !== undefined && <Dimmed size="sm">{more}</Dimmed>}
      </div>
    </li>
  );
}
