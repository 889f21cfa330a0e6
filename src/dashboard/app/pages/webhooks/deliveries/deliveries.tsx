import { Button, Group, Menu, SegmentedControl, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useRef, useState } from "react";
import { useSearchParams } from "wouter";

import type { LiveState } from "../../../session/live.ts";
import { counted, number } from "../../../ui/format.ts";
import { notify } from "../../../ui/notify.ts";
import { saveAs } from "../../../ui/save-as.ts";
import { useIsNarrow } from "../../../ui/layout.tsx";
import { type FollowAttempts, useReader } from "../data/data.ts";
import { filterOf, messageFilterOf } from "../data/filters.ts";
import { readAttempts, readMessages } from "../data/list-reads.ts";
import type { Subscription } from "../data/reads.ts";
import { ChartToggle, ListChart } from "../stats/over-time.tsx";
import { AttemptFilters } from "./attempt-filters.tsx";
import { AttemptList } from "./attempt-list.tsx";
import {
  EXPORTED_AT_MOST,
  exportRows,
  type Format,
  lineOfAttempt,
  lineOfMessage,
} from "./export-rows.ts";
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

interface ExportMenuProps {
  readonly id: string;
  readonly isByAttempt: boolean;
}

/** Menu that exports the rows that match the filter to a file. */
function ExportMenu({ id, isByAttempt }: ExportMenuProps) {
  const reader = useReader();
  const [params] = useSearchParams();
  const [count, setCount] = useState<number>();
  const abort = useRef<AbortController>(null);
  const save = async (format: Format) => {
    const controller = new AbortController();
    abort.current = controller;
    setCount(0);
    const given = { format, onProgress: setCount, signal: controller.signal };
    try {
      const filter = filterOf(params);
      // Excludes events that arrive during the export, because an event that moves within the list would be exported
      // twice.
      const messages = { until: new Date().toISOString(), ...messageFilterOf(params) };
      const made = isByAttempt
        ? await exportRows({
            ...given,
            lineOf: lineOfAttempt,
            read: (cursor) => readAttempts(reader, id, filter, cursor),
          })
        : await exportRows({
            ...given,
            lineOf: lineOfMessage,
            read: (cursor) => readMessages(reader, id, messages, { cursor }),
          });
      const type = format === "csv" ? "text/csv" : "application/json";
      saveAs(`${isByAttempt ? "attempts" : "events"}.${format}`, type, made.parts);
      const what = counted(made.count, isByAttempt ? "attempt" : "event");
      notify.done(
        made.isCut
          ? `The newest ${what} are saved; there are more. Choose a time for the others.`
          : `${what} saved.`,
      );
    } catch (error) {
      if (!controller.signal.aborted) notify.failed(error);
    } finally {
      setCount(undefined);
    }
  };
  if (count !== undefined)
    return (
      <Group gap={4}>
        <Text size="xs" aria-live="polite">
          {number(count)} read …
        </Text>
        <Button size="xs" variant="subtle" onClick={() => abort.current?.abort()}>
          Stop
        </Button>
      </Group>
    );
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button variant="default">Export …</Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>What is filtered, up to {number(EXPORTED_AT_MOST)}</Menu.Label>
        <Menu.Item onClick={() => void save("csv")}>CSV</Menu.Item>
        <Menu.Item onClick={() => void save("json")}>JSON</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
