import { Paper, SimpleGrid, Stack, Text, Title } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import type { ReactNode } from "react";

import { useApi } from "../../session.tsx";
import { useLive, type LiveState } from "../../ui/live.ts";
import { PageHeader } from "../../ui/page-header.tsx";
import { Loaded } from "../../ui/states.tsx";
import { useNow } from "../../ui/time.tsx";
import { Verdict } from "../../ui/verdict.tsx";
import { counted, duration, number } from "../../ui/words.ts";
import { concernsOf } from "./dispatcher-state.ts";
import { BlockedHeads, DisabledSubscriptions, Dispatchers } from "./dispatcher-tables.tsx";
import { Shards } from "./shards.tsx";

type Api = ReturnType<typeof useApi>;
const load = (api: Api) => api.call("GET", "/admin/dispatcher", {});
export type DispatcherState = Awaited<ReturnType<typeof load>>;

const KEY = ["dispatcher"];
/** The server tells the state every two seconds. */
const STALE_MS = 10_000;

export function Page() {
  const api = useApi();
  const queries = useQueryClient();
  const state = useQuery({ queryKey: KEY, queryFn: () => load(api), staleTime: Infinity });
  const live = useLive("/admin/stream", (event, data) => {
    if (event === "dispatcher") queries.setQueryData(KEY, data);
  });
  return (
    <>
      <PageHeader
        title="Dispatcher"
        description="The process that delivers every event, in order, to the partners' receivers."
        actions={<Freshness live={live} at={state.dataUpdatedAt} />}
      />
      <Loaded query={state}>{(data) => <State state={data} at={state.dataUpdatedAt} />}</Loaded>
    </>
  );
}

/** What is read out changes every ten seconds, not every second. */
const tens = (seconds: number) => Math.floor(seconds / 10) * 10;

function Freshness({ live, at }: { readonly live: LiveState; readonly at: number }) {
  const now = useNow(1_000);
  if (at === 0) return null;
  const isStale = now - at > STALE_MS;
  return (
    <Text size="sm" c="dimmed" component="output" className="freshness" data-stale={isStale}>
      {isStale
        ? `Not live: as it was ${duration(tens((now - at) / 1_000))} ago. ${live === "live" ? "Waiting for news." : "Connecting again."}`
        : "Live"}
    </Text>
  );
}

function State({ state, at }: { readonly state: DispatcherState; readonly at: number }) {
  const concerns = concernsOf(state, at);
  const { lag, mails, dispatchers } = state;
  return (
    <Stack gap="lg">
      <Verdict
        isWell={concerns.length === 0}
        title={
          concerns.length === 0 ? "All is well" : counted(concerns.length, "thing") + " to look at"
        }
      >
        {concerns.length === 0
          ? "Every shard has an owner, nothing is late, and no receiver fails."
          : concerns.join(" ")}
      </Verdict>
      <SimpleGrid cols={{ base: 2, sm: 4 }}>
        <Figure title="Lag" value={duration(lag.lag_s)}>
          age of the oldest event that could be sent
        </Figure>
        <Figure title="Queued events" value={number(lag.entries) + (state.truncated ? "+" : "")}>
          of {counted(lag.subscriptions, "subscription")}
        </Figure>
        <Figure title="Queued mails" value={number(mails.queued)}>
          codes, notices, warnings
        </Figure>
        <Figure title="Dispatchers" value={number(dispatchers.length)}>
          share the {state.shards.length} shards
        </Figure>
      </SimpleGrid>
      <Panel title="Blocked heads" count={state.blocked_heads.length}>
        <BlockedHeads state={state} />
      </Panel>
      <Panel title="Disabled subscriptions" count={state.disabled_subscriptions.length}>
        <DisabledSubscriptions state={state} />
      </Panel>
      <Panel title="Shards">
        <Shards state={state} />
      </Panel>
      <Panel title="Dispatchers" count={dispatchers.length}>
        <Dispatchers state={state} />
      </Panel>
    </Stack>
  );
}

function Figure({
  title,
  value,
  children,
}: {
  readonly title: string;
  readonly value: string;
  readonly children: ReactNode;
}) {
  return (
    <Paper withBorder p="md">
      <Text size="sm" c="dimmed">
        {title}
      </Text>
      <Text className="figure">{value}</Text>
      <Text size="xs" c="dimmed">
        {children}
      </Text>
    </Paper>
  );
}

function Panel({
  title,
  count,
  children,
}: {
  readonly title: string;
  readonly count?: number;
  readonly children: ReactNode;
}) {
  return (
    <Paper withBorder p="lg" component="section" aria-label={title}>
      <Title order={2} size="h5" mb="sm">
        {title}
        {count !== undefined && count > 0 && (
          <Text span c="dimmed" inherit>
            {" "}
            {number(count)}
          </Text>
        )}
      </Title>
      {children}
    </Paper>
  );
}
