import { NativeSelect, SegmentedControl, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useParams } from "wouter";

import { EVENT_EXAMPLES } from "../../api/event-examples.ts";
import { CodeBlock } from "../../ui/copy.tsx";
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
import css from "./events.module.css";
import { bodyFields, reachOf } from "./schema-fields.ts";

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
  const { value, description, in_batch: isInBatch, subscribable: isSubscribable } = event;
  return (
    <>
      <PageHeader
        title={value}
        back={BACK}
        description={
          <>
            {description}
            {isSubscribable && !isInBatch && " It is sent immediately and is not part of batches."}
          </>
        }
      />
      <Stack gap="lg">
        <Section
          title="Send a test event"
          description={
            <>
              A test has sample values. It is signed and recorded like a real event, and carries the
              header <code className="one-line">X-SVC-Test: 1</code>.
            </>
          }
        >
          <Loaded query={useQuery(subscriptionsOptions(useReader()))}>
            {({ data }) => <TestAtSubscription event={event} subscriptions={data} />}
          </Loaded>
        </Section>
        <div className={css.body}>
          <Section
            title="Fields"
            description="In the order of the body. New fields may be added at any time, so ignore those that you do not know."
          >
            <Fields event={event} />
          </Section>
          <div className={css.example}>
            <Section title="Example">
              <Example event={event} />
            </Section>
          </div>
        </div>
      </Stack>
    </>
  );
}

function Fields({ event }: EventProps) {
  return (
    <dl className={css.fields}>
      {bodyFields(event).map(({ path, type, presence, meaning }) => (
        <div key={path} data-depth={path.split(".").length - 1 || undefined}>
          <dt>
            <code>
              <span className={css.outer}>{outerOf(path)}</span>
              {path.slice(outerOf(path).length)}
            </code>{" "}
            <Text span size="xs" c="dimmed">
              {presence === "always" ? type : `${type}, optional`}
            </Text>
          </dt>
          <Text size="sm" component="dd">
            {withCode(meaning)}
          </Text>
        </div>
      ))}
    </dl>
  );
}

/** Returns the part of a path that names the objects around its field, such as `review.`. */
const outerOf = (path: string): string => path.slice(0, path.lastIndexOf(".") + 1);

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
            { value: "full", label: "Full" },
            { value: "minimal", label: "Minimal" },
          ]}
          value={mode}
          onChange={setMode}
        />
      )}
      <CodeBlock
        isJson
        label={`${value}, ${mode} body`}
        code={mode === "minimal" ? (minimal ?? full) : full}
      />
    </Stack>
  );
}

/** Orders subscriptions for a test: active ones before disabled ones, then immediate ones before batches. */
const preference = ({ is_active: isActive, delivery_kind: kind }: Subscription) =>
  (isActive ? 0 : 2) + (kind === "immediate" ? 0 : 1);

/** Sends the event as a test to the selected subscription and shows the receiver's response. */
function TestAtSubscription({
  event,
  subscriptions,
}: EventProps & { subscriptions: readonly Subscription[] }) {
  const [chosen, setChosen] = useState("");
  const sorted = subscriptions.toSorted((a, b) => preference(a) - preference(b));
  const one = sorted.find(({ id }) => id === chosen) ?? sorted[0];
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
        data={sorted.map(({ id, label, delivery_kind: kind }) => ({
          value: id,
          label: `${label} (${kind})`,
        }))}
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
