import { Skeleton } from "@mantine/core";
import { useMemo, useRef, useState } from "react";

import type { LiveState } from "../../../api/event-stream.ts";
import { counted } from "../../../ui/format.ts";
import { EmptyState, ErrorNotice } from "../../../ui/states.tsx";
import { filterOf } from "../data/attempt-rows.ts";
import type { FollowAttempts } from "../data/use-subscription-live.ts";
import { AttemptTable } from "./attempt-table.tsx";
import { NewsBar } from "./news-bar.tsx";
import { useAttempts } from "./use-attempts.ts";

interface AttemptListProps {
  readonly id: string;
  readonly live: LiveState;
  readonly follow: FollowAttempts;
  readonly search: string;
}

/** Shows one row an attempt. */
export function AttemptList({ id, live, follow, search }: AttemptListProps) {
  const filter = useMemo(() => filterOf(new URLSearchParams(search)), [search]);
  const top = useRef<HTMLDivElement>(null);
  const [isPaused, setPaused] = useState(false);
  const isAtTop = () => !isPaused && (top.current?.getBoundingClientRect().top ?? 0) >= 0;
  const stream = { live, follow, isAtTop };
  const { pages, rows, onView, waiting, isBehind, showNewest } = useAttempts(id, filter, stream);
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
        news={newsOf(waiting, isBehind)}
      />
      {pages.isPending && <Skeleton height={480} />}
      {pages.error !== null && rows.length === 0 && (
        <ErrorNotice error={pages.error} retry={() => void pages.refetch()} />
      )}
      {pages.isSuccess && rows.length === 0 && (
        <NoAttempts isFiltered={Object.keys(filter).length > 0} />
      )}
      {rows.length > 0 && (
        <AttemptTable
          subscriptionId={id}
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

function newsOf(waiting: number, isBehind: boolean): string | undefined {
  if (waiting > 0) return `Show ${counted(waiting, "new attempt")}`;
  return isBehind ? "Look for newer attempts" : undefined;
}

function NoAttempts({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered)
    return (
      <EmptyState icon="inbox" title="No attempt fits these filters">
        Widen the time, or clear the filters. Attempts are kept for 30 days.
      </EmptyState>
    );
  return (
    <EmptyState icon="inbox" title="No attempts yet">
      Send a test event with the button above, or wait for the first review. Each attempt appears
      here by itself, with what was sent and what was answered.
    </EmptyState>
  );
}
