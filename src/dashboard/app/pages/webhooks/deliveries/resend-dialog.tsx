import { Alert, Anchor, Button, Checkbox, Group, Progress, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { skipToken, useQuery } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { Link, useSearchParams } from "wouter";

import { numbersText, readRanges } from "../../../../../outbox/event-numbers.ts";
import { Confirm } from "../../../ui/dialog.tsx";
import { TimeField } from "../../../ui/filters.tsx";
import { Choice } from "../../../ui/form.tsx";
import { counted, number } from "../../../ui/format.ts";
import { notify } from "../../../ui/notify.ts";
import { useIsReadOnly, useReader } from "../data/data.ts";
import type { DeliveryFilter } from "../data/filters.ts";
import {
  type Delivery,
  MAX_RESENT_EVENTS,
  readDeliveries,
  resendableOptions,
  type Subscription,
} from "../data/reads.ts";
import { listedFilterOf, resentText } from "../data/resent.ts";
import { NothingSent } from "../stats/health-summary.tsx";
import { type Period, useSubscriptionActions } from "../data/use-subscription-actions.ts";

const DAY_MS = 86_400_000;
/** Maximum number of events in one request that queues events by their ids (contract 6.14). */
const REDELIVER_CHUNK = 100;

interface ResendProps {
  readonly subscription: Pick<Subscription, "id" | "is_active" | "delivery_kind">;
}

/** Button that queues undelivered events again: those of the filter, or those of a period. */
export function ResendButton({ subscription }: ResendProps) {
  const [opened, { open, close }] = useDisclosure();
  if (useIsReadOnly()) return null;
  return (
    <>
      <Button variant="default" onClick={open} aria-label="Resend undelivered…">
        Resend<span className="unseen-on-phones">&nbsp;undelivered</span>…
      </Button>
      {opened && <ResendDialog subscription={subscription} onClose={close} />}
    </>
  );
}

function ResendDialog({ subscription, onClose }: ResendProps & { readonly onClose: () => void }) {
  const { id, is_active: isActive, delivery_kind: kind } = subscription;
  const [params, setParams] = useSearchParams();
  const filter = listedFilterOf(params);
  const hasFilter = Object.keys(filter).length > 0;
  const [isFiltered, setFiltered] = useState(hasFilter);
  const [hasDelivered, setDelivered] = useState(false);
  const [since, setSince] = useState<string | undefined>(() =>
    new Date(Date.now() - DAY_MS).toISOString(),
  );
  const [until, setUntil] = useState<string>();
  const [sent, setSent] = useState<number>();
  const stop = useRef(new AbortController());
  const { recover, redeliverAll } = useSubscriptionActions(id);
  const { events, ...matching } = useMatching(id, filter, { isChosen: isFiltered, hasDelivered });
  const period: Period | undefined =
    since === undefined ? undefined : { since, ...(until !== undefined && { until }) };
  const undelivered = useUndelivered(id, isFiltered ? undefined : period);
  const { count, words } = isFiltered ? { count: events.length, ...matching } : undelivered;
  /**
   * Queues the events of the filter in requests of `REDELIVER_CHUNK` events. The user can stop it after each request.
   */
  const resendMatching = async () => {
    stop.current = new AbortController();
    let queued = 0;
    let from = 0;
    for (; from < events.length && !stop.current.signal.aborted; from += REDELIVER_CHUNK) {
      setSent(from);
      const ids = events.slice(from, from + REDELIVER_CHUNK).map(([eventId]) => eventId);
      queued += await redeliverAll(ids);
    }
    const numbers = events.slice(0, from).map(([, sequence]) => sequence);
    return { queued, sequences: kind === "immediate" ? numbersText(numbers) : "" };
  };
  /** Shows what becomes of the events, at an address of its own. */
  const show = (at: string, queued: number, sequences: string) => {
    const numbers = readRanges(sequences);
    setParams({ tab: "deliveries", resent: resentText({ at, count: queued, numbers }) });
  };
  return (
    <Confirm
      opened
      onClose={onClose}
      title="Resend undelivered events"
      action={count > 0 ? `Resend ${counted(count, "event")}` : "Resend"}
      isReady={isActive && count > 0}
      onConfirm={async () => {
        const at = new Date().toISOString();
        const { queued, sequences = "" } = await (isFiltered || !period
          ? resendMatching()
          : recover(period));
        notify.done(`${counted(queued, "event")} queued.${restOf(count, queued)}`);
        if (queued > 0) show(at, queued, sequences);
      }}
    >
      <Stack>
        {!isActive && (
          <Alert color="yellow">
            <NothingSent id={id} />
          </Alert>
        )}
        <Choice
          label="Which undelivered events"
          value={isFiltered ? "filtered" : "period"}
          onChange={(what) => setFiltered(what === "filtered")}
          options={[
            { value: "period", label: "All of a period" },
            {
              value: "filtered",
              label: hasFilter ? "Those that match the filters" : "All in the list",
            },
          ]}
        />
        {isFiltered ? (
          <Checkbox
            label="Resend delivered events as well"
            checked={hasDelivered}
            onChange={(event) => setDelivered(event.currentTarget.checked)}
          />
        ) : (
          <>
            <TimeField label="Since" value={since} onChange={setSince} />
            <TimeField
              label="Until"
              description="Now, if empty."
              value={until}
              onChange={setUntil}
            />
          </>
        )}
        <Text size="sm" aria-live="polite">
          {words}
        </Text>
        <Waiting id={id} onShow={onClose} />
        {sent !== undefined && (
          <Group gap="sm" wrap="nowrap">
            <Progress
              value={(100 * sent) / events.length}
              aria-label="Progress"
              className="grows"
            />
            <Text size="sm">
              {number(sent)} of {number(events.length)}
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

/** Tells of the events that wait for a retry, which are not resent, and where to send them at once. */
function Waiting({ id, onShow }: { readonly id: string; readonly onShow: () => void }) {
  const reader = useReader();
  const { data } = useQuery({
    queryKey: ["waiting", id],
    queryFn: () => readDeliveries(reader, id, { state: "waiting" }, {}),
    gcTime: 0,
  });
  const count = data?.data.length ?? 0;
  if (count === 0) return null;
  const more = data?.next_cursor === null ? "" : " or more";
  const href = `/webhooks/${id}?tab=deliveries&state=waiting`;
  return (
    <Alert color="yellow">
      {count === 1 ? "1 event waits" : `${number(count)}${more} events wait`} for a retry. “Retry
      now” on {count === 1 ? "it" : "each of them"} sends it at once.{" "}
      <Anchor component={Link} href={href} inherit underline="always" onClick={onShow}>
        Show {count === 1 ? "this event" : "these events"}
      </Anchor>
    </Alert>
  );
}

/** Explains what a resend left over. */
function restOf(count: number, queued: number): string {
  if (queued >= MAX_RESENT_EVENTS) return " There may be more undelivered events: resend again.";
  return queued < count ? " The others were not queued." : "";
}

const UNDELIVERED: readonly Delivery["state"][] = ["failed", "skipped"];

interface MatchOptions {
  /** False while the user resends the events of a period instead. */
  readonly isChosen: boolean;
  readonly hasDelivered: boolean;
}

/** Finds the events of a filter that can be resent, and describes them. */
function useMatching(id: string, filter: DeliveryFilter, { isChosen, hasDelivered }: MatchOptions) {
  const reader = useReader();
  const [read, setRead] = useState(0);
  const states: readonly Delivery["state"][] = hasDelivered
    ? [...UNDELIVERED, "delivered"]
    : UNDELIVERED;
  const { data, error } = useQuery({
    ...resendableOptions({ reader, id, filter, states, onProgress: setRead }),
    enabled: isChosen,
  });
  const events = data?.events ?? [];
  if (error !== null) return { events, words: error.message };
  if (data === undefined) return { events, words: `Counting… ${number(read)}` };
  const what = hasDelivered ? "event" : "undelivered event";
  if (events.length === 0) return { events, words: `No ${what} matches. ${LEFT_OUT}` };
  const which = `${data.isCut ? "The newest " : ""}${counted(events.length, what)}`;
  return { events, words: `${which} will be resent, oldest first. ${LEFT_OUT}` };
}

const LEFT_OUT = "Tests and events that are still queued are left out.";

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
  if (count === undefined) return { count: 0, words: "Counting…" };
  if (count === 0)
    return {
      count,
      words: "Nothing to resend: all events of this period are delivered or still queued.",
    };
  const which = `${count >= MAX_RESENT_EVENTS ? "The oldest " : ""}${counted(count, "undelivered event")}`;
  const words = `${which} of this period will be resent, oldest first, with the same X-SVC-Delivery.`;
  return { count, words };
}
