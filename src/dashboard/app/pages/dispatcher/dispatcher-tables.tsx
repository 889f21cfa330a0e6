import { Anchor, Button, Group, Text } from "@mantine/core";
import { useState, type ReactNode } from "react";
import { Link } from "wouter";

import { Copy } from "../../ui/copy.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { counted, duration, number, sentence } from "../../ui/format.ts";
import { ExactTime, Time } from "../../ui/time.tsx";
import { usePartnerName } from "../companies/data.ts";
import { lettersOf } from "./concerns.ts";
import type { DispatcherState } from "./data.ts";
import { CellText, Dimmed } from "../../ui/layout.tsx";

interface HeadsProps {
  readonly rows: DispatcherState["blocked_heads"];
}

/**
 * Number of blocked deliveries in the table, the oldest first. A single failing receiver may block hundreds of
 * deliveries, so the others appear on request.
 */
const HEADS_SHOWN = 10;

export function BlockedHeads({ rows }: HeadsProps) {
  const [isWhole, setWhole] = useState(false);
  if (rows.length === 0)
    return <Nothing>No event waits for a retry: every receiver took what it was sent.</Nothing>;
  if (rows.length <= HEADS_SHOWN || isWhole) return <HeadsTable rows={rows} />;
  return (
    <>
      <HeadsTable rows={rows.slice(0, HEADS_SHOWN)} />
      <Button variant="subtle" mt="xs" onClick={() => setWhole(true)}>
        Show all {rows.length}
      </Button>
    </>
  );
}

function HeadsTable({ rows }: HeadsProps) {
  const partner = usePartnerName();
  return (
    <DataTable
      caption="Events that failed and hold back those behind them"
      rows={rows}
      rowKey={(one) => `${one.subscription_id}:${one.sequence}`}
      columns={(one) => ({
        Partner: <CellText title={partner(one.partner_id)} />,
        Event: (
          <>
            <Anchor
              component={Link}
              href={`/companies/${one.partner_id}/webhooks/${one.subscription_id}/deliveries/${one.event_id}`}
              size="sm"
            >
              {one.event}
            </Anchor>
            <Id id={one.event_id} label="Copy the event's id" />
          </>
        ),
        Subscription: (
          <SubscriptionLink partnerId={one.partner_id} id={one.subscription_id}>
            Open
          </SubscriptionLink>
        ),
        "Next attempt": `${one.attempt} of 4`,
        Due: <Time at={one.due_at} mayBeAhead />,
        Recorded: <Time at={one.recorded_at} />,
      })}
    />
  );
}

const REASONS: Readonly<Record<string, string>> = {
  consecutive_failures: "Too many consecutive failures",
  manual: "Disabled by hand",
};

interface DisabledProps {
  readonly rows: DispatcherState["disabled_subscriptions"];
}

export function DisabledSubscriptions({ rows }: DisabledProps) {
  const partner = usePartnerName();
  if (rows.length === 0) return <Nothing>Every subscription is active.</Nothing>;
  return (
    <DataTable
      caption="Subscriptions that are disabled, the last ones first"
      rows={rows}
      rowKey={(one) => one.id}
      columns={(one) => ({
        Label: (
          <SubscriptionLink partnerId={one.partner_id} id={one.id}>
            {one.label}
          </SubscriptionLink>
        ),
        Partner: partner(one.partner_id),
        Why: `${REASONS[one.disabled_reason] ?? sentence(one.disabled_reason)}${one.consecutive_failure_count > 0 ? ` (${one.consecutive_failure_count})` : ""}`,
        Since: <ExactTime at={one.disabled_at} />,
      })}
    />
  );
}

export function Dispatchers({ rows }: { readonly rows: DispatcherState["dispatchers"] }) {
  const letters = lettersOf(rows);
  if (rows.length === 0)
    return (
      <Nothing>
        None runs. Start one with <code>bun run dispatcher</code>; it takes the shards within
        seconds.
      </Nothing>
    );
  return (
    <DataTable
      caption="Dispatchers that run"
      rows={rows}
      rowKey={(one) => one.id}
      columns={(one) => ({
        Dispatcher: <CellText title={letters.get(one.id)} />,
        Id: <Id id={one.id} label="Copy the dispatcher's id" />,
        "Running since": <ExactTime at={one.started_at} />,
        "Last sign of life": `${duration(one.silent_ms / 1_000)} ago`,
        Holds: (
          <>
            {counted(one.shards, "shard")}
            <Dimmed>
              {one.subscriptions === 0
                ? "nothing queued"
                : `${counted(one.subscriptions, "subscription")} with events`}
            </Dimmed>
          </>
        ),
        Lag: duration(one.lag_s),
        Memory: one.memory_mb === null ? "Unknown" : `${number(one.memory_mb)} MiB`,
      })}
    />
  );
}

interface SubscriptionLinkProps {
  readonly partnerId: number;
  readonly id: string;
  readonly children: ReactNode;
}

/** Links to a subscription's page as its partner sees it. The tooltip shows the subscription id. */
function SubscriptionLink({ partnerId, id, children }: SubscriptionLinkProps) {
  return (
    <Anchor
      component={Link}
      href={`/companies/${partnerId}/webhooks/${id}`}
      size="sm"
      fw={600}
      title={id}
    >
      {children}
    </Anchor>
  );
}

function Nothing({ children }: { readonly children: ReactNode }) {
  return (
    <Text size="sm" c="dimmed">
      {children}
    </Text>
  );
}

function Id({ id, label }: { readonly id: string; readonly label: string }) {
  return (
    <Group gap={2} wrap="nowrap">
      {/* Shows the last 8 characters of the id. Ids begin with a timestamp, so the first characters of many
          ids are equal. */}
      <Text size="xs" c="dimmed" ff="monospace" title={id} className="one-line">
        …{id.slice(-8)}
      </Text>
      <Copy value={id} label={label} />
    </Group>
  );
}
