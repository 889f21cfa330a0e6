import { Anchor, Group, SegmentedControl, Text } from "@mantine/core";
import { Link, useSearchParams } from "wouter";

import { useApi } from "../../session/session.tsx";
import { duration, number } from "../../ui/format.ts";
import { TableList } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { Panel } from "../../ui/panel.tsx";
import { StateBadge, Tag } from "../../ui/badges.tsx";
import { Time } from "../../ui/time.tsx";
import { useNow } from "../../ui/use-time.ts";
import { diagnosisOf } from "../webhooks/deliveries/attempt-words.ts";
import { lettersOf } from "./concerns.ts";
import { type Backlog, backlogsOptions, type DispatcherState } from "./data.ts";
import { Dimmed } from "../../ui/layout.tsx";

/** Interval in ms after which the queue ages are rendered again. The ages grow even when no new data arrives. */
const TICK_MS = 5_000;

/** Largest queue length that the server counts exactly. It estimates the length of longer queues. */
const MAX_COUNTED = 1_000;

function queuedInWords(queued: number): string {
  return queued > MAX_COUNTED ? `about ${number(queued)}` : number(queued);
}

/**
 * Lists the subscriptions that have queued events, with the number of events, the age of the oldest event, and
 * a link to the subscription.
 */
export function Backlogs({ dispatchers }: Pick<DispatcherState, "dispatchers">) {
  const [params, setParams] = useSearchParams();
  const order = params.get("order") === "age" ? "age" : "depth";
  const backlogs = useList(backlogsOptions(useApi(), order));
  const letters = lettersOf(dispatchers);
  const now = useNow(TICK_MS);
  return (
    <Panel title="Who is behind">
      <Group justify="space-between" mb="sm" gap="sm">
        <Text size="sm" c="dimmed">
          Subscriptions with a backlog.
        </Text>
        <SegmentedControl
          size="xs"
          aria-label="Order"
          value={order}
          onChange={(next) => setParams(next === "age" ? { order: next } : {}, { replace: true })}
          data={[
            { value: "depth", label: "Most events" },
            { value: "age", label: "Longest wait" },
          ]}
        />
      </Group>
      <TableList
        list={backlogs}
        noun={["subscription", "subscriptions"]}
        empty={
          <Text size="sm" c="dimmed">
            Nobody: nothing is queued.
          </Text>
        }
        table={{
          caption: "Subscriptions with queued events, the worst first",
          columns: (one) => ({
            Subscription: <Subscription backlog={one} />,
            Queued: <span className="tabular">{queuedInWords(one.queued)}</span>,
            "Oldest event": `${duration(Math.max(0, now - Date.parse(one.oldest_recorded_at)) / 1_000)} old`,
            State: <State backlog={one} />,
            "Last error": <LastError error={one.last_error} />,
            Shard: `${one.shard}, ${holderOf(one, letters)}`,
          }),
        }}
      />
    </Panel>
  );
}

interface BacklogProps {
  readonly backlog: Backlog;
}

function Subscription({ backlog }: BacklogProps) {
  const { partner_id: partner, partner_name: name, label, subscription_id: id } = backlog;
  return (
    <>
      <Anchor component={Link} href={`/companies/${partner}/webhooks/${id}`} size="sm" fw={600}>
        {label}
      </Anchor>
      <Dimmed>{name}</Dimmed>
    </>
  );
}

function State({ backlog: { is_active: isActive, due_at: dueAt } }: BacklogProps) {
  if (!isActive) return <StateBadge state="disabled" />;
  if (dueAt === null) return <Text size="sm">Under way</Text>;
  return (
    <Tag color="yellow">
      Retry <Time at={dueAt} mayBeAhead />
    </Tag>
  );
}

function LastError({ error }: { readonly error: Backlog["last_error"] }) {
  if (error === null) return "None";
  const { title } = diagnosisOf({ outcome: "retry", ...error });
  return (
    <>
      {title}
      <Dimmed>
        <Time at={error.at} />
      </Dimmed>
    </>
  );
}

function holderOf({ dispatcher_id: id }: Backlog, letters: ReadonlyMap<string, string>): string {
  if (id === null) return "no dispatcher";
  return `dispatcher ${letters.get(id) ?? "that just came"}`;
}
