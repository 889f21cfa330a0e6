import { Group, SegmentedControl, Stack } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useSearchParams } from "wouter";

import type { LiveState } from "../../../session/live.ts";
import { useIsNarrow } from "../../../ui/use-is-narrow.ts";
import { AttemptFilters } from "./attempt-filters.tsx";
import { AttemptList } from "./attempt-list.tsx";
import type { FollowAttempts } from "../data/data.ts";
import type { Subscription } from "../data/reads.ts";
import { ExportMenu } from "./export-menu.tsx";
import { ChartToggle, ListChart } from "../stats/over-time.tsx";
import { MessageFilters } from "./message-filters.tsx";
import { MessageList } from "./message-list.tsx";
import { RecoverButton } from "./redeliver.tsx";

interface DeliveriesProps {
  readonly subscription: Subscription;
  readonly live: LiveState;
  readonly follow: FollowAttempts;
}

/** Shows the deliveries of a subscription as a list of events or as a list of attempts. */
export function Deliveries({ subscription, live, follow }: DeliveriesProps) {
  const [params, setParams] = useSearchParams();
  const search = listSearch(params);
  const isByAttempt = params.get("view") === "attempts";
  const isWide = !useIsNarrow("sm");
  // Hides the chart initially for a disabled subscription, because the banner already takes the space above the list.
  const [hasChart, { toggle: toggleChart }] = useDisclosure(isWide && subscription.is_active);
  const chart = hasChart && <ListChart subscription={subscription} />;
  const head = (
    <Group gap="xs" justify="space-between">
      <Group gap="xs">
        <SegmentedControl
          aria-label="One row for each"
          data={[
            { value: "messages", label: "Events" },
            { value: "attempts", label: "Attempts" },
          ]}
          value={isByAttempt ? "attempts" : "messages"}
          onChange={(view) => setParams(viewParams(params, view))}
        />
        <ChartToggle isOpen={hasChart} onToggle={toggleChart} />
      </Group>
      <Group gap="xs">
        <ExportMenu id={subscription.id} isByAttempt={isByAttempt} />
        <RecoverButton subscription={subscription} />
      </Group>
    </Group>
  );
  // The `key` of the list makes React mount a new list when the filter changes.
  return (
    <Stack gap="md">
      {head}
      {isByAttempt ? (
        <>
          <AttemptFilters />
          {chart}
          <AttemptList key={search} id={subscription.id} {...{ live, follow, search }} />
        </>
      ) : (
        <>
          <MessageFilters />
          {chart}
          <MessageList key={search} {...{ subscription, live, follow, search }} />
        </>
      )}
    </Stack>
  );
}

/** Returns the query parameters that change the content of the list, which are all except the stacking of the chart. */
function listSearch(params: URLSearchParams): string {
  return new URLSearchParams([...params].filter(([name]) => name !== "stack")).toString();
}

/**
 * Query parameters that both the event list and the attempt list support. They are kept when the user switches
 * between the lists.
 */
const SHARED = ["event", "event_id", "outcome", "since", "until", "stack"];

function viewParams(params: URLSearchParams, view: string): Record<string, string> {
  const kept = [...params].filter(([name]) => SHARED.includes(name));
  return {
    tab: "deliveries",
    ...(view === "attempts" && { view }),
    ...Object.fromEntries(kept),
  };
}
