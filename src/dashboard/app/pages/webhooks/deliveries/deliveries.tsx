import { Stack, Alert, Button, Group, Progress, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { skipToken, useQuery } from "@tanstack/react-query";
import { useCallback, useRef, useState } from "react";
import { useSearchParams } from "wouter";

import css from "./deliveries.module.css";
import type { LiveState } from "../../../session/live.ts";
import { Choice } from "../../../ui/form.tsx";
import { Confirm } from "../../../ui/dialog.tsx";
import { ExportMenu } from "../../../ui/export-menu.tsx";
import type { Line } from "../../../ui/export-rows.ts";
import { TimeField } from "../../../ui/filters.tsx";
import { counted, number } from "../../../ui/format.ts";
import { Icon } from "../../../ui/icon.tsx";
import { useIsNarrow } from "../../../ui/layout.tsx";
import { notify } from "../../../ui/notify.ts";
import { type FollowAttempts, useReader, useIsReadOnly } from "../data/data.ts";
import { type DeliveryFilter, deliveryFilterOf } from "../data/filters.ts";
import {
  type ListedDelivery,
  MAX_RESENT_EVENTS,
  readDeliveries,
  settledEventsOptions,
  type Subscription,
  type SubscriptionProps,
} from "../data/reads.ts";
import { NOTHING_SENT } from "../data/subscription-words.ts";
import { type Period, useSubscriptionActions } from "../data/use-subscription-actions.ts";
import { ChartStrip, ListChart } from "../stats/over-time.tsx";
import { DeliveryPane } from "./delivery-detail.tsx";
import { DeliveryFilters } from "./delivery-filters.tsx";
import { DeliveryList } from "./delivery-list.tsx";

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
  const exportProps = {
    // Ends the exported list at the start of the export. Otherwise an event that moves within the list during the
    // export could be exported twice.
    start: () => {
      const filter = { until: new Date().toISOString(), ...deliveryFilterOf(params) };
      return (cursor: string | undefined) =>
        readDeliveries(reader, subscription.id, filter, { cursor });
    },
    lineOf: lineOfDelivery,
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
            <ExportMenu name="events" noun={["event", "events"]} {...exportProps} />
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

const DAY_MS = 86_400_000;
/** Maximum number of events in one request that queues events by their ids (contract 6.14). */
const REDELIVER_CHUNK = 100;

interface ResendProps {
  readonly subscription: Pick<Subscription, "id" | "is_active">;
}

/** Button that queues events again: all events of the filter, or the undelivered events of a period. */
function ResendButton({ subscription }: ResendProps) {
  const [opened, { open, close }] = useDisclosure();
  if (useIsReadOnly()) return null;
  return (
    <>
      <Button variant="default" onClick={open} leftSection={<Icon name="refresh" size={16} />}>
        Resend all …
      </Button>
      {opened && <ResendDialog subscription={subscription} onClose={close} />}
    </>
  );
}

function ResendDialog({ subscription, onClose }: ResendProps & { readonly onClose: () => void }) {
  const { id, is_active: isActive } = subscription;
  const [params] = useSearchParams();
  const filter = deliveryFilterOf(params);
  const hasFilter = Object.keys(filter).length > 0;
  const [isFiltered, setFiltered] = useState(hasFilter);
  const [since, setSince] = useState<string | undefined>(() =>
    new Date(Date.now() - DAY_MS).toISOString(),
  );
  const [until, setUntil] = useState<string>();
  const [sent, setSent] = useState<number>();
  const stop = useRef(new AbortController());
  const { recover, redeliverAll } = useSubscriptionActions(id);
  const { ids, ...matching } = useCounted(id, filter, isFiltered);
  const period: Period | undefined =
    since === undefined ? undefined : { since, ...(until !== undefined && { until }) };
  const undelivered = useUndelivered(id, isFiltered ? undefined : period);
  const { count, words } = isFiltered ? { count: ids.length, ...matching } : undelivered;
  /**
   * Queues the events of the filter in requests of `REDELIVER_CHUNK` events. The user can stop it after each request.
   */
  const resend = async () => {
    stop.current = new AbortController();
    let queued = 0;
    for (let from = 0; from < ids.length && !stop.current.signal.aborted; from += REDELIVER_CHUNK) {
      setSent(from);
      queued += await redeliverAll(ids.slice(from, from + REDELIVER_CHUNK));
    }
    return {
      queued,
      rest: stop.current.signal.aborted ? " The other events were not queued." : "",
    };
  };
  const resendUndelivered = async (chosen: Period) => {
    const queued = await recover(chosen);
    return {
      queued,
      rest:
        queued >= MAX_RESENT_EVENTS ? " There may be more undelivered events: resend again." : "",
    };
  };
  return (
    <Confirm
      opened
      onClose={onClose}
      title="Resend events"
      action={count > 0 ? `Resend ${counted(count, "event")}` : "Resend"}
      isReady={isActive && count > 0}
      onConfirm={async () => {
        const { queued, rest } = await (isFiltered || !period
          ? resend()
          : resendUndelivered(period));
        notify.done(`${counted(queued, "event")} queued.${rest}`);
      }}
    >
      <Stack>
        {!isActive && <Alert color="yellow">{NOTHING_SENT}</Alert>}
        <Choice
          label="Which events"
          value={isFiltered ? "filtered" : "undelivered"}
          onChange={(what) => setFiltered(what === "filtered")}
          options={[
            { value: "undelivered", label: "All undelivered events in a period" },
            {
              value: "filtered",
              label: hasFilter ? "The events that match the filters" : "All events in the list",
            },
          ]}
        />
        <Text size="sm" aria-live="polite">
          {words}
        </Text>
        {!isFiltered && (
          <>
            <TimeField label="Since" value={since} onChange={setSince} />
            <TimeField label="Until (now, if empty)" value={until} onChange={setUntil} />
          </>
        )}
        {sent !== undefined && (
          <Group gap="sm" wrap="nowrap">
            <Progress value={(100 * sent) / ids.length} aria-label="Progress" className="grows" />
            <Text size="sm">
              {number(sent)} of {number(ids.length)}
            </Text>
            <Button size="xs" variant="default" onClick={() => stop.current.abort()}>
              Stop
            </Button>
          </Group>
        )}
      </Stack>
    </Confirm>
  );
}

/** Counts the events of a filter as soon as it is chosen, and describes the result. */
function useCounted(id: string, filter: DeliveryFilter, isChosen: boolean) {
  const reader = useReader();
  const [read, setRead] = useState(0);
  const { data, error } = useQuery({
    ...settledEventsOptions({ reader, id, filter, onProgress: setRead }),
    enabled: isChosen,
  });
  const ids = data?.ids ?? [];
  const which = `${data?.isCut === true ? "The newest " : ""}${counted(ids.length, "event")}`;
  if (error !== null) return { ids, words: error.message };
  if (data === undefined) return { ids, words: `Counting … ${number(read)}` };
  if (ids.length === 0) return { ids, words: "No event matches, or all of them are still queued." };
  const words = `${which} will be resent, oldest first, including delivered ones. Events that are still queued are not resent.`;
  return { ids, words };
}

/** Counts the undelivered events of a period, and describes the result. */
function useUndelivered(id: string, period: Period | undefined) {
  const { countUndelivered } = useSubscriptionActions(id);
  const { data: count, error } = useQuery({
    queryKey: ["undelivered", id, period],
    queryFn: period === undefined ? skipToken : () => countUndelivered(period),
    gcTime: 0,
  });
  if (error !== null) return { count: 0, words: error.message };
  if (period === undefined) return { count: 0, words: "Choose the start of the period." };
  if (count === undefined) return { count: 0, words: "Counting …" };
  if (count === 0) return { count, words: "All events of this period are delivered or queued." };
  const which = `${count >= MAX_RESENT_EVENTS ? "The oldest " : ""}${counted(count, "undelivered event")}`;
  const words = `${which} of this period will be resent, oldest first, with the same X-SVC-Delivery.`;
  return { count, words };
}
