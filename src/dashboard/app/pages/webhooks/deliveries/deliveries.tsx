import { Stack } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useCallback } from "react";
import { useSearchParams } from "wouter";

import type { LiveState } from "../../../session/live.ts";
import { ExportMenu } from "../../../ui/export-menu.tsx";
import type { Line } from "../../../ui/export-rows.ts";
import { useIsNarrow } from "../../../ui/layout.tsx";
import { type FollowAttempts, useReader } from "../data/data.ts";
import { messageFilterOf } from "../data/filters.ts";
import { type Message, readMessages } from "../data/list-reads.ts";
import type { SubscriptionProps } from "../data/reads.ts";
import { ChartStrip, ListChart } from "../stats/over-time.tsx";
import { DeliveryPane } from "./delivery-detail.tsx";
import { DeliveryFilters } from "./delivery-filters.tsx";
import { DeliveryList } from "./delivery-list.tsx";
import { ResendButton } from "./resend.tsx";
import css from "./deliveries.module.css";

interface DeliveriesProps extends SubscriptionProps {
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
  const reader = useReader();
  const exported = {
    // Excludes events that arrive during the export, because an event that moves within the list would be exported
    // twice.
    start: () => {
      const filter = { until: new Date().toISOString(), ...messageFilterOf(params) };
      return (cursor: string | undefined) =>
        readMessages(reader, subscription.id, filter, { cursor });
    },
    lineOf: lineOfMessage,
  };
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
            <ExportMenu name="events" noun={["event", "events"]} {...exported} />
            <ResendButton subscription={subscription} />
          </>
        }
      />
      {hasChart && <ListChart subscription={subscription} />}
      <div className={css.split} data-open={open !== undefined || undefined}>
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

/**
 * Returns the CSV columns of an event: the event's own fields, the number of its attempts, and the details of
 * the last attempt.
 */
function lineOfMessage({ attempts, ...message }: Message): Line {
  const last = attempts.at(-1);
  return {
    ...message,
    attempts: attempts.length,
    last_attempt_at: last?.started_at ?? null,
    last_outcome: last?.outcome ?? null,
    last_status_code: last?.status_code ?? null,
    last_error_code: last?.error_code ?? null,
    last_tls_reason: last?.tls_reason ?? null,
    last_duration_ms: last?.duration_ms ?? null,
  };
}
