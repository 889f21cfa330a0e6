import { Button, Skeleton, Stack } from "@mantine/core";
import { useMemo, useRef, useState } from "react";
import { useSearchParams } from "wouter";

import type { LiveState } from "../../api/event-stream.ts";
import { counted } from "../../ui/format.ts";
import { EmptyState, ErrorNotice } from "../../ui/states.tsx";
import { AttemptFilters } from "./attempts/attempt-filters.tsx";
import { AttemptTable } from "./attempts/attempt-table.tsx";
import { useAttempts } from "./attempts/use-attempts.ts";
import { filterOf } from "./data/attempt-rows.ts";
import type { Subscription } from "./data/reads.ts";
import type { FollowAttempts } from "./data/use-subscription-live.ts";
import { RecoverButton } from "./recover-button.tsx";

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
      <AttemptFilters>
        <RecoverButton subscription={props.subscription} />
      </AttemptFilters>
      {/* The key makes another list for another filter. */}
      <AttemptList key={search} search={search} {...props} />
    </Stack>
  );
}

interface AttemptListProps extends DeliveriesProps {
  readonly search: string;
}

function AttemptList({ subscription: { id }, live, follow, search }: AttemptListProps) {
  const filter = useMemo(() => filterOf(new URLSearchParams(search)), [search]);
  const top = useRef<HTMLDivElement>(null);
  const [isPaused, setPaused] = useState(false);
  const isAtTop = () => !isPaused && (top.current?.getBoundingClientRect().top ?? 0) >= 0;
  const stream = { live, follow, isAtTop };
  const { pages, rows, waiting, isBehind, showNewest } = useAttempts(id, filter, stream);
  const jump = () => {
    top.current?.scrollIntoView({ block: "center" });
    setPaused(false);
    void showNewest();
  };
  return (
    <div>
      <div ref={top} />
      <div className="news">
        {rows.length > 0 && (
          <Button size="xs" variant="default" onClick={isPaused ? jump : () => setPaused(true)}>
            {isPaused ? "Go on" : "Pause"}
          </Button>
        )}
        <div aria-live="polite">
          {(waiting > 0 || isBehind) && (
            <Button size="xs" onClick={jump}>
              {waiting > 0 ? `Show ${counted(waiting, "new attempt")}` : "Look for newer attempts"}
            </Button>
          )}
        </div>
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
          subscriptionId={id}
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
