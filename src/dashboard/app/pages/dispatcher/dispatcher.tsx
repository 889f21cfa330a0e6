import { Anchor, Paper, SimpleGrid, Stack, Text } from "@mantine/core";
import type { CSSProperties, ReactNode } from "react";

import type { LiveState } from "../../session/live.ts";
import { LiveBadge, StateSummary } from "../../ui/badges.tsx";
import { counted, duration, number } from "../../ui/format.ts";
import { NamedValue, PageHeader, Panel, useIsNarrow } from "../../ui/layout.tsx";
import { Loaded } from "../../ui/states.tsx";
import { useNow } from "../../ui/time.tsx";
import {
  Backlogs,
  BlockedHeads,
  DisabledSubscriptions,
  Dispatchers,
  QuarantinedLanes,
} from "./dispatcher-tables.tsx";
import { latenessOf, lettersOf, PANELS, type Problem, problemsOf, targetOf } from "./problems.ts";
import { type DispatcherState, useDispatcherState } from "./data.ts";
import { MAX_COUNTED } from "../webhooks/data/subscription-words.ts";
import css from "./dispatcher.module.css";

/**
 * Maximum age of the shown state. The server sends the state every two seconds, so an older state is marked as
 * stale.
 */
const STALE_MS = 10_000;

export function Page() {
  const { state, live } = useDispatcherState();
  const { dataUpdatedAt: at } = state;
  return (
    <>
      <PageHeader
        title="Dispatcher"
        description="Delivers every event to the partners' endpoints, in order."
        actions={<Freshness live={live} at={at} />}
      />
      <Loaded query={state}>{(data) => <Overview state={data} at={at} />}</Loaded>
    </>
  );
}

/** Rounds an age down to full ten seconds, so that screen readers do not announce the age every second. */
const roundedToTens = (seconds: number) => Math.floor(seconds / 10) * 10;

function Freshness({ live, at }: { readonly live: LiveState; readonly at: number }) {
  const now = useNow(1_000);
  if (at === 0) return null;
  const isStale = now - at > STALE_MS;
  return (
    <LiveBadge state={isStale ? "waiting" : "live"}>
      {isStale &&
        `Not live: data is ${duration(roundedToTens((now - at) / 1_000))} old. ${live === "live" ? "Waiting for an update." : "Reconnecting."}`}
    </LiveBadge>
  );
}

interface StateProps {
  readonly state: DispatcherState;
}

function Overview({ state, at }: StateProps & { readonly at: number }) {
  const { blocked_heads: heads, disabled_subscriptions: disabled, dispatchers } = state;
  const { quarantined_lanes: quarantined } = state;
  const problems = problemsOf(state, at);
  const hasProblem = (panel: string) => problems.some((one) => one.panel === panel);
  return (
    <Stack gap="lg">
      <Problems problems={problems} />
      <Totals state={state} />
      <Backlogs dispatchers={dispatchers} />
      <Panel title={PANELS.blocked} id={targetOf(PANELS.blocked)} count={heads.length}>
        <BlockedHeads rows={heads} />
      </Panel>
      <Panel title={PANELS.disabled} id={targetOf(PANELS.disabled)} count={disabled.length}>
        <DisabledSubscriptions rows={disabled} />
      </Panel>
      {quarantined.length > 0 && (
        <Panel
          title={PANELS.quarantined}
          id={targetOf(PANELS.quarantined)}
          count={quarantined.length}
        >
          <QuarantinedLanes rows={quarantined} />
        </Panel>
      )}
      <Panel
        title={PANELS.dispatchers}
        id={targetOf(PANELS.dispatchers)}
        count={dispatchers.length}
      >
        <Folded summary="Show the dispatchers" isOpen={hasProblem(PANELS.dispatchers)}>
          <Dispatchers rows={dispatchers} />
        </Folded>
      </Panel>
      <Panel title={PANELS.shards} id={targetOf(PANELS.shards)}>
        <Folded summary="Show the shards" isOpen={hasProblem(PANELS.shards)}>
          <Shards state={state} />
        </Folded>
      </Panel>
    </Stack>
  );
}

interface FoldedProps {
  readonly summary: string;
  /** Whether the details are open at first, because they explain a problem. */
  readonly isOpen: boolean;
  readonly children: ReactNode;
}

/** Folds details on phones, where the queues would otherwise be far above the end of the page. */
function Folded({ summary, isOpen, children }: FoldedProps) {
  if (!useIsNarrow("sm")) return children;
  return (
    <details className={css.folded} open={isOpen}>
      <summary>{summary}</summary>
      {children}
    </details>
  );
}

function Problems({ problems }: { readonly problems: readonly Problem[] }) {
  const isWell = problems.length === 0;
  return (
    <StateSummary isWell={isWell} title={isWell ? "No problems" : "Needs attention"}>
      {isWell
        ? "Every shard has a dispatcher, no event is late, and no endpoint is failing."
        : problems.map(({ text, panel }) => (
            <span key={text} className={css.problem}>
              {text}{" "}
              {panel !== undefined && (
                <Anchor href={`#${targetOf(panel)}`} size="sm" underline="always">
                  Show<span className="unseen"> {panel}</span>
                </Anchor>
              )}
            </span>
          ))}
    </StateSummary>
  );
}

function Totals({ state: { lag, mails, dispatchers, shards } }: StateProps) {
  return (
    <Paper withBorder p="md" component="dl" className="value-grid">
      <NamedValue name="Delay" hint="of the oldest event that could be sent; retries do not count">
        {duration(lag.lag_s)}
      </NamedValue>
      <NamedValue name="Queued events" hint={`of ${counted(lag.subscriptions, "subscription")}`}>
        {number(lag.entries) + (lag.entries >= MAX_COUNTED ? "+" : "")}
      </NamedValue>
      <NamedValue name="Queued mails" hint="codes, notifications and alerts">
        {number(mails.queued)}
      </NamedValue>
      <NamedValue name="Dispatchers" hint={`share the ${shards.length} shards`}>
        {number(dispatchers.length)}
      </NamedValue>
    </Paper>
  );
}

type Shard = DispatcherState["shards"][number];

/**
 * Returns a hue for a dispatcher. Steps of the golden angle give successive dispatchers different hues. Two
 * dispatchers with similar hues can be told apart by their letters.
 */
const hueOf = (index: number): CSSProperties & { readonly "--hue": number } => ({
  "--hue": (210 + index * 137) % 360,
});

/**
 * Shows all shards as a grid. Colour and letter of a shard identify its dispatcher, and a ring marks a shard with
 * late events. A text list below the grid contains the same information.
 */
function Shards({ state }: { readonly state: DispatcherState }) {
  const letters = lettersOf(state.dispatchers);
  const owners = [...letters.keys()];
  return (
    <>
      <SimpleGrid cols={{ base: 8, sm: 16 }} spacing={4} verticalSpacing={4} aria-hidden>
        {state.shards.map((one) => (
          <div
            key={one.id}
            className={css.shard}
            data-late={latenessOf(one)}
            data-owned={one.dispatcher_id !== null || undefined}
            style={hueOf(owners.indexOf(one.dispatcher_id ?? ""))}
            title={textOf(one, letters)}
          >
            <span>{one.id}</span>
            <span className={css.shardOwner}>{letterOf(one, letters) ?? "–"}</span>
          </div>
        ))}
      </SimpleGrid>
      <Text size="sm" c="dimmed" mt="sm">
        Each shard holds a part of the subscriptions. The letter names its dispatcher. A dashed
        shard has no dispatcher; a ringed shard has late events.
      </Text>
      <details className={css.shardList}>
        <summary>Show as text</summary>
        <ul>
          {state.shards.map((one) => (
            <li key={one.id}>{textOf(one, letters)}</li>
          ))}
        </ul>
      </details>
    </>
  );
}

function letterOf({ dispatcher_id: id }: Shard, letters: ReadonlyMap<string, string>) {
  return id === null ? undefined : letters.get(id);
}

function textOf(shard: Shard, letters: ReadonlyMap<string, string>): string {
  const letter = letterOf(shard, letters);
  const owner = letter === undefined ? "no owner" : `dispatcher ${letter}`;
  const queue =
    shard.subscriptions === 0
      ? "nothing queued"
      : `${counted(shard.subscriptions, "subscription")} with events, delay ${duration(shard.lag_s)}`;
  return `Shard ${shard.id}: ${owner}, ${queue}`;
}
