import { Stack } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useCallback, useMemo } from "react";
import { Redirect, useSearchParams } from "wouter";

import css from "./deliveries.module.css";
import type { LiveState } from "../../../session/live.ts";
import { ExportMenu } from "../../../ui/export-menu.tsx";
import type { Line } from "../../../ui/export-rows.ts";
import { useIsNarrow } from "../../../ui/layout.tsx";
import { type FollowAttempts, useReader } from "../data/data.ts";
import { type ListedDelivery, readDeliveries, type SubscriptionProps } from "../data/reads.ts";
import { listedFilterOf, resentIn } from "../data/resent.ts";
import { ChartStrip, ListChart } from "../stats/over-time.tsx";
import { DeliveryPane } from "./delivery-detail.tsx";
import { DeliveryFilters } from "./delivery-filters.tsx";
import { DeliveryList } from "./delivery-list.tsx";
import { ResendButton } from "./resend-dialog.tsx";
import { ResentPanel } from "./resent-panel.tsx";

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
  const open = params.get("open") ?? undefined;
  const search = listSearch(params);
  const resent = useMemo(() => resentIn(params), [params]);
  const reader = useReader();
  const exportProps = {
    // Ends the exported list at the start of the export. Otherwise an event that moves within the list during the
    // export could be exported twice.
    start: () => {
      const filter = { until: new Date().toISOString(), ...listedFilterOf(params) };
      return (cursor: string | undefined) =>
        readDeliveries(reader, subscription.id, filter, { cursor });
    },
    lineOf: lineOfDelivery,
  };
  const show = useCallback(
    (eventId: string | undefined, { replace }: { readonly replace: boolean }) =>
      setParams(
        (before) => {
          const others = [...before].filter(([name]) => name !== "open");
          return [...others, ...(eventId === undefined ? [] : [["open", eventId]])];
        },
        { replace },
      ),
    [setParams],
  );
  const choose = useCallback((eventId: string) => show(eventId, { replace: false }), [show]);
  // A link that was copied from a wide window opens the same delivery in a narrow one.
  if (open !== undefined && !isWide) {
    const page = `/webhooks/${subscription.id}/deliveries/${encodeURIComponent(open)}`;
    return <Redirect replace to={`${page}?${search}`} />;
  }
  return (
    <Stack gap="xs">
      <DeliveryFilters
        subscription={subscription}
        actions={
          <>
            <ExportMenu name="events" noun={["event", "events"]} {...exportProps} />
            <ResendButton subscription={subscription} />
          </>
        }
      />
      {resent !== undefined && <ResentPanel id={subscription.id} resent={resent} />}
      {hasChart && resent === undefined && <ListChart subscription={subscription} />}
      <div className={css.split} data-open={open !== undefined || undefined}>
        {/* The `key` of the list makes React mount a new list when the filter changes. */}
        <DeliveryList
          key={search}
          {...{ subscription, live, follow, search, open }}
          onOpen={isWide ? choose : undefined}
          above={
            resent === undefined && (
              <ChartStrip subscription={subscription} isOpen={hasChart} onToggle={toggle} />
            )
          }
        />
        {open !== undefined && (
          <DeliveryPane
            id={subscription.id}
            eventId={open}
            onShow={(eventId) => show(eventId, { replace: true })}
            key={open}
          />
        )}
      </div>
    </Stack>
  );
}

/** Names of the query parameters that do not change the content of the list. */
const VIEW_KEYS = ["stack", "open"];

function listSearch(params: URLSearchParams): string {
  return new URLSearchParams([...params].filter(([name]) => !VIEW_KEYS.includes(name))).toString();
}

/**
 * Returns the CSV columns of an event: the event's own fields, the number of its attempts, and the details of
 * the last attempt.
 */
function lineOfDelivery({ attempts, ...delivery }: ListedDelivery): Line {
  const last = attempts.at(-1);
  return {
    ...delivery,
    attempts: attempts.length,
    last_attempt_at: last?.started_at ?? null,
    last_outcome: last?.outcome ?? null,
    last_status_code: last?.status_code ?? null,
    last_error_code: last?.error_code ?? null,
    last_tls_reason: last?.tls_reason ?? null,
    last_duration_ms: last?.duration_ms ?? null,
  };
}
