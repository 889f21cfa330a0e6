import { Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";

import { TextFilter, useFilters } from "../../ui/filters.tsx";
import { counted, sentence } from "../../ui/format.ts";
import { PageHeader, Section } from "../../ui/layout.tsx";
import { Row, Rows } from "../../ui/list.tsx";
import { EmptyState, Loaded } from "../../ui/states.tsx";
import { useReader } from "../webhooks/data/data.ts";
import { type CatalogEvent, catalogOptions } from "../webhooks/data/reads.ts";
import { eventsLike } from "./schema-fields.ts";

import "./events.css";

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
        <search aria-label="Search events" className="event-search">
          <TextFilter label="Search" placeholder="Name, description or field" {...field("q")} />
        </search>
        <Loaded query={useQuery(catalogOptions(useReader()))}>
          {({ events }) => <Found events={eventsLike(events, typed)} typed={typed} />}
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

interface FoundProps {
  readonly events: readonly CatalogEvent[];
  readonly typed: string;
}

function Found({ events, typed }: FoundProps) {
  return (
    <>
      <Text size="sm" c="dimmed" component="output" aria-live="polite">
        {counted(events.filter(({ value }) => value !== TEST_EVENT).length, "event")}
        {events.some(({ value }) => value === TEST_EVENT) && " and the test event"}
        {typed !== "" && " found"}
      </Text>
      {events.length === 0 && (
        <EmptyState icon="search" title="No matching events">
          Try a shorter one, such as “review” or “response”.
        </EmptyState>
      )}
      {[...Map.groupBy(events, ({ category }) => category)].map(([category, own]) => (
        <Section key={category} title={sentence(category)}>
          <Rows label={`Events: ${category}`}>
            {own.map((one) => (
              <EventRow key={one.value} event={one} />
            ))}
          </Rows>
        </Section>
      ))}
    </>
  );
}

function EventRow({ event: { value, description, in_batch: inBatch } }: { event: CatalogEvent }) {
  return (
    <Row
      actions={
        !inBatch && (
          <Text span size="sm" c="dimmed">
            Not in batches
          </Text>
        )
      }
    >
      <div className="event-row">
        <Link href={`/events/${value}`} className="event-link">
          <code>{value}</code>
        </Link>
        <Text size="sm">{description}</Text>
      </div>
    </Row>
  );
}
