import { Group, Text } from "@mantine/core";

import { counted, duration } from "../../ui/format.ts";
import { latenessOf, lettersOf } from "./concerns.ts";
import type { DispatcherState } from "./data.ts";

type Shard = DispatcherState["shards"][number];
/** As many grounds as the style sheet has; more dispatchers share them, and the letter tells them apart. */
const GROUNDS = 8;

/**
 * Shows the shards at one glance: colour and letter say whose they are, a ring says that one is late. A list below says
 * the same in words.
 */
export function Shards({ state }: { readonly state: DispatcherState }) {
  const letters = lettersOf(state.dispatchers);
  const owners = [...letters.keys()];
  const groundOf = (id: string | null) => (id === null ? "none" : owners.indexOf(id) % GROUNDS);
  return (
    <>
      <div className="shards" aria-hidden>
        {state.shards.map((one) => (
          <div
            key={one.id}
            className="shard"
            data-late={latenessOf(one)}
            data-ground={groundOf(one.dispatcher_id)}
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
