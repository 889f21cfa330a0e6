import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";

import { stateColor, Tag } from "../../../ui/badges.tsx";
import { duration, number, percent, sentence } from "../../../ui/format.ts";
import { NamedValue } from "../../../ui/layout.tsx";
import { Time } from "../../../ui/time.tsx";
import { useReader } from "../data/data.ts";
import { type Health, healthOptions, type Subscription } from "../data/reads.ts";
import { conditionOf } from "../data/subscription-words.ts";

/** Shows the state of a subscription; while deliveries fail in part, with their success rate. */
export function ConditionBadge({ subscription }: { readonly subscription: Subscription }) {
  const health = useQuery(healthOptions(useReader(), subscription.id)).data;
  const condition = conditionOf(subscription, health);
  const rate = condition === "degraded" ? health?.success_rate_1h : null;
  return (
    <Tag color={stateColor(condition)}>
      {sentence(condition)}
      {typeof rate === "number" && ` · ${percent(rate)}`}
    </Tag>
  );
}

interface HealthSummaryProps {
  readonly health: Health;
  readonly isActive: boolean;
  /** True if the page shows the length of the queue elsewhere, so that the summary leaves it out. */
  readonly isQueueSaid?: boolean;
  /** Additional values after the standard values. */
  readonly children?: ReactNode;
}

export function HealthSummary(props: HealthSummaryProps) {
  const { health, isActive, isQueueSaid = false, children } = props;
  const { success_rate_24h: rate, oldest_pending_age_s: age, pending, held } = health;
  return (
    <dl className="value-grid" data-columns={children === undefined ? undefined : 4}>
      <NamedValue name="Success, 24 h" hint={rate === null ? "No attempts yet" : "of all attempts"}>
        {rate === null ? "–" : percent(rate)}
      </NamedValue>
      {!isQueueSaid && (
        <NamedValue name={isActive ? "Pending" : "Held"} hint="events in the queue">
          {number(isActive ? pending : held)}
        </NamedValue>
      )}
      <NamedValue
        name="Oldest in queue"
        hint={age === null ? "Nothing waits" : "since it happened"}
      >
        {age === null ? "–" : duration(age)}
      </NamedValue>
      <NamedValue name="Last success">
        {health.last_success_at === null ? "Never" : <Time at={health.last_success_at} />}
      </NamedValue>
      {children}
    </dl>
  );
}
