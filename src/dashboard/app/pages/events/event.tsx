import { NativeSelect, SegmentedControl, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useParams } from "wouter";

import { EVENT_EXAMPLES } from "../../api/event-examples.ts";
import { CodeBlock } from "../../ui/copy.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { inLines } from "../../ui/format.ts";
import { PageHeader, Section, PageLink } from "../../ui/layout.tsx";
import { Loaded, NotFound } from "../../ui/states.tsx";
import { useReader } from "../webhooks/data/data.ts";
import {
  type CatalogEvent,
  catalogOptions,
  type Subscription,
  subscriptionsOptions,
} from "../webhooks/data/reads.ts";
import { TestEvent } from "../webhooks/test-event.tsx";
import { fieldsOf, reachOf } from "./schema-fields.ts";

const BACK = { href: "/events", title: "Event catalog" };

export function Page() {
  const { event: value = "" } = useParams();
  const catalog = useQuery(catalogOptions(useReader()));
  const event = catalog.data?.events.find((one) => one.value === value);
  if (event !== undefined) return <EventPage key={value} event={event} />;
  if (catalog.data !== undefined) return <NotFound />;
  return (
    <>
      <PageHeader title={value} back={BACK} />
      <Loaded query={catalog}>{() => null}</Loaded>
    </>
  );
}

interface EventProps {
  readonly event: CatalogEvent;
}

function EventPage({ event }: EventProps) {
  return (
    <>
      <PageHeader title={event.value} back={BACK} description={event.description} />
      <Stack gap="lg">
        <Section
          title="Send a test event"
          description={
            <>
              The event has sample values. It is signed, retried and recorded like any other event,
              and carries the header <code className="one-line">X-SVC-Test: 1</code>. It ignores the
              event filter of the subscription.
            </>
          }
        >
          <Loaded query={useQuery(subscriptionsOptions(useReader()))}>
            {({ data }) => <TestAtSubscription event={event} subscriptions={data} />}
          </Loaded>
        </Section>
        <Section
          title="Fields"
          description="Fields of the full payload. They are always present unless noted otherwise. New fields may be added."
        >
          <Fields event={event} />
        </Section>
        <Section title="Example">
          <Example event={event} />
        </Section>
      </Stack>
    </>
  );
}

function Fields({ event }: EventProps) {
  return (
    <DataTable
      caption={`Fields of ${event.value}`}
      rows={fieldsOf(event.schema)}
      rowKey={({ path }) => path}
      columns={({ path, type, presence, meaning }) => ({
        Field: <code>{path}</code>,
        Type: <Text size="sm">{presence === "always" ? type : `${type}; optional`}</Text>,
        Meaning: <Text size="sm">{withCode(meaning)}</Text>,
      })}
    />
  );
}

/** Replaces text between backticks by `<code>` elements. */
function withCode(text: string) {
  return text.split("`").map((part, i) => (i % 2 === 1 ? <code key={i}>{part}</code> : part));
}

function Example({ event: { value, example } }: EventProps) {
  const [mode, setMode] = useState("full");
  const minimal = inLines(EVENT_EXAMPLES[value]?.minimal ?? "");
  const full = JSON.stringify(example, null, 2);
  return (
    <Stack gap="sm" align="stretch">
      {minimal !== undefined && (
        <SegmentedControl
          aria-label="Body"
          w="fit-content"
          data={[
            { value: "full", label: "In full" },
            { value: "minimal", label: "Minimal" },
          ]}
          value={mode}
          onChange={setMode}
        />
      )}
      <CodeBlock
        label={`${value}, ${mode} body`}
        code={mode === "minimal" ? (minimal ?? full) : full}
      />
    </Stack>
  );
}

/** Sends the event as a test to the selected subscription and shows the receiver's response. */
function TestAtSubscription({
  event,
  subscriptions,
}: EventProps & { subscriptions: readonly Subscription[] }) {
  const [chosen, setChosen] = useState("");
  const one =
    subscriptions.find(({ id }) => id === chosen) ??
    subscriptions.find(({ is_active: isActive }) => isActive) ??
    subscriptions[0];
  if (one === undefined)
    return (
      <Text size="sm">
        You have no subscription yet.{" "}
        <PageLink href="/webhooks/new" inherit>
          Create a subscription
        </PageLink>
      </Text>
    );
  return (
    <Stack gap="sm">
      <NativeSelect
        label="Subscription"
        maw={420}
        data={subscriptions.map(({ id, label }) => ({ value: id, label }))}
        value={one.id}
        onChange={(change) => setChosen(change.currentTarget.value)}
      />
      <Text size="sm">{reachOf(event, one)}</Text>
      {one.is_active ? (
        <TestEvent key={one.id} id={one.id} event={event.value} />
      ) : (
        <Text size="sm">
          The subscription is disabled and sends nothing until you enable it.{" "}
          <PageLink href={`/webhooks/${one.id}`} inherit>
            Open the subscription
          </PageLink>
        </Text>
      )}
    </Stack>
  );
}
