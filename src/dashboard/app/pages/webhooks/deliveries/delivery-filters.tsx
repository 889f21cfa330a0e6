import { Autocomplete, Button, Group, Select } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { useSearchParams } from "wouter";

import {
  ChoiceFilter,
  type FilterField,
  TextFilter,
  TimeField,
  useFilters,
  useTypedText,
} from "../../../ui/filters.tsx";
import { stateWord } from "../../../ui/badges.tsx";
import { OUTCOME_WORDS } from "./attempt-words.ts";
import {
  ALL_FAILURES,
  areNumbers,
  isReviewId,
  isStatus,
  isUlid,
  MESSAGE_FILTER_NAMES,
  deliveryFilterOf,
  OUTCOMES,
  PRESETS,
  STATES,
} from "../data/filters.ts";
import { useReader } from "../data/data.ts";
import { catalogOptions, type SubscriptionProps } from "../data/reads.ts";
import css from "./deliveries.module.css";

/** Words that tell the two kinds of failed attempts apart, which a list shows by colour. */
const FAILURES: Readonly<Record<string, string>> = {
  retry: "Failed, retried",
  failed: "Failed, last attempt",
};

interface DeliveryFiltersProps extends SubscriptionProps {
  /** Buttons at the end of the row of filters. */
  readonly actions: ReactNode;
}

/** Filters of the event list. The address contains their values, so that a link to the filtered list can be shared. */
export function DeliveryFilters({ subscription, actions }: DeliveryFiltersProps) {
  const [isOpen, { toggle }] = useDisclosure();
  const [params] = useSearchParams();
  const { set, clear } = useFilters(MESSAGE_FILTER_NAMES);
  const filter = deliveryFilterOf(params);
  const isFailures = filter.outcome === ALL_FAILURES;
  const { event, event_id: eventId, sequence, status, outcome, q } = filter;
  const hidden = [event, eventId, sequence, status, outcome, q].filter(
    (one) => one !== undefined && one !== ALL_FAILURES,
  );
  const [isMore, setMore] = useState(hidden.length > 0);
  const field = { filter, set };
  return (
    <search
      aria-label="Filter deliveries"
      className={css.attemptFilters}
      data-open={isOpen || undefined}
    >
      <Group gap="xs">
        <Button variant="default" hiddenFrom="sm" aria-expanded={isOpen} onClick={toggle}>
          Filters
        </Button>
        <ReviewField {...field} />
        <TimePreset {...field} />
        <ChoiceFilter
          aria-label="State"
          className={css.filter}
          any="Any state"
          choices={STATES.map((value) => [value, stateWord(value)])}
          value={filter.state}
          onChange={(state) => set({ state })}
        />
        <Button
          className={css.filterButton}
          variant={isFailures ? "filled" : "default"}
          aria-pressed={isFailures}
          onClick={() => set({ outcome: isFailures ? undefined : ALL_FAILURES })}
        >
          With failures
        </Button>
        <Button
          className={css.filterButton}
          variant="subtle"
          px="xs"
          aria-expanded={isMore}
          onClick={() => setMore(!isMore)}
        >
          {isMore ? "Fewer filters" : "More filters"}
        </Button>
        {Object.keys(filter).length > 0 && (
          <Button variant="subtle" px="xs" onClick={clear}>
            Clear
          </Button>
        )}
        <Group gap="xs" ml="auto">
          {actions}
        </Group>
      </Group>
      {isMore && (
        <Group align="flex-end" gap="sm" mt="xs">
          <MoreFields {...field} hasNumbers={subscription.sequence_headers} />
        </Group>
      )}
    </search>
  );
}

interface FieldProps {
  readonly filter: ReturnType<typeof deliveryFilterOf>;
  readonly set: ReturnType<typeof useFilters<(typeof MESSAGE_FILTER_NAMES)[number]>>["set"];
}

/** Filters by review. The field accepts our id of the review or the review site's id. */
function ReviewField({ filter, set }: FieldProps) {
  return (
    <TextFilter
      className={css.filter}
      label="Review"
      isLabelled={false}
      placeholder="Review ID"
      value={filter.review_id ?? filter.external_review_id}
      onChange={(text = "") =>
        set({
          review_id: isReviewId(text) ? text : undefined,
          external_review_id: isReviewId(text) ? undefined : text,
        })
      }
    />
  );
}

const PRESET_WORDS: Readonly<Record<keyof typeof PRESETS, string>> = {
  "1h": "Last hour",
  "24h": "Last 24 hours",
  "7d": "Last 7 days",
};
const CUSTOM = "custom";

function TimePreset({ filter: { within, since, until }, set }: FieldProps) {
  const hasTimes = since !== undefined || until !== undefined;
  const [isCustom, setCustom] = useState(within === undefined && hasTimes);
  const choose = (value = "") => {
    setCustom(value === CUSTOM);
    const preset = Object.hasOwn(PRESETS, value) ? value : undefined;
    if (value !== CUSTOM) set({ within: preset, since: undefined, until: undefined });
    else set({ within: undefined });
  };
  return (
    <>
      <ChoiceFilter
        aria-label="Time"
        className={css.filter}
        any="Any time"
        choices={[...Object.entries(PRESET_WORDS), [CUSTOM, "From … to …"]]}
        value={isCustom || (within === undefined && hasTimes) ? CUSTOM : within}
        onChange={choose}
      />
      {(isCustom || (within === undefined && hasTimes)) && (
        <>
          <TimeField
            label="Since"
            className={`${css.filter} ${css.time}`}
            value={since}
            onChange={(instant) => set({ since: instant })}
          />
          <TimeField
            label="Until"
            className={`${css.filter} ${css.time}`}
            value={until}
            onChange={(instant) => set({ until: instant })}
          />
        </>
      )}
    </>
  );
}

interface MoreFieldsProps extends FieldProps {
  /** True if the receiver of the events sees their numbers. */
  readonly hasNumbers: boolean;
}

function MoreFields({ filter, set, hasNumbers }: MoreFieldsProps) {
  return (
    <>
      <EventField value={filter.event} onChange={(event) => set({ event })} />
      <CompleteField
        label="Event ID"
        placeholder="01JD…"
        value={filter.event_id}
        read={idIn}
        error="An ID has 26 characters."
        onChange={(id) => set({ event_id: id })}
      />
      {(hasNumbers || filter.sequence !== undefined) && (
        <CompleteField
          label="Sequence number"
          placeholder="17 or 17-25"
          value={filter.sequence}
          read={numbersIn}
          error="Enter a number or a range of up to 500, such as 17-25."
          onChange={(sequence) => set({ sequence })}
        />
      )}
      <CompleteField
        label="Status"
        placeholder="404, 5xx or none"
        data={STATUS_CHOICES}
        value={filter.status}
        read={statusIn}
        onChange={(status) => set({ status })}
      />
      <ChoiceFilter
        label="Attempt outcome"
        className={css.filter}
        any="Any"
        choices={[
          [ALL_FAILURES, "Not delivered"],
          ...OUTCOMES.map((value) => [value, FAILURES[value] ?? OUTCOME_WORDS[value]] as const),
        ]}
        value={filter.outcome}
        onChange={(outcome) => set({ outcome })}
      />
      <TextFilter
        className={css.filter}
        label="Error or response"
        placeholder="timeout, or text of the response"
        value={filter.q}
        onChange={(q) => set({ q })}
      />
    </>
  );
}

const STATUS_CHOICES = ["2xx", "3xx", "4xx", "5xx", "none"];

const statusIn = (text: string) => valueIn(text.trim().toLowerCase(), isStatus);
const numbersIn = (text: string) => valueIn(text.replaceAll(" ", ""), areNumbers);
const idIn = (text: string) => valueIn(text.trim().toUpperCase(), isUlid);
const valueIn = (text: string, isComplete: (text: string) => boolean) =>
  isComplete(text) ? text : "";

interface CompleteFieldProps {
  readonly value: string | undefined;
  /** Returns the value that a text stands for, or an empty text while it is incomplete. */
  readonly read: (text: string) => string;
  readonly onChange: (value: string) => void;
  readonly error?: string;
  readonly label: string;
  readonly placeholder: string;
  readonly data?: string[];
}

/**
 * Field of a filter that applies as soon as the typed text is complete, such as an id of 26 characters or a status
 * class like `5xx`.
 */
function CompleteField({ value = "", read, onChange, error, ...field }: CompleteFieldProps) {
  const [text, setText] = useTypedText(value, read);
  const [isLeft, setLeft] = useState(false);
  return (
    <Autocomplete
      className={css.filter}
      spellCheck={false}
      value={text}
      error={isLeft && text.trim() !== "" && read(text) === "" && error}
      onFocus={() => setLeft(false)}
      onBlur={() => setLeft(true)}
      onChange={(next) => {
        setText(next);
        if (read(next) !== value) onChange(read(next));
      }}
      {...field}
    />
  );
}

/**
 * Filters by event name. The field is disabled until the event catalog has loaded, because there is no name to
 * select before.
 */
function EventField({ value, onChange }: FilterField) {
  const events = useQuery(catalogOptions(useReader())).data?.events;
  return (
    <Select
      label="Event"
      placeholder="Any"
      className={css.filter}
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
