import { Group, Text } from "@mantine/core";

import { counted, duration } from "../../ui/format.ts";
import { latenessOf, lettersOf } from "./concerns.ts";
import type { DispatcherState } from "./data.ts";

type Shard = DispatcherState["shards"][number];
const COLORS = ["blue", "teal", "grape", "orange", "cyan", "pink", "lime", "indigo"];

/**
 * Shows the shards at one glance: colour and letter say whose they are, a ring says that one is late. A list below says
 * the same in words.
 */
export function Shards({ state }: { readonly state: DispatcherState }) {
  const letters = lettersOf(state.dispatchers);
  const owners = [...letters.keys()];
  const colorOf = (id: string) => COLORS[owners.indexOf(id) % COLORS.length] ?? "gray";
  return (
    <>
      <div className="shards" aria-hidden>
        {state.shards.map((one) => (
          <div
            key={one.id}
            className="shard"
            data-late={latenessOf(one)}
            data-owned={one.dispatcher_id !== null}
            title={textOf(one, letters)}
            style={
              one.dispatcher_id === null
                ? {}
                : { background: `var(--mantine-color-${colorOf(one.dispatcher_id)}-light)` }
            }
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
        <summary>The same in words</summary>
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
