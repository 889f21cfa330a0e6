import { Button, Group, Menu, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useCallback, useRef, useState } from "react";
import { useSearchParams } from "wouter";

import type { LiveState } from "../../../session/live.ts";
import { counted, number } from "../../../ui/format.ts";
import { notify } from "../../../ui/notify.ts";
import { saveAs } from "../../../ui/save-as.ts";
import { useIsNarrow } from "../../../ui/layout.tsx";
import { type FollowAttempts, useReader } from "../data/data.ts";
import { messageFilterOf } from "../data/filters.ts";
import { readMessages } from "../data/list-reads.ts";
import type { Subscription } from "../data/reads.ts";
import { ChartStrip, ListChart } from "../stats/over-time.tsx";
import { DeliveryPane } from "./delivery-detail.tsx";
import { EXPORTED_AT_MOST, exportRows, type Format, lineOfMessage } from "./export-rows.ts";
import { DeliveryFilters } from "./delivery-filters.tsx";
import { DeliveryList } from "./delivery-list.tsx";
import { ResendButton } from "./resend.tsx";

interface DeliveriesProps {
  readonly subscription: Subscription;
  readonly live: LiveState;
  readonly follow: FollowAttempts;
}

/**
 * Shows the events of a subscription with their deliveries. In a wide window the selected delivery stands beside
 * the list; in other windows it is a page of its own.
 */
export function Deliveries({ subscription, live, follow }: DeliveriesProps) {
  const [params, setParams] = useSearchParams();
  const [hasChart, { toggle }] = useDisclosure();
  const isWide = !useIsNarrow("xl");
  const open = isWide ? (params.get("open") ?? undefined) : undefined;
  const search = listSearch(params);
  const show = useCallback(
    (eventId: string | undefined) =>
      setParams(
        (before) => {
          const others = [...before].filter(([name]) => name !== "open");
          return [...others, ...(eventId === undefined ? [] : [["open", eventId]])];
        },
        { replace: true },
      ),
    [setParams],
  );
  return (
    <Stack gap="xs">
      <DeliveryFilters
        actions={
          <>
            <ExportMenu id={subscription.id} />
            <ResendButton subscription={subscription} />
          </>
        }
      />
      {hasChart && <ListChart subscription={subscription} />}
      <div className="split" data-open={open !== undefined || undefined}>
        {/* The `key` of the list makes React mount a new list when the filter changes. */}
        <DeliveryList
          key={search}
          {...{ subscription, live, follow, search, open }}
          onOpen={isWide ? show : undefined}
          above={<ChartStrip subscription={subscription} isOpen={hasChart} onToggle={toggle} />}
        />
        {open !== undefined && (
          <DeliveryPane id={subscription.id} eventId={open} onShow={show} key={open} />
        )}
      </div>
    </Stack>
  );
}

/** Names of the query parameters that do not change the content of the list. */
const BESIDE = ["stack", "open"];

function listSearch(params: URLSearchParams): string {
  return new URLSearchParams([...params].filter(([name]) => !BESIDE.includes(name))).toString();
}

/** Menu that exports the events that match the filter to a file. */
function ExportMenu({ id }: { readonly id: string }) {
  const reader = useReader();
  const [params] = useSearchParams();
  const [count, setCount] = useState<number>();
  const abort = useRef<AbortController>(null);
  const save = async (format: Format) => {
    const controller = new AbortController();
    abort.current = controller;
    setCount(0);
    try {
      // Excludes events that arrive during the export, because an event that moves within the list would be exported
      // twice.
      const filter = { until: new Date().toISOString(), ...messageFilterOf(params) };
      const made = await exportRows({
        format,
        lineOf: lineOfMessage,
        read: (cursor) => readMessages(reader, id, filter, { cursor }),
        onProgress: setCount,
        signal: controller.signal,
      });
      const type = format === "csv" ? "text/csv" : "application/json";
      saveAs(`events.${format}`, type, made.parts);
      const what = counted(made.count, "event");
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
        <Button variant="default">Export</Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>Filtered events, up to {number(EXPORTED_AT_MOST)}</Menu.Label>
        <Menu.Item onClick={() => void save("csv")}>CSV</Menu.Item>
        <Menu.Item onClick={() => void save("json")}>JSON</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
