import { Anchor, NativeSelect, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { Link } from "wouter";

import { Loaded } from "../../ui/states.tsx";
import { useSubscriptions } from "../webhooks/data/data.ts";
import type { CatalogEvent, Subscription } from "../webhooks/data/reads.ts";
import { TestEvent } from "../webhooks/test-event.tsx";
import { reachOf } from "./reach.ts";

interface SendProps {
  readonly event: CatalogEvent;
}

/** Sends the event to a subscription that is chosen, and shows what was answered. */
export function SendAsTest({ event }: SendProps) {
  return (
    <Loaded query={useSubscriptions()}>
      {({ data }) => <ToOne event={event} subscriptions={data} />}
    </Loaded>
  );
}

function ToOne({ event, subscriptions }: SendProps & { subscriptions: readonly Subscription[] }) {
  const [chosen, setChosen] = useState("");
  const one =
    subscriptions.find(({ id }) => id === chosen) ??
    subscriptions.find(({ is_active: isActive }) => isActive) ??
    subscriptions[0];
  if (one === undefined)
    return (
      <Text size="sm">
        There is no subscription yet.{" "}
        <Anchor component={Link} href="/webhooks/new" inherit>
          Set one up
        </Anchor>
      </Text>
    );
  return (
    <Stack gap="sm">
      <NativeSelect
        label="Subscription"
        maw={420}
        data={subscriptions.map(({ id, label }) => ({ value: id, label }))}
        value={one.id}
        onChange={(change) => setChosen(change.currentTarget.value)}
      />
      <Text size="sm">{reachOf(event, one)}</Text>
      {one.is_active ? (
        <TestEvent key={one.id} id={one.id} event={event.value} />
      ) : (
        <Text size="sm">
          It is disabled, and sends nothing until it is enabled.{" "}
          <Anchor component={Link} href={`/webhooks/${one.id}`} inherit>
            Look at it
          </Anchor>
        </Text>
      )}
    </Stack>
  );
}
