import { Button } from "@mantine/core";
import { useCallback, useMemo, useState } from "react";
import { useSearchParams } from "wouter";

import type { LiveState } from "../../../session/live.ts";
import { usePlainLinks } from "../../../ui/plain-links.ts";
import type { PagedList } from "../../../ui/pages.ts";
import { EmptyState } from "../../../ui/states.tsx";
import type { FollowAttempts } from "../data/data.ts";
import { type MessageFilter, messageFilterOf } from "../data/filters.ts";
import type { Message } from "../data/list-reads.ts";
import type { Subscription } from "../data/reads.ts";
import { LiveList, useMessages, usePlace } from "./live-list.tsx";
import { COLUMNS, MessageLine } from "./message-line.tsx";

interface MessageListProps {
  readonly subscription: Subscription;
  readonly live: LiveState;
  readonly follow: FollowAttempts;
  readonly search: string;
}

/** List of the events of a subscription. A row can be expanded to show the delivery attempts of the event. */
export function MessageList({ subscription, search, ...stream }: MessageListProps) {
  const { id, is_active: isActive } = subscription;
  const filter = useMemo(() => messageFilterOf(new URLSearchParams(search)), [search]);
  const place = usePlace();
  const list = useMessages(id, filter, { ...stream, isAtTop: place.isAtTop });
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
  const line = { root: `${base}/webhooks/${id}/deliveries`, follow, subscriptionId: id, isActive };
  return (
    <LiveList
      place={place}
      list={list}
      updates={list.isOutdated ? "Show what is new" : undefined}
      empty={<NoMessages filter={filter} pages={list.pages} />}
      label="Events"
      kind="message"
      noun="events"
      columns={COLUMNS}
      keyOf={eventIdOf}
      heightOf={heightOf}
      renderLine={(row) => (
        <MessageLine {...line} message={row} isOpen={open.has(row.event_id)} onToggle={toggle} />
      )}
    />
  );
}

interface NoMessagesProps extends Pick<PagedList<Message>, "pages"> {
  readonly filter: MessageFilter;
}

function NoMessages({ filter, pages }: NoMessagesProps) {
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
      {pages.hasNextPage && (
        <Button
          variant="default"
          loading={pages.isFetchingNextPage}
          onClick={() => void pages.fetchNextPage()}
        >
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

const eventIdOf = ({ event_id: eventId }: Message): string => eventId;
