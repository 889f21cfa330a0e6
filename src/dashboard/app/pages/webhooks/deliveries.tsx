import { Button, Skeleton, Stack } from "@mantine/core";
import { useMemo, useRef } from "react";
import { useSearchParams } from "wouter";

import type { LiveState } from "../../ui/live.ts";
import { EmptyState, ErrorNotice } from "../../ui/states.tsx";
import { counted } from "../../ui/words.ts";
import { AttemptFilters } from "./attempt-filters.tsx";
import { filterOf } from "./attempt-rows.ts";
import { AttemptTable } from "./attempt-table.tsx";
import type { Subscription } from "./model.ts";
import { useAttempts } from "./use-attempts.ts";
import type { FollowAttempts } from "./use-subscription-live.ts";

interface DeliveriesProps {
  readonly subscription: Subscription;
  readonly live: LiveState;
  readonly follow: FollowAttempts;
}

export function Deliveries(props: DeliveriesProps) {
  const [params] = useSearchParams();
  const search = params.toString();
  return (
    <Stack gap="md">
      <AttemptFilters subscription={props.subscription} />
      {/* Another filter is another list. */}
      <AttemptList key={search} search={search} {...props} />
    </Stack>
  );
}

function AttemptList({
  subscription,
  live,
  follow,
  search,
}: DeliveriesProps & { readonly search: string }) {
  const filter = useMemo(() => filterOf(new URLSearchParams(search)), [search]);
  const top = useRef<HTMLDivElement>(null);
  const isAtTop = () => (top.current?.getBoundingClientRect().top ?? 0) >= 0;
  const { pages, rows, waiting, isBehind, showNewest } = useAttempts(subscription.id, filter, {
    live,
    follow,
    isAtTop,
  });
  const jump = () => {
    top.current?.scrollIntoView({ block: "center" });
    void showNewest();
  };
  return (
    <div>
      <div ref={top} />
      <div className="news" aria-live="polite">
        {(waiting > 0 || isBehind) && (
          <Button size="xs" onClick={jump}>
            {waiting > 0 ? `Show ${counted(waiting, "new attempt")}` : "Look for newer attempts"}
          </Button>
        )}
      </div>
      {pages.isPending && <Skeleton height={480} />}
      {pages.error !== null && rows.length === 0 && (
        <ErrorNotice error={pages.error} retry={() => void pages.refetch()} />
      )}
      {pages.isSuccess && rows.length === 0 && (
        <NoAttempts isFiltered={Object.keys(filter).length > 0} />
      )}
      {rows.length > 0 && (
        <AttemptTable
          subscriptionId={subscription.id}
          rows={rows}
          hasMore={pages.hasNextPage}
          isLoading={pages.isFetchingNextPage}
          error={pages.error}
          onMore={() => void pages.fetchNextPage()}
        />
      )}
    </div>
  );
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
