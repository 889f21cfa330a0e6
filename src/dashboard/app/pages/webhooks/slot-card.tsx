import { Anchor, Group, Paper, Skeleton, Stack, Text, Title } from "@mantine/core";
import { Link } from "wouter";

import { Sparkline } from "../../ui/sparkline.tsx";
import { StateBadge } from "../../ui/state-badge.tsx";
import { Time } from "../../ui/time.tsx";
import { counted } from "../../ui/words.ts";
import { useHealth, useStats } from "./data.ts";
import type { Subscription } from "./model.ts";
import { disabledBecause } from "./faults.ts";
import { HealthFigures } from "./health-figures.tsx";
import { kindTitle } from "./kinds.ts";
import { eventsInWords } from "./subscription-words.ts";

/** A subscription at a glance; its label leads to all of it. */
export function SlotCard({ subscription }: { readonly subscription: Subscription }) {
  const { id, label, webhook_url: url, delivery_kind: kind } = subscription;
  const health = useHealth(id).data;
  return (
    <Paper withBorder p="lg" component="section" aria-labelledby={`slot-${id}`}>
      <Stack gap="md">
        <div>
          <Group justify="space-between" gap="xs" wrap="nowrap" align="flex-start">
            <Title order={2} size="h4" id={`slot-${id}`} className="shrinks">
              <Anchor component={Link} href={`/webhooks/${id}`} inherit>
                {label}
              </Anchor>
            </Title>
            <StateBadge state={subscription.is_active ? "active" : "disabled"} />
          </Group>
          <Text size="sm" ff="monospace" mt={4} lineClamp={2}>
            {url}
          </Text>
          <Text size="sm" c="dimmed" mt={4}>
            {kindTitle(kind)} · {eventsInWords(subscription)}
          </Text>
        </div>
        <SlotState subscription={subscription} blockedBy={health?.blocked_by ?? null} />
        {health === undefined ? (
          <Skeleton height={104} />
        ) : (
          <HealthFigures health={health} isActive={subscription.is_active} />
        )}
        <DaySparkline id={id} />
        <Group gap="md">
          <Anchor component={Link} href={`/webhooks/${id}?tab=deliveries`} size="sm">
            Deliveries
          </Anchor>
          <Anchor component={Link} href={`/webhooks/${id}?tab=settings`} size="sm">
            Settings
          </Anchor>
        </Group>
      </Stack>
    </Paper>
  );
}

/** What is out of the ordinary; mostly nothing. */
function SlotState({
  subscription,
  blockedBy,
}: {
  readonly subscription: Subscription;
  readonly blockedBy: string | null;
}) {
  if (!subscription.is_active)
    return (
      <Text size="sm">
        Disabled <Time at={subscription.disabled_at} />: {disabledBecause(subscription)}. New events
        are held.
      </Text>
    );
  if (blockedBy === null) return null;
  return (
    <Text size="sm">
      Blocked by{" "}
      <Anchor
        component={Link}
        href={`/webhooks/${subscription.id}/deliveries/${blockedBy}`}
        inherit
        underline="always"
      >
        an event that waits for its retry
      </Anchor>
      .
    </Text>
  );
}

function DaySparkline({ id }: { readonly id: string }) {
  const stats = useStats(id, "24h").data;
  if (stats === undefined) return <Skeleton height={56} />;
  const bars = stats.points.map(({ successes, failures }) => ({ good: successes, bad: failures }));
  const good = bars.reduce((sum, bar) => sum + bar.good, 0);
  const bad = bars.reduce((sum, bar) => sum + bar.bad, 0);
  const words = `${counted(good, "success", "successes")}, ${counted(bad, "failure")}`;
  return (
    <div>
      <Sparkline bars={bars} label={`Attempts of the last 24 hours: ${words}`} />
      <Text size="xs" c="dimmed" mt={4}>
        Last 24 hours: {words}
      </Text>
    </div>
  );
}
