import { Checkbox, Group, Stack, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { Choice } from "../../../ui/form.tsx";
import { counted, sentence } from "../../../ui/format.ts";
import { useReader } from "../data/data.ts";
import { type CatalogEvent, catalogOptions } from "../data/reads.ts";
import css from "./form.module.css";

interface PickerProps {
  /** Names of the selected events; null for all events, including those added in the future. */
  readonly events: readonly string[] | null;
  readonly onChange: (events: readonly string[] | null) => void;
  readonly error: string | undefined;
}

/** Choice between all events and some of them. */
export function EventPicker({ events, onChange, error }: PickerProps) {
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
            description: "The others are not sent to this endpoint.",
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
