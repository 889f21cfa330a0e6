import { Checkbox, Group, Select, Stack, Switch, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { EVENT_EXAMPLES } from "../../../api/event-examples.ts";
import { CodeBlock } from "../../../ui/copy.tsx";
import { Choice } from "../../../ui/form.tsx";
import { counted, inLines, sentence } from "../../../ui/format.ts";
import { useReader } from "../data/data.ts";
import { type CatalogEvent, catalogOptions } from "../data/reads.ts";
import { type FieldsProps, labelled } from "./endpoint-fields.tsx";
import css from "./delivery-fields.module.css";

/**
 * Form fields for events, payload mode and ordering. Most of them are hidden for batch subscriptions, to which
 * they do not apply.
 */
export function DeliveryFields({ form }: FieldsProps) {
  const { draft } = form;
  if (draft.delivery_kind === "batch") return <BatchFields form={form} />;
  return (
    <div className="with-preview">
      <Stack gap="lg">
        <EventPicker
          events={draft.events}
          onChange={(events) => form.edit({ events })}
          error={labelled("The filter", form.errorOf("events"))}
        />
        <BodyChoice form={form} />
        <OrderChoice form={form} />
        <Switch
          label="Turn off our emails"
          description="Your system sends its own emails: we do not email reviewers and account owners of your accounts about review actions while this subscription is active."
          checked={draft.suppress_native_notifications}
          onChange={(event) =>
            form.edit({ suppress_native_notifications: event.currentTarget.checked })
          }
        />
        <StandardSwitch form={form} />
      </Stack>
      <PayloadPreview mode={draft.payload_mode} events={draft.events} />
    </div>
  );
}

function StandardSwitch({ form }: FieldsProps) {
  return (
    <Switch
      label="Send Standard Webhooks headers"
      description="Deliveries also carry webhook-id, webhook-timestamp and webhook-signature, which Standard Webhooks libraries verify. The other headers do not change."
      checked={form.draft.standard_webhooks}
      onChange={(event) => form.edit({ standard_webhooks: event.currentTarget.checked })}
    />
  );
}

function BodyChoice({ form }: FieldsProps) {
  return (
    <Choice
      label="Body"
      value={form.draft.payload_mode}
      onChange={(mode) => form.edit({ payload_mode: mode })}
      error={form.errorOf("payload_mode")}
      options={[
        {
          value: "full",
          label: "Full",
          description:
            "All data of the event: actor, review and metadata. You do not need to call the API.",
        },
        {
          value: "minimal",
          label: "Minimal",
          description: "Only ids. Your system reads the rest from the API.",
        },
      ]}
    />
  );
}

function OrderChoice({ form }: FieldsProps) {
  return (
    <Choice
      label="Order"
      value={form.draft.ordering}
      onChange={(ordering) => form.edit({ ordering })}
      error={form.errorOf("ordering")}
      options={[
        {
          value: "subscription",
          label: "Strict across all events",
          description:
            "One request at a time, in the order of the events. An event that waits for a retry blocks all later events.",
        },
        {
          value: "review",
          label: "Strict per review",
          description:
            "The events of one review stay in order; events of different reviews are sent in parallel. Use it for slow endpoints and high traffic.",
        },
      ]}
    />
  );
}

function BatchFields({ form }: FieldsProps) {
  const events = useQuery(catalogOptions(useReader())).data?.events ?? [];
  const inBatch = events.filter((one) => one.in_batch).map(({ value }) => value);
  return (
    <div className="with-preview">
      <Stack gap="lg">
        <Text size="sm">
          A batch carries every event about reviews, responses and postings, in order, each in a
          request of its own with the full body. Connection events are not included.
        </Text>
        <StandardSwitch form={form} />
      </Stack>
      <PayloadPreview mode="full" events={inBatch} />
    </div>
  );
}

interface PayloadPreviewProps {
  readonly mode: "full" | "minimal";
  /** Names of the selected events; null for all events. */
  readonly events: readonly string[] | null;
}

/** Shows a sample webhook body for one of the selected events. */
function PayloadPreview({ mode, events }: PayloadPreviewProps) {
  const values = (events ?? Object.keys(EVENT_EXAMPLES)).filter((one) => one in EVENT_EXAMPLES);
  const [chosen, setChosen] = useState("review_received");
  const shown = values.includes(chosen) ? chosen : values[0];
  if (shown === undefined) return null;
  return (
    <Stack gap="xs">
      <Select
        label="Example"
        description="Each request carries one event."
        data={values}
        value={shown}
        allowDeselect={false}
        searchable
        onChange={(value) => value !== null && setChosen(value)}
      />
      <CodeBlock
        label={`${shown}, ${mode} body`}
        code={inLines(EVENT_EXAMPLES[shown]?.[mode] ?? "") ?? ""}
      />
    </Stack>
  );
}

interface PickerProps {
  /** Names of the selected events; null for all events, including those added in the future. */
  readonly events: readonly string[] | null;
  readonly onChange: (events: readonly string[] | null) => void;
  readonly error: string | undefined;
}

function EventPicker({ events, onChange, error }: PickerProps) {
  const catalog = useQuery(catalogOptions(useReader()));
  const all = (catalog.data?.events ?? []).filter((one) => one.subscribable);
  const choose = (which: "all" | "some") =>
    onChange(which === "all" ? null : all.map(({ value }) => value));
  return (
    <Stack gap="sm">
      <Choice
        label="Events"
        value={events === null ? "all" : "some"}
        onChange={choose}
        error={error}
        options={[
          {
            value: "all",
            label: `All ${all.length || ""} events`,
            description: "Includes event types that are added later.",
          },
          {
            value: "some",
            label: "Only some events",
            description: "Other events are not queued for this subscription.",
            // Disabled until the event catalog has loaded, because before that the option would select no event at all.
            isDisabled: all.length === 0 && events === null,
          },
        ]}
      />
      {events !== null && <SomeEvents all={all} events={events} onChange={onChange} />}
    </Stack>
  );
}

interface SomeEventsProps {
  readonly all: readonly CatalogEvent[];
  readonly events: readonly string[];
  readonly onChange: (events: readonly string[]) => void;
}

function SomeEvents({ all, events, onChange }: SomeEventsProps) {
  const [search, setSearch] = useState("");
  const lowerSearch = search.trim().toLowerCase();
  const found = all.filter(({ value, description }) =>
    `${value} ${value.replaceAll("_", " ")} ${description}`.toLowerCase().includes(lowerSearch),
  );
  const byCategory = [...Map.groupBy(found, ({ category }) => category)];
  const set = (values: readonly string[], isOn: boolean) =>
    onChange(
      isOn
        ? [...new Set([...events, ...values])]
        : events.filter((value) => !values.includes(value)),
    );
  return (
    <Stack gap="sm" className={css.nested}>
      <TextInput
        label="Search events"
        type="search"
        value={search}
        onChange={(event) => setSearch(event.currentTarget.value)}
      />
      <Text size="sm" c="dimmed" aria-live="polite">
        {counted(events.length, "event")} of {all.length} selected
        {lowerSearch !== "" && `, ${found.length} found`}
      </Text>
      {byCategory.map(([category, some]) => (
        <Category key={category} {...{ category, some, events, set }} />
      ))}
      {found.length === 0 && (
        <Text size="sm">No event contains “{search}” in its name or description.</Text>
      )}
    </Stack>
  );
}

interface CategoryProps {
  readonly category: string;
  /** Events of the category that match the search. */
  readonly some: readonly CatalogEvent[];
  /** Names of all selected events, including those of other categories. */
  readonly events: readonly string[];
  readonly set: (values: readonly string[], isOn: boolean) => void;
}

function Category({ category, some, events, set }: CategoryProps) {
  const values = some.map(({ value }) => value);
  const count = values.filter((value) => events.includes(value)).length;
  return (
    <fieldset>
      <legend className="unseen">{sentence(category)} events</legend>
      <Checkbox
        label={
          <Group gap={6} component="span">
            <Text span fw={600} size="sm">
              {sentence(category)}
            </Text>
            <Text span size="sm" c="dimmed">
              {count} of {values.length}
            </Text>
          </Group>
        }
        aria-label={`All ${sentence(category)} events`}
        checked={count === values.length}
        indeterminate={count > 0 && count < values.length}
        onChange={(event) => set(values, event.currentTarget.checked)}
      />
      <div className={css.eventGrid}>
        {some.map(({ value, description }) => (
          <Checkbox
            key={value}
            label={<code className={css.eventName}>{value}</code>}
            description={description}
            checked={events.includes(value)}
            onChange={(event) => set([value], event.currentTarget.checked)}
          />
        ))}
      </div>
    </fieldset>
  );
}
