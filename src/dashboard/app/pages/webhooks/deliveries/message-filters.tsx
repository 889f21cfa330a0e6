import { Autocomplete, Button, Group, NativeSelect } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useState } from "react";
import { useSearchParams } from "wouter";

import {
  ChoiceFilter,
  TextFilter,
  TimeField,
  useFilters,
  useTypedText,
} from "../../../ui/filters.tsx";
import { sentence } from "../../../ui/format.ts";
import { EventField, EventIdField } from "./attempt-filters.tsx";
import { OUTCOME_WORDS } from "./attempt-words.ts";
import {
  ALL_FAILURES,
  isReviewId,
  isStatus,
  MESSAGE_FILTER_NAMES,
  messageFilterOf,
  OUTCOMES,
  PRESETS,
  STATES,
} from "../data/filters.ts";

/** Filters of the event list. The address contains their values, so that a link to the filtered list can be shared. */
export function MessageFilters() {
  const [isOpen, { toggle }] = useDisclosure();
  const [params] = useSearchParams();
  const { set, clear } = useFilters(MESSAGE_FILTER_NAMES);
  const filter = messageFilterOf(params);
  const isFailures = filter.outcome === ALL_FAILURES;
  const hidden = [filter.event, filter.event_id, filter.status, filter.state, filter.q];
  const [isMore, setMore] = useState(hidden.some((one) => one !== undefined));
  const field = { filter, set };
  return (
    <search aria-label="Filter events" className="attempt-filters" data-open={isOpen || undefined}>
      <Group align="flex-end" gap="sm">
        <Button variant="default" hiddenFrom="sm" aria-expanded={isOpen} onClick={toggle}>
          Filters
        </Button>
        <ReviewField {...field} />
        <TimePreset {...field} />
        <OutcomeField {...field} />
        <Button
          className="filter-button"
          variant={isFailures ? "filled" : "default"}
          aria-pressed={isFailures}
          onClick={() => set({ outcome: isFailures ? undefined : ALL_FAILURES })}
        >
          All failures
        </Button>
        <Button
          className="filter-button"
          variant="subtle"
          aria-expanded={isMore}
          onClick={() => setMore(!isMore)}
        >
          {isMore ? "Fewer filters" : "More filters"}
        </Button>
        {Object.keys(filter).length > 0 && (
          <Button variant="subtle" onClick={clear}>
            Clear
          </Button>
        )}
      </Group>
      {isMore && (
        <Group align="flex-end" gap="sm" mt="sm">
          <MoreFields {...field} />
        </Group>
      )}
    </search>
  );
}

interface FieldProps {
  readonly filter: ReturnType<typeof messageFilterOf>;
  readonly set: ReturnType<typeof useFilters<(typeof MESSAGE_FILTER_NAMES)[number]>>["set"];
}

/** Filters by review. The field accepts our id of the review or the review site's id. */
function ReviewField({ filter, set }: FieldProps) {
  return (
    <div className="filter">
      <TextFilter
        label="Review"
        placeholder="Id, here or at the site"
        value={filter.review_id ?? filter.external_review_id}
        onChange={(text = "") =>
          set({
            review_id: isReviewId(text) ? text : undefined,
            external_review_id: isReviewId(text) ? undefined : text,
          })
        }
      />
    </div>
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
  const choose = (value: string) => {
    setCustom(value === CUSTOM);
    const preset = Object.hasOwn(PRESETS, value) ? value : undefined;
    if (value !== CUSTOM) set({ within: preset, since: undefined, until: undefined });
    else set({ within: undefined });
  };
  return (
    <>
      <NativeSelect
        label="Time"
        className="filter"
        value={isCustom || (within === undefined && hasTimes) ? CUSTOM : (within ?? "")}
        onChange={(event) => choose(event.currentTarget.value)}
      >
        <option value="">Any</option>
        {Object.entries(PRESET_WORDS).map(([value, words]) => (
          <option key={value} value={value}>
            {words}
          </option>
        ))}
        <option value={CUSTOM}>From … to …</option>
      </NativeSelect>
      {(isCustom || (within === undefined && hasTimes)) && (
        <>
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
        </>
      )}
    </>
  );
}

function OutcomeField({ filter, set }: FieldProps) {
  return (
    <div className="filter">
      <ChoiceFilter
        label="Attempt outcome"
        any="Any"
        choices={[
          [ALL_FAILURES, "Was not delivered"],
          ...OUTCOMES.map((value) => [value, OUTCOME_WORDS[value]] as const),
        ]}
        value={filter.outcome}
        onChange={(outcome) => set({ outcome })}
      />
    </div>
  );
}

function MoreFields({ filter, set }: FieldProps) {
  return (
    <>
      <EventField value={filter.event} onChange={(event) => set({ event })} />
      <EventIdField value={filter.event_id ?? ""} onChange={(id) => set({ event_id: id })} />
      <StatusField filter={filter} set={set} />
      <div className="filter">
        <ChoiceFilter
          label="State"
          any="Any"
          choices={STATES.map((value) => [value, sentence(value)])}
          value={filter.state}
          onChange={(state) => set({ state })}
        />
      </div>
      <div className="filter">
        <TextFilter
          label="Text of the error"
          placeholder="timeout, or words answered"
          value={filter.q}
          onChange={(q) => set({ q })}
        />
      </div>
    </>
  );
}

const STATUS_CHOICES = ["2xx", "3xx", "4xx", "5xx", "none"];

/**
 * Filters by HTTP status. The filter applies as soon as the typed text is a complete status code or class such
 * as `5xx`.
 */
function StatusField({ filter: { status }, set }: FieldProps) {
  const [text, setText] = useTypedText(status ?? "", statusIn);
  const change = (next: string) => {
    setText(next);
    if (statusIn(next) !== (status ?? "")) set({ status: statusIn(next) });
  };
  return (
    <Autocomplete
      label="Status"
      placeholder="404, 5xx or none"
      className="filter"
      data={STATUS_CHOICES}
      value={text}
      onChange={change}
    />
  );
}

function statusIn(text: string): string {
  const status = text.trim().toLowerCase();
  return isStatus(status) ? status : "";
}
