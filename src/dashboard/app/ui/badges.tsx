import { Group, Paper, Text, ThemeIcon, VisuallyHidden } from "@mantine/core";
import { Fragment, type ReactNode } from "react";

import css from "./badges.module.css";
import { sentence } from "./format.ts";
import { Icon } from "./icon.tsx";
import { matchesIn } from "./text-query.ts";

interface TagProps {
  /** Name of a Mantine colour, such as `teal`. */
  readonly color?: string;
  /** Renders the tag less prominently, for places with several tags side by side. */
  readonly isQuiet?: boolean;
  readonly className?: string;
  readonly children: ReactNode;
}

/** Shows a word in a tinted box. Uses a single plain element, because long lists contain hundreds of tags. */
export function Tag({ color = "gray", isQuiet = false, className = "", children }: TagProps) {
  const tint = `--mantine-color-${color}-light`;
  return (
    <span
      className={`tag ${className}`}
      data-quiet={isQuiet || undefined}
      style={{ background: `var(${tint})`, color: `var(${tint}-color)` }}
    >
      {children}
    </span>
  );
}

const STATE_COLORS: Readonly<Record<string, string>> = {
  active: "teal",
  healthy: "teal",
  recovered: "teal",
  degraded: "yellow",
  connected: "teal",
  delivered: "teal",
  done: "teal",
  verified: "teal",
  pending: "blue",
  queued: "blue",
  running: "blue",
  waiting: "yellow",
  scheduled: "yellow",
  retry: "yellow",
  retrying: "yellow",
  held: "yellow",
  invited: "yellow",
  open: "yellow",
  unverified: "yellow",
  under_review: "yellow",
  interrupted: "gray",
  skipped: "gray",
  inactive: "gray",
  erased: "gray",
  locked: "yellow",
  failing: "red",
  disabled: "red",
  disconnected: "red",
  failed: "red",
};

/** Returns the colour of a state. */
export const stateColor = (state: string) => STATE_COLORS[state] ?? "gray";

/** Returns the word for a state, the same on every page. */
export const stateWord = (state: string) => sentence(state === "waiting" ? "retrying" : state);

/**
 * Shows a state as a coloured word. The colour carries no information of its own, so that users who cannot see
 * colours miss nothing.
 */
export function StateBadge({ state }: { readonly state: string }) {
  return <Tag color={stateColor(state)}>{stateWord(state)}</Tag>;
}

const SUMMARY_LOOKS = {
  true: { color: "teal", icon: "check" },
  false: { color: "yellow", icon: "alert" },
  null: { color: "gray", icon: "clock" },
} as const;

/** Shows the overall state of a page in one sentence above the details. */
export function StateSummary({
  isWell,
  title,
  children,
  action,
}: {
  /** Null if nothing tells yet whether all is well. */
  readonly isWell: boolean | null;
  readonly title: string;
  readonly children?: ReactNode;
  readonly action?: ReactNode;
}) {
  const look = SUMMARY_LOOKS[`${isWell}`];
  return (
    <Paper withBorder p="md" component={Group} justify="space-between" gap="sm">
      <Group gap="md" align="flex-start" flex="1 1 280px" wrap="nowrap">
        <ThemeIcon variant="light" color={look.color} size={36} radius="xl">
          <Icon name={look.icon} />
        </ThemeIcon>
        <output className="shrinks">
          <Text fw={650} component="span" display="block">
            {title}
          </Text>
          {children !== undefined && (
            <Text size="sm" c="dimmed" component="span" display="block">
              {children}
            </Text>
          )}
        </output>
      </Group>
      {action}
    </Paper>
  );
}

const MAX_STARS = 5;

/** Shows a rating as filled and empty stars. Screen readers announce the number instead. */
export function Stars({ rate }: { readonly rate: number }) {
  return (
    <span className={css.stars}>
      <VisuallyHidden>{`${rate} of ${MAX_STARS} stars`}</VisuallyHidden>
      {Array.from({ length: MAX_STARS }, (_, i) => (
        <svg key={i} viewBox="0 0 24 24" width={16} height={16} aria-hidden data-filled={i < rate}>
          <path d="m12 3 2.8 5.8 6.2.9-4.5 4.4 1 6.3-5.5-3-5.5 3 1-6.3L3 9.7l6.2-.9L12 3Z" />
        </svg>
      ))}
    </span>
  );
}

/** Shows an address, a path or a technical name, which breaks after `/`, `.` or `_` where it does not fit into a line. */
export function BreakableText({ text }: { readonly text: string }) {
  return text.split(/(?<=[^/]\/)(?!\/)|(?<=[._])/).map((part, i) => (
    <Fragment key={i}>
      {i > 0 && <wbr />}
      {part}
    </Fragment>
  ));
}

interface HighlightedProps {
  readonly text: string;
  /** Search text to highlight; undefined without a search. */
  readonly q: string | undefined;
}

/** Shows a text in which all occurrences of the search text are highlighted. */
export function Highlighted({ text, q }: HighlightedProps) {
  return matchesIn(text, q).map(({ from, before, found }) => (
    <Fragment key={from}>
      {before}
      {found !== "" && <mark>{found}</mark>}
    </Fragment>
  ));
}

const LIVE_WORDS = {
  connecting: "Connecting…",
  live: "Updates live",
  waiting: "Reconnecting…",
} as const;

interface LiveBadgeProps {
  readonly state: keyof typeof LIVE_WORDS;
  readonly children?: ReactNode;
}

/**
 * Shows whether the event stream currently updates the page. On phones it appears only while updates are interrupted,
 * because "Live" beside the name of a subscription would read as the state of the subscription.
 */
export function LiveBadge({ state, children }: LiveBadgeProps) {
  const isUsual = state === "live" && !children;
  return (
    <Text
      size="sm"
      c="dimmed"
      component="output"
      className={isUsual ? "outcome unseen-on-phones" : "outcome"}
      data-state={state}
    >
      {children || LIVE_WORDS[state]}
    </Text>
  );
}
