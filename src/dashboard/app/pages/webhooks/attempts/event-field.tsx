import { Select } from "@mantine/core";

import { useCatalog } from "../data/data.ts";

interface EventFieldProps {
  readonly value: string | undefined;
  readonly onChange: (value: string | undefined) => void;
}

/** Filters by event. What is typed before there are any events could not be taken with Enter, so it waits for them. */
export function EventField({ value, onChange }: EventFieldProps) {
  const events = useCatalog().data?.events;
  return (
    <Select
      label="Event"
      placeholder="Any"
      className="filter"
      data={events?.map((event) => event.value) ?? []}
      disabled={events === undefined}
      searchable
      selectFirstOptionOnChange
      clearable
      clearButtonProps={{ "aria-label": "Any event" }}
      value={value ?? null}
      onChange={(event) => onChange(event ?? undefined)}
    />
  );
}
