import { Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";

import { DataTable } from "../../ui/data-table.tsx";
import { TextFilter, useFilters } from "../../ui/filters.tsx";
import { counted } from "../../ui/format.ts";
import { Dimmed, PageHeader, PageLink } from "../../ui/layout.tsx";
import { EmptyState, Loaded } from "../../ui/states.tsx";
import { useReader } from "../webhooks/data/data.ts";
import { type CatalogEvent, catalogOptions } from "../webhooks/data/reads.ts";
import css from "./events.module.css";
import { eventsLike } from "./schema-fields.ts";

/** Catalog of all events that a webhook subscription can receive. */
export function Page() {
  const { get, field } = useFilters(["q"]);
  const typed = get("q") ?? "";
  return (
    <>
      <PageHeader
        title="Event catalog"
        description="Every event that a webhook can send you, with its fields and an example. Events are sent immediately or in batches, unless the list says otherwise."
      />
      <Stack gap="md">
        <search aria-label="Search events" style={{ maxWidth: 420 }}>
          <TextFilter label="Search" placeholder="Name, description or field" {...field("q")} />
        </search>
        <Loaded query={useQuery(catalogOptions(useReader()))}>
          {({ events }) => <EventList events={eventsLike(events, typed)} typed={typed} />}
        </Loaded>
      </Stack>
    </>
  );
}

/**
 * Name of the test event. The service sends it only on request, and to every subscription regardless of its
 * event filter.
 */
const TEST_EVENT = "webhook.test";

interface EventListProps {
  readonly events: readonly CatalogEvent[];
  readonly typed: string;
}

function EventList({ events, typed }: EventListProps) {
  return (
    <>
      <Text size="sm" c="dimmed" component="output" aria-live="polite">
        {counted(events.filter(({ value }) => value !== TEST_EVENT).length, "event")}
        {events.some(({ value }) => value === TEST_EVENT) && " and the test event"}
        {typed !== "" && " found"}
      </Text>
      {events.length === 0 && (
        <EmptyState icon="search" title="No matching events">
          Try a shorter search, such as “review” or “response”.
        </EmptyState>
      )}
      {CATEGORIES.map(([category, title]) => (
        <Category
          key={category}
          title={title}
          events={events.filter((one) => one.category === category)}
        />
      ))}
    </>
  );
}

const CATEGORIES = [
  ["review", "Reviews"],
  ["response", "Responses"],
  ["posting", "Publishing of responses"],
  ["connection", "Connections to review sites"],
  ["test", "Test"],
] as const;

interface CategoryProps {
  readonly title: string;
  readonly events: readonly CatalogEvent[];
}

function Category({ title, events }: CategoryProps) {
  if (events.length === 0) return null;
  return (
    <section aria-label={title}>
      <Title order={2} size="h5" mb="xs">
        {title}
      </Title>
      <DataTable
        caption={title}
        rows={events}
        rowKey={({ value }) => value}
        lines={css.lines}
        columns={({ value, description, in_batch: isInBatch, subscribable }) => ({
          Event: (
            <PageLink href={`/events/${value}`} className={`row-link ${css.name}`}>
              <code>{value}</code>
            </PageLink>
          ),
          Description: (
            <Text size="sm" className={css.words}>
              {description}
            </Text>
          ),
          Sent: <Dimmed>{sentWhen(isInBatch, subscribable)}</Dimmed>,
        })}
      />
    </section>
  );
}

function sentWhen(isInBatch: boolean, isSubscribable: boolean): string {
  if (!isSubscribable) return "On request";
  return isInBatch ? "" : "Only immediately";
}
