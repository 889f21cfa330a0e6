import { Alert, Button, Group, Progress, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { skipToken, useQuery } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { useSearchParams } from "wouter";

import { Confirm } from "../../../ui/dialog.tsx";
import { TimeField } from "../../../ui/filters.tsx";
import { Choice } from "../../../ui/choice.tsx";
import { counted, number } from "../../../ui/format.ts";
import { Icon } from "../../../ui/icon.tsx";
import { notify } from "../../../ui/notify.ts";
import { useIsReadOnly, useReader } from "../data/data.ts";
import { messageFilterOf } from "../data/filters.ts";
import { readMessages } from "../data/list-reads.ts";
import type { Reader, Subscription } from "../data/reads.ts";
import { NOTHING_SENT } from "../data/subscription-words.ts";
import { type Period, useSubscriptionActions } from "../data/use-subscription-actions.ts";

const DAY_MS = 86_400_000;
/** Maximum number of events that one "recover" request queues, and that are counted for the filter. */
const MAX_EVENTS = 10_000;
/** Maximum number of events in one request (contract 6.14). */
const CHUNK = 100;

interface ResendProps {
  readonly subscription: Pick<Subscription, "id" | "is_active">;
}

/** Button that queues events again: those of the filter, or those of a period that were not delivered. */
export function ResendButton({ subscription }: ResendProps) {
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
  const filter = messageFilterOf(params);
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
  /** Queues the events of the filter in requests of `CHUNK` events until the user stops it. */
  const resend = async () => {
    stop.current = new AbortController();
    let queued = 0;
    for (let from = 0; from < ids.length && !stop.current.signal.aborted; from += CHUNK) {
      setSent(from);
      queued += await redeliverAll(ids.slice(from, from + CHUNK));
    }
    return { queued, rest: stop.current.signal.aborted ? " Stopped before the others." : "" };
  };
  const recoverPeriod = async (chosen: Period) => {
    const queued = await recover(chosen);
    return { queued, rest: queued >= MAX_EVENTS ? " There may be more: resend again." : "" };
  };
  return (
    <Confirm
      opened
      onClose={onClose}
      title="Resend events"
      action={count > 0 ? `Resend ${counted(count, "event")}` : "Resend"}
      isReady={isActive && count > 0}
      onConfirm={async () => {
        const { queued, rest } = await (isFiltered || !period ? resend() : recoverPeriod(period));
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
            { value: "undelivered", label: "All undelivered events of a period" },
            {
              value: "filtered",
              label: hasFilter ? "The events that match the filters" : "All events of the list",
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
function useCounted(id: string, filter: Search["filter"], isChosen: boolean) {
  const reader = useReader();
  const [read, setRead] = useState(0);
  const { data, error } = useQuery({
    queryKey: ["resend", id, filter],
    queryFn: ({ signal }) => settledEvents({ reader, id, filter, signal, onProgress: setRead }),
    enabled: isChosen,
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const ids = data?.ids ?? [];
  const which = `${data?.isCut === true ? "The newest " : ""}${counted(ids.length, "event")}`;
  if (error !== null) return { ids, words: error.message };
  if (data === undefined) return { ids, words: `Counting … ${number(read)}` };
  if (ids.length === 0) return { ids, words: "No event matches, or all of them are still queued." };
  const words = `${which} will be sent again, the oldest first, also delivered ones. Queued events are left out.`;
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
  if (period === undefined) return { count: 0, words: "Choose when the period begins." };
  if (count === undefined) return { count: 0, words: "Counting …" };
  if (count === 0)
    return { count, words: "Every event of this period was delivered or is queued." };
  const which = `${count >= MAX_EVENTS ? "The oldest " : ""}${counted(count, "undelivered event")}`;
  const words = `${which} of this period will be sent again, the oldest first, under the same X-SVC-Delivery.`;
  return { count, words };
}

interface Search {
  readonly reader: Reader;
  readonly id: string;
  readonly filter: ReturnType<typeof messageFilterOf>;
  readonly signal: AbortSignal;
  readonly onProgress: (count: number) => void;
}

/** Reads the ids of the events of a filter that are not queued, the oldest first. */
async function settledEvents({ reader, id, filter, signal, onProgress }: Search) {
  const ids = new Set<string>();
  let cursor: string | undefined;
  do {
    const page = await readMessages(reader, id, filter, { cursor });
    signal.throwIfAborted();
    for (const one of page.data) if (one.settled_at !== null) ids.add(one.event_id);
    cursor = page.next_cursor ?? undefined;
    onProgress(ids.size);
  } while (cursor !== undefined && ids.size < MAX_EVENTS);
  return { ids: [...ids].slice(0, MAX_EVENTS).toReversed(), isCut: cursor !== undefined };
}
