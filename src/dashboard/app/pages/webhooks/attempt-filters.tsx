import { Button, Group, Select, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useState } from "react";
import { useSearchParams } from "wouter";

import { OUTCOME_WORDS } from "./attempt-words.ts";
import { filterOf, isUlid, OUTCOMES, type FilterName } from "./attempt-rows.ts";
import { useCatalog } from "./data.ts";
import type { Subscription } from "./model.ts";
import { RecoverButton } from "./recover-dialog.tsx";
import { TimeField } from "./time-field.tsx";

/** What is filtered is in the address: it can be sent to a colleague. */
export function AttemptFilters({ subscription }: { readonly subscription: Subscription }) {
  const [params, setParams] = useSearchParams();
  const [isOpen, { toggle }] = useDisclosure();
  const events = useCatalog().data?.events.map(({ value }) => value) ?? [];
  const filter = filterOf(params);
  const set = (name: FilterName, value: string | null | undefined) =>
    setParams(
      (before) => {
        const after = new URLSearchParams(before);
        if (value === null || value === undefined || value === "") after.delete(name);
        else after.set(name, value);
        return after;
      },
      { replace: true },
    );
  return (
    <Group
      align="flex-end"
      gap="sm"
      component="search"
      aria-label="Filter attempts"
      className="filters"
      data-open={isOpen || undefined}
    >
      <Button variant="default" hiddenFrom="sm" aria-expanded={isOpen} onClick={toggle}>
        Filters
      </Button>
      <Select
        label="Event"
        placeholder="Any"
        className="filter"
        data={events}
        searchable
        clearable
        clearButtonProps={{ "aria-label": "Any event" }}
        value={filter.event ?? null}
        onChange={(value) => set("event", value)}
      />
      <Select
        label="Outcome"
        placeholder="Any"
        className="filter"
        data={OUTCOMES.map((value) => ({ value, label: OUTCOME_WORDS[value] }))}
        clearable
        clearButtonProps={{ "aria-label": "Any outcome" }}
        value={filter.outcome ?? null}
        onChange={(value) => set("outcome", value)}
      />
      <EventIdField value={filter.event_id ?? ""} onChange={(value) => set("event_id", value)} />
      <TimeField label="Since" value={filter.since} onChange={(value) => set("since", value)} />
      <TimeField label="Until" value={filter.until} onChange={(value) => set("until", value)} />
      {Object.keys(filter).length > 0 && (
        <Button
          variant="subtle"
          onClick={() => setParams({ tab: "deliveries" }, { replace: true })}
        >
          Clear
        </Button>
      )}
      <Group ml="auto">
        <RecoverButton subscription={subscription} />
      </Group>
    </Group>
  );
}

/** Counts as soon as it is a whole id, and not before. */
function EventIdField({
  value,
  onChange,
}: {
  readonly value: string;
  readonly onChange: (value: string) => void;
}) {
  const [text, setText] = useState(value);
  const [isLeft, setLeft] = useState(false);
  const [known, setKnown] = useState(value);
  if (value !== known) {
    setKnown(value);
    // Cleared from outside, or another address: not by what is typed here.
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
