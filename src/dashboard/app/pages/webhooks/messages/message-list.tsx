import { Button, Skeleton } from "@mantine/core";
import { useMemo, useRef, useState } from "react";
import { useSearchParams } from "wouter";

import type { LiveState } from "../../../api/event-stream.ts";
import { EmptyState, ErrorNotice } from "../../../ui/states.tsx";
import { NewsBar } from "../attempts/news-bar.tsx";
import { messageFilterOf, type MessageFilter } from "../data/message-filter.ts";
import type { Subscription } from "../data/reads.ts";
import type { FollowAttempts } from "../data/use-subscription-live.ts";
import { MessageTable } from "./message-table.tsx";
import { useMessages } from "./use-messages.ts";

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
  const { pages, rows, onView, isBehind, showNewest } = useMessages(
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
      <NewsBar
        isShown={rows.length > 0}
        isPaused={isPaused}
        onPause={() => setPaused(true)}
        onShow={jump}
        news={isBehind ? "Show what is new" : undefined}
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
