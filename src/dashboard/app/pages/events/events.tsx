import { Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";

import { DataTable } from "../../ui/data-table.tsx";
import { TextFilter, useFilters } from "../../ui/filters.tsx";
import { counted, sentence } from "../../ui/format.ts";
import { PageHeader, TextLink, Dimmed } from "../../ui/layout.tsx";
import { EmptyState, Loaded } from "../../ui/states.tsx";
import { useReader } from "../webhooks/data/data.ts";
import { type CatalogEvent, catalogOptions } from "../webhooks/data/reads.ts";
import { eventsLike } from "./schema-fields.ts";

/** Catalog of all events that a webhook subscription can receive. */
export function Page() {
  const { get, field } = useFilters(["q"]);
  const typed = get("q") ?? "";
  return (
    <>
      <PageHeader
        title="Event catalog"
        description="Every event that ReviewRelay can send, with its fields and examples."
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
      {events.length > 0 && (
        <DataTable
          caption="Events"
          rows={events}
          rowKey={({ value }) => value}
          columns={({ value, category, description, in_batch: inBatch }) => ({
            Event: (
              <>
                <TextLink href={`/events/${value}`}>
                  <code>{value}</code>
                </TextLink>
                <Dimmed>{`${sentence(category)}${inBatch ? ", in batches" : ""}`}</Dimmed>
              </>
            ),
            Description: description,
          })}
        />
      )}
    </>
  );
}
