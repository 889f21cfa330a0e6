import { Group, Paper, SimpleGrid, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";

import type { LiveState } from "../../session/live.ts";
import { Verdict } from "../../ui/badges.tsx";
import { counted, duration, number } from "../../ui/format.ts";
import { Dimmed, PageHeader, Panel } from "../../ui/layout.tsx";
import { Loaded } from "../../ui/states.tsx";
import { useNow } from "../../ui/time.tsx";
import {
  Backlogs,
  BlockedHeads,
  DisabledSubscriptions,
  Dispatchers,
} from "./dispatcher-tables.tsx";
import { concernsOf, latenessOf, lettersOf } from "./concerns.ts";
import { type DispatcherState, useDispatcherState } from "./data.ts";
import "./dispatcher.css";

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
const tens = (seconds: number) => Math.floor(seconds / 10) * 10;

function Freshness({ live, at }: { readonly live: LiveState; readonly at: number }) {
  const now = useNow(1_000);
  if (at === 0) return null;
  const isStale = now - at > STALE_MS;
  return (
    <Text size="sm" c="dimmed" component="output" className="freshness" data-stale={isStale}>
      {isStale
        ? `Not live: as it was ${duration(tens((now - at) / 1_000))} ago. ${live === "live" ? "Waiting for news." : "Connecting again."}`
        : "Updates live"}
    </Text>
  );
}

interface StateProps {
  readonly state: DispatcherState;
}

function Overview({ state, at }: StateProps & { readonly at: number }) {
  const { blocked_heads: heads, disabled_subscriptions: disabled, dispatchers } = state;
  return (
    <Stack gap="lg">
      <Concerns concerns={concernsOf(state, at)} />
      <Totals state={state} />
      <Backlogs dispatchers={dispatchers} />
      <Panel title="Blocking events" count={heads.length}>
        <BlockedHeads rows={heads} />
      </Panel>
      <Panel title="Disabled subscriptions" count={disabled.length}>
        <DisabledSubscriptions rows={disabled} />
      </Panel>
      <Panel title="Shards">
        <Shards state={state} />
      </Panel>
      <Panel title="Dispatchers" count={dispatchers.length}>
        <Dispatchers rows={dispatchers} />
      </Panel>
    </Stack>
  );
}

function Concerns({ concerns }: { readonly concerns: readonly string[] }) {
  const isWell = concerns.length === 0;
  return (
    <Verdict
      isWell={isWell}
      title={isWell ? "All is well" : `${counted(concerns.length, "thing")} to look at`}
    >
      {isWell
        ? "Every shard has an owner, nothing is late, and no endpoint is failing."
        : concerns.join(" ")}
    </Verdict>
  );
}

function Totals({ state: { lag, mails, dispatchers, shards, truncated } }: StateProps) {
  return (
    <SimpleGrid cols={{ base: 2, sm: 4 }}>
      <Total title="Lag" value={duration(lag.lag_s)}>
        age of the oldest event that could be sent
      </Total>
      <Total title="Queued events" value={number(lag.entries) + (truncated ? "+" : "")}>
        of {counted(lag.subscriptions, "subscription")}
      </Total>
      <Total title="Queued mails" value={number(mails.queued)}>
        codes, notices, warnings
      </Total>
      <Total title="Dispatchers" value={number(dispatchers.length)}>
        share the {shards.length} shards
      </Total>
    </SimpleGrid>
  );
}

interface TotalProps {
  readonly title: string;
  readonly value: string;
  readonly children: ReactNode;
}

function Total({ title, value, children }: TotalProps) {
  return (
    <Paper withBorder p="md">
      <Text size="sm" c="dimmed">
        {title}
      </Text>
      <Text className="total">{value}</Text>
      <Dimmed>{children}</Dimmed>
    </Paper>
  );
}

type Shard = DispatcherState["shards"][number];
/** Number of shard colours in the style sheet. More dispatchers than colours are distinguished by their letters. */
const SHARD_COLORS = 8;

/**
 * Shows all shards as a grid. Colour and letter of a shard identify its dispatcher, and a ring marks a late
 * shard. A text list below the grid contains the same information.
 */
function Shards({ state }: { readonly state: DispatcherState }) {
  const letters = lettersOf(state.dispatchers);
  const owners = [...letters.keys()];
  const colorIndexOf = (id: string | null) =>
    id === null ? "none" : owners.indexOf(id) % SHARD_COLORS;
  return (
    <>
      <div className="shards" aria-hidden>
        {state.shards.map((one) => (
          <div
            key={one.id}
            className="shard"
            data-late={latenessOf(one)}
            data-ground={colorIndexOf(one.dispatcher_id)}
            title={textOf(one, letters)}
          >
            <span>{one.id}</span>
            <span className="shard-owner">{letterOf(one, letters) ?? "–"}</span>
          </div>
        ))}
      </div>
      <Group gap="md" mt="sm">
        <Text size="sm" c="dimmed">
          Each shard carries a share of the subscriptions. The letter is its dispatcher; a dashed
          one has none, a ringed one is late.
        </Text>
      </Group>
      <details className="shard-list">
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
      : `${counted(shard.subscriptions, "subscription")} with events, lag ${duration(shard.lag_s)}`;
  return `Shard ${shard.id}: ${owner}, ${queue}`;
}
