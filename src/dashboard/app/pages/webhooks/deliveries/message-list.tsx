import { Button, Skeleton } from "@mantine/core";
import { useCallback, useMemo, useRef, useState } from "react";
import { useSearchParams } from "wouter";

import type { LiveState } from "../../../session/live.ts";
import { usePlainLinks } from "../../../ui/plain-links.ts";
import { EmptyState, ErrorNotice } from "../../../ui/states.tsx";
import { VirtualTable } from "../../../ui/virtual-table.tsx";
import type { FollowAttempts } from "../data/data.ts";
import { type MessageFilter, messageFilterOf } from "../data/filters.ts";
import type { Message, Subscription } from "../data/reads.ts";
import { UpdatesBar } from "./attempt-list.tsx";
import { COLUMNS, MessageLine } from "./message-line.tsx";
import { useMessages } from "./live-lists.ts";

interface MessageListProps {
  readonly subscription: Subscription;
  readonly live: LiveState;
  readonly follow: FollowAttempts;
  readonly search: string;
}

export function MessageList({ subscription, live, follow, search }: MessageListProps) {
  const filter = useMemo(() => messageFilterOf(new URLSearchParams(search)), [search]);
  const top = useRef<HTMLDivElement>(null);
  const [isPaused, setPaused] = useState(false);
  const isAtTop = () => !isPaused && (top.current?.getBoundingClientRect().top ?? 0) >= 0;
  const stream = { live, follow, isAtTop };
  const { pages, rows, onView, isOutdated, showNewest } = useMessages(
    subscription.id,
    filter,
    stream,
  );
  const jump = () => {
    top.current?.scrollIntoView({ block: "center" });
    setPaused(false);
    void showNewest();
  };
  return (
    <div>
      <div ref={top} />
      <UpdatesBar
        isShown={rows.length > 0}
        isPaused={isPaused}
        onPause={() => setPaused(true)}
        onShow={jump}
        updates={isOutdated ? "Show what is new" : undefined}
      />
      {pages.isPending && <Skeleton height={480} />}
      {pages.error !== null && rows.length === 0 && (
        <ErrorNotice error={pages.error} retry={() => void pages.refetch()} />
      )}
      {pages.isSuccess && rows.length === 0 && (
        <NoMessages
          filter={filter}
          hasMore={pages.hasNextPage}
          isLoading={pages.isFetchingNextPage}
          onMore={() => void pages.fetchNextPage()}
        />
      )}
      {rows.length > 0 && (
        <MessageTable
          subscription={subscription}
          rows={rows}
          hasMore={pages.hasNextPage}
          isLoading={pages.isFetchingNextPage}
          error={pages.error}
          onMore={() => void pages.fetchNextPage()}
          onView={onView}
        />
      )}
    </div>
  );
}

interface NoMessagesProps {
  readonly filter: MessageFilter;
  readonly hasMore: boolean;
  readonly isLoading: boolean;
  readonly onMore: () => void;
}

function NoMessages({ filter, hasMore, isLoading, onMore }: NoMessagesProps) {
  const [, setParams] = useSearchParams();
  if (Object.keys(filter).length === 0)
    return (
      <EmptyState icon="inbox" title="No events yet">
        Send a test event with the button above, or wait for the first review. Each event appears
        here by itself, with its attempts.
      </EmptyState>
    );
  const { review_id: reviewId } = filter;
  return (
    <EmptyState icon="inbox" title="No event fits these filters">
      Widen the time, or clear the filters. Attempts are kept for 30 days.
      {reviewId !== undefined && (
        <Button
          variant="subtle"
          onClick={() => setParams({ tab: "deliveries", external_review_id: reviewId })}
        >
          Look for {reviewId} as the id of the review site
        </Button>
      )}
      {hasMore && (
        <Button variant="default" loading={isLoading} onClick={onMore}>
          Look further back
        </Button>
      )}
    </EmptyState>
  );
}

const LINE_PX = 44;
const CARD_PX = 148;
/**
 * Heights in px of the parts of an expanded row. They must equal the heights in the style sheet, because the
 * table positions its rows by them.
 */
const ATTEMPT_PX = 26;
const ATTEMPT_CARD_PX = 46;
const AROUND_PX = 60;

interface TableProps {
  readonly subscription: Pick<Subscription, "id" | "is_active">;
  readonly rows: readonly (Message | undefined)[];
  readonly hasMore: boolean;
  readonly isLoading: boolean;
  readonly error: unknown;
  readonly onMore: () => void;
  readonly onView: (first: number, last: number) => void;
}

/** Table of events. A row can be expanded to show the delivery attempts of the event. */
function MessageTable({ subscription: { id, is_active: isActive }, ...list }: TableProps) {
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const toggle = useCallback(
    (eventId: string) => setOpen((before) => before.symmetricDifference(new Set([eventId]))),
    [],
  );
  const heightOf = useCallback(
    (row: Message | undefined, isNarrow: boolean) => {
      const closed = isNarrow ? CARD_PX : LINE_PX;
      if (row === undefined || !open.has(row.event_id)) return closed;
      const lines = Math.max(1, row.attempts.length);
      return closed + lines * (isNarrow ? ATTEMPT_CARD_PX : ATTEMPT_PX) + AROUND_PX;
    },
    [open],
  );
  const { base, follow } = usePlainLinks();
  const root = `${base}/webhooks/${id}/deliveries`;
  return (
    <VirtualTable
      label="Events"
      kind="message"
      noun="events"
      columns={COLUMNS}
      keyOf={eventIdOf}
      heightOf={heightOf}
      renderLine={(row) => (
        <MessageLine
          root={root}
          follow={follow}
          subscriptionId={id}
          isActive={isActive}
          message={row}
          isOpen={open.has(row.event_id)}
          onToggle={toggle}
        />
      )}
      {...list}
    />
  );
}

const eventIdOf = ({ event_id: eventId }: Message): string => eventId;
