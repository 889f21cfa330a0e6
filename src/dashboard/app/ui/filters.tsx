import {
  Box,
  Button,
  CloseButton,
  Collapse,
  Group,
  NativeSelect,
  type NativeSelectProps,
  TextInput,
  type TextInputProps,
} from "@mantine/core";
import { useDebouncedCallback, useDisclosure } from "@mantine/hooks";
import { type ReactNode, useId, useState } from "react";
import { useSearchParams } from "wouter";

import css from "./filters.module.css";
import { instantOf, localTimeOf } from "./format.ts";
import { Icon } from "./icon.tsx";
import { useZone, zoneName } from "./time.tsx";
import { useIsNarrow } from "./layout.tsx";

/**
 * Stores the filters of a list in the query of the address, so that links, reloads and the back button keep the
 * filters.
 */
export function useFilters<const N extends string>(names: readonly N[]) {
  const [params, setParams] = useSearchParams();
  const update = (change: (before: URLSearchParams) => URLSearchParams) =>
    setParams(change, { replace: true });
  /** Returns the value of a filter; undefined if the filter is not set. */
  const get = (name: N): string | undefined => params.get(name) || undefined;
  const set = (changes: { readonly [K in N]?: string | undefined }): void =>
    setAll(Object.entries<string | undefined>(changes));
  const setAll = (changes: readonly (readonly [name: string, value: string | undefined])[]) =>
    update((before) => {
      const after = new URLSearchParams(before);
      for (const [name, value] of changes) {
        if (value === undefined || value === "") after.delete(name);
        else after.set(name, value);
      }
      return after;
    });
  return {
    get,
    set,
    /** Returns the properties that connect a field to a filter. */
    field: (name: N) => ({
      value: get(name),
      onChange: (value: string | undefined) => setAll([[name, value]]),
    }),
    count: names.filter((name) => params.has(name)).length,
    clear: () =>
      update(
        (before) =>
          new URLSearchParams([...before].filter(([one]) => !names.some((n) => n === one))),
      ),
  };
}

/** Returns the properties of a dialog's button for a page on which a link with `?new=1` opens the dialog. */
export function useOpenedByLink() {
  const { get, set } = useFilters(["new"]);
  const isOpen = get("new") !== undefined;
  return { isOpen, onClosed: () => isOpen && set({ new: undefined }) };
}

interface FilterBarProps {
  /** Number of filters that are set. */
  readonly count: number;
  /** Number of set filters that stay visible on a phone. The button's count leaves them out. */
  readonly inView?: number;
  readonly onClear: () => void;
  /** True if the filters are collapsed on wide windows, too. */
  readonly isFolded?: boolean;
  /** Search field, which stays visible on phones while the other filters are collapsed. */
  readonly search?: ReactNode;
  readonly children: ReactNode;
}

/**
 * Filters of a list. On a phone all filters except the search field are collapsed behind a button that shows
 * how many are set.
 */
export function FilterBar({
  count,
  inView = 0,
  onClear,
  isFolded = false,
  search,
  children,
}: FilterBarProps) {
  const [isOpen, { toggle }] = useDisclosure(isFolded && count > inView);
  const isNarrow = useIsNarrow("sm");
  const isWide = !isNarrow && !isFolded;
  const id = useId();
  return (
    <Box component="search" mb="md" aria-label="Filters">
      {!isWide && search}
      {!isWide && (
        <Button
          variant="default"
          fullWidth={isNarrow}
          size={isNarrow ? "sm" : "xs"}
          mt={search === undefined ? 0 : "xs"}
          leftSection={<Icon name="filter" size={16} />}
          aria-expanded={isOpen}
          aria-controls={id}
          onClick={toggle}
        >
          {count === inView ? "Filters" : `Filters (${count - inView})`}
        </Button>
      )}
      <Collapse expanded={isWide || isOpen} id={id}>
        <div className={css.grid}>
          {isWide && search}
          {children}
        </div>
        {count > inView && (
          <Group mt="xs">
            <Button
              variant="subtle"
              size="compact-sm"
              leftSection={<Icon name="x" size={14} />}
              onClick={onClear}
            >
              Clear filters
            </Button>
          </Group>
        )}
      </Collapse>
    </Box>
  );
}

/** Properties that connect a field to a filter. */
export interface FilterField {
  readonly value: string | undefined;
  readonly onChange: (value: string | undefined) => void;
}

interface ChoiceFilterProps
  extends FilterField, Omit<NativeSelectProps, "value" | "onChange" | "data"> {
  readonly any: string;
  readonly choices: readonly (readonly [value: string, title: string])[];
}

/** Selects one of a few values of a filter. The first choice removes the filter. */
export function ChoiceFilter({ any, choices, value, onChange, ...field }: ChoiceFilterProps) {
  return (
    <NativeSelect
      {...field}
      data={[["", any] as const, ...choices].map(([one, title]) => ({ value: one, label: title }))}
      value={value ?? ""}
      onChange={(event) => onChange(event.currentTarget.value || undefined)}
    />
  );
}

/**
 * Holds the text of a field while the user types it; `valueIn` returns the value that a text stands for. Adopts a value
 * that changed outside of the field, for example by "Clear filters".
 */
export function useTypedText(value: string, valueIn: (text: string) => string) {
  const [text, setText] = useState(value);
  const [known, setKnown] = useState(value);
  if (known !== value) {
    setKnown(value);
    if (valueIn(text) !== value) setText(value);
  }
  return [text, setText] as const;
}

const TYPING_MS = 300;

interface TextFilterProps
  extends FilterField, Omit<TextInputProps, "label" | "value" | "onChange"> {
  readonly label: string;
  /** False if a placeholder replaces the visible label. */
  readonly isLabelled?: boolean;
}

/** Text field of a filter, which applies after a pause in typing. */
export function TextFilter(props: TextFilterProps) {
  const { label, isLabelled = true, value, onChange, ...field } = props;
  const [text, setText] = useTypedText(value ?? "", (typed) => typed.trim());
  const apply = useDebouncedCallback(
    (typed: string) => onChange(typed.trim() || undefined),
    TYPING_MS,
  );
  return (
    <TextInput
      {...field}
      {...(isLabelled ? { label } : { "aria-label": label })}
      value={text}
      leftSection={<Icon name="search" size={16} />}
      rightSection={
        text !== "" && (
          <CloseButton
            size="sm"
            aria-label={`Clear ${label.toLowerCase()}`}
            onClick={() => {
              setText("");
              onChange(undefined);
            }}
          />
        )
      }
      onChange={(event) => {
        setText(event.currentTarget.value);
        apply(event.currentTarget.value);
      }}
    />
  );
}

interface TimeFieldProps extends FilterField, Omit<TextInputProps, "value" | "onChange" | "label"> {
  readonly label: string;
}

/**
 * Field for date and time in the zone of the pages, which its label names. `value` and `onChange` use UTC times in
 * ISO 8601.
 */
export function TimeField({ label, value, onChange, ...field }: TimeFieldProps) {
  const [zone] = useZone();
  const isUtc = zone === "utc";
  return (
    <TextInput
      {...field}
      label={`${label} (${zoneName(zone)})`}
      type="datetime-local"
      value={isUtc ? (instantOf(value)?.slice(0, MINUTE_CHARS) ?? "") : localTimeOf(value)}
      onChange={({ currentTarget: { value: typed } }) =>
        onChange(instantOf(isUtc ? `${typed}Z` : typed))
      }
    />
  );
}

/** Number of characters of an ISO 8601 time up to its minutes. */
const MINUTE_CHARS = 16;
