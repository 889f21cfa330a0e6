import { Button, Group, Select, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useSearchParams } from "wouter";

import { TimeField, useFilters } from "../../../ui/filters.tsx";
import { OUTCOME_WORDS } from "./attempt-words.ts";
import { FILTER_NAMES, filterOf, isUlid, OUTCOMES } from "../data/filters.ts";
import { useReader } from "../data/data.ts";
import { catalogOptions } from "../data/reads.ts";

interface EventFieldProps {
  readonly value: string | undefined;
  readonly onChange: (value: string | undefined) => void;
}

/**
 * Filters by event name. The field is disabled until the event catalog has loaded, because there is no name to
 * select before.
 */
export function EventField({ value, onChange }: EventFieldProps) {
  const events = useQuery(catalogOptions(useReader())).data?.events;
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

/**
 * Filters of the attempt list. The address contains their values, so that a link to the filtered list can be
 * shared.
 */
export function AttemptFilters() {
  const [isOpen, { toggle }] = useDisclosure();
  return (
    <Group
      align="flex-end"
      gap="sm"
      component="search"
      aria-label="Filter attempts"
      className="attempt-filters"
      data-open={isOpen || undefined}
    >
      <Button variant="default" hiddenFrom="sm" aria-expanded={isOpen} onClick={toggle}>
        Filters
      </Button>
      <Fields />
    </Group>
  );
}

function Fields() {
  const [params] = useSearchParams();
  const { set, clear } = useFilters(FILTER_NAMES);
  const { event, event_id: eventId, outcome, since, until } = filterOf(params);
  const isFiltered = [event, eventId, outcome, since, until].some((one) => one !== undefined);
  return (
    <>
      <EventField value={event} onChange={(one) => set({ event: one })} />
      <Select
        label="Outcome"
        placeholder="Any"
        className="filter"
        data={OUTCOMES.map((value) => ({ value, label: OUTCOME_WORDS[value] }))}
        clearable
        clearButtonProps={{ "aria-label": "Any outcome" }}
        value={outcome ?? null}
        onChange={(value) => set({ outcome: value ?? undefined })}
      />
      <EventIdField value={eventId ?? ""} onChange={(id) => set({ event_id: id })} />
      <TimeField
        label="Since"
        className="filter time"
        value={since}
        onChange={(instant) => set({ since: instant })}
      />
      <TimeField
        label="Until"
        className="filter time"
        value={until}
        onChange={(instant) => set({ until: instant })}
      />
      {isFiltered && (
        <Button variant="subtle" onClick={clear}>
          Clear
        </Button>
      )}
    </>
  );
}

interface EventIdFieldProps {
  readonly value: string;
  readonly onChange: (value: string) => void;
}

/** Filters by event id. The filter applies as soon as the typed text is a complete id of 26 characters. */
export function EventIdField({ value, onChange }: EventIdFieldProps) {
  const [text, setText] = useState(value);
  const [isLeft, setLeft] = useState(false);
  const [known, setKnown] = useState(value);
  if (value !== known) {
    setKnown(value);
    // Adopts a value that changed outside of this field, for example by "Clear filters".
    if (idIn(text) !== value) setText(value);
  }
  const change = (next: string) => {
    setText(next);
    if (idIn(next) !== value) onChange(idIn(next));
  };
  return (
    <TextInput
      label="Event id"
      placeholder="01JD…"
      className="filter"
      spellCheck={false}
      value={text}
      error={isLeft && text.trim() !== "" && idIn(text) === "" && "An id has 26 characters."}
      onFocus={() => setLeft(false)}
      onBlur={() => setLeft(true)}
      onChange={(event) => change(event.currentTarget.value)}
    />
  );
}

function idIn(text: string): string {
  const id = text.trim().toUpperCase();
  return isUlid(id) ? id : "";
}
