import { Button, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";

import { useApi, useSession } from "../../session/session.tsx";
import { TextFilter, useFilters } from "../../ui/filters.tsx";
import { counted, number } from "../../ui/format.ts";
import { PageHeader, Panel } from "../../ui/layout.tsx";
import { StateBadge, StateSummary } from "../../ui/badges.tsx";
import { EmptyState, Loaded } from "../../ui/states.tsx";
import { hasWords } from "../../ui/text-query.ts";
import { Day } from "../../ui/time.tsx";
import { byStore, errorText, isBroken, type StoreGroup } from "./site-words.ts";
import { sitesOptions, type StoreReviewSite } from "./data.ts";
import css from "./sites.module.css";

export function Page() {
  return (
    <>
      <PageHeader
        title="Review sites"
        description="Where your stores are reviewed. Each connection works in two directions: we read reviews from the site, and post your responses to it."
      />
      <Loaded query={useQuery(sitesOptions(useApi()))}>{(sites) => <Sites sites={sites} />}</Loaded>
    </>
  );
}

/** Number of connections from which the page has a search field. */
const SEARCH_FROM = 12;

function Sites({ sites }: { readonly sites: readonly StoreReviewSite[] }) {
  const { get, set, field } = useFilters(["show", "q"]);
  const typed = get("q") ?? "";
  const broken = sites.filter(isBroken);
  if (sites.length === 0) return <NoSites />;
  const isBrokenOnly = get("show") === "broken" && broken.length > 0;
  const shown = (isBrokenOnly ? broken : sites).filter((one) =>
    hasWords(`${one.store_name} ${one.name}`, typed),
  );
  return (
    <Stack gap="lg">
      <StateSummary
        isWell={broken.length === 0}
        title={
          broken.length === 0
            ? allWork(sites.length)
            : `${broken.length} of ${counted(sites.length, "connection")} ${broken.length === 1 ? "needs" : "need"} attention`
        }
        action={
          broken.length > 0 && (
            <Button
              size="xs"
              variant="default"
              aria-pressed={isBrokenOnly}
              onClick={() => set({ show: isBrokenOnly ? undefined : "broken" })}
            >
              {isBrokenOnly ? "Show all" : "Show only these"}
            </Button>
          )
        }
      >
        {broken.length === 0
          ? "New reviews arrive automatically."
          : "They are listed first, each with the next step."}
      </StateSummary>
      {sites.length >= SEARCH_FROM && (
        <TextFilter
          label="Search"
          isLabelled={false}
          placeholder="Store or review site"
          maw={420}
          {...field("q")}
        />
      )}
      {shown.length === 0 && (
        <EmptyState icon="search" title="No connection matches">
          Try the name of a store or of a review site.
        </EmptyState>
      )}
      {byStore(shown).map((store) => (
        <Store key={store.id} store={store} />
      ))}
    </Stack>
  );
}

function Store({ store }: { readonly store: StoreGroup<StoreReviewSite> }) {
  return (
    <Panel title={store.name}>
      <ul className={css.divided}>
        {store.connections.map((one) => (
          <li key={one.id} className={css.siteRow}>
            <Text fw={600}>{one.name}</Text>
            <Axis title="Reading reviews" axis={one.pull} />
            <Axis title="Posting responses" axis={one.post} />
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Axis({ title, axis }: { readonly title: string; readonly axis: StoreReviewSite["pull"] }) {
  const { connected, error_code: code, since } = axis;
  const { reason, advice } = errorText(code);
  return (
    <div>
      <Group gap="xs">
        <Text size="sm">{title}</Text>
        <StateBadge state={connected ? "connected" : "disconnected"} />
        <Text size="sm" c="dimmed" span>
          {since !== null && (
            <>
              since <Day at={since} />
            </>
          )}
        </Text>
      </Group>
      {!connected && (
        <Text size="sm" mt={4}>
          {reason}{" "}
          <Text span fw={600} inherit>
            {advice}
          </Text>{" "}
          {code !== null && (
            <Text span c="dimmed" inherit>
              ({code})
            </Text>
          )}
        </Text>
      )}
    </div>
  );
}

function NoSites() {
  const { white_label: whiteLabel } = useSession();
  const brand = whiteLabel.brand_name ?? "your agency";
  return (
    <EmptyState icon="plug" title="No review site is connected">
      Once a store is connected with a review site, its reviews arrive here automatically. Ask{" "}
      {brand} to connect your stores.
    </EmptyState>
  );
}

const allWork = (count: number) =>
  count === 1 ? "Your connection works" : `All ${number(count)} connections work`;
