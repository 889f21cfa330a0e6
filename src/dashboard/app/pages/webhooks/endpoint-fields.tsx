import { Select, Stack, TextInput } from "@mantine/core";

import { fieldError } from "../../ui/explain.ts";
import { useCatalog } from "./data.ts";
import type { Draft, Edit } from "./draft.ts";
import { urlHint } from "./url-hint.ts";

interface FieldsProps {
  readonly draft: Draft;
  readonly edit: Edit;
  /** Of the last try to save: the server's word counts. */
  readonly error: unknown;
}

export function EndpointFields({ draft, edit, error }: FieldsProps) {
  const hint = urlHint(draft.url.trim());
  const refused = fieldError(error, "webhook_url");
  return (
    <Stack>
      <TextInput
        label="Endpoint URL"
        description={
          hint?.kind === "advice"
            ? hint.text
            : "Where we POST events to: https, on a public address."
        }
        placeholder="https://example.com/webhooks/reviews"
        type="url"
        inputMode="url"
        autoComplete="off"
        spellCheck={false}
        required
        value={draft.url}
        error={refused === undefined ? hint?.kind === "error" && hint.text : `The URL ${refused}.`}
        onChange={(event) => edit({ url: event.currentTarget.value })}
      />
      <TextInput
        label="Label"
        description="What you call it. Only your team sees it."
        required
        maxLength={100}
        value={draft.label}
        error={labelled("The label", fieldError(error, "label"))}
        onChange={(event) => edit({ label: event.currentTarget.value })}
      />
      {draft.kind === "batch" && <IntervalField draft={draft} edit={edit} error={error} />}
    </Stack>
  );
}

function IntervalField({ draft, edit, error }: FieldsProps) {
  const hours = useCatalog().data?.batch_interval_hours ?? [draft.intervalHours];
  return (
    <Select
      label="Interval"
      description="How often a batch is sent, counted from the creation. An empty one sends nothing."
      data={hours.map((one) => ({
        value: String(one),
        label: one === 1 ? "Every hour" : `Every ${one} hours`,
      }))}
      allowDeselect={false}
      value={String(draft.intervalHours)}
      error={labelled("The interval", fieldError(error, "batch_interval_hours"))}
      onChange={(value) => value !== null && edit({ intervalHours: Number(value) })}
    />
  );
}

/** `The label` and `must not be empty` make a sentence. */
export function labelled(name: string, fault: string | undefined): string | undefined {
  return fault === undefined ? undefined : `${name} ${fault}.`;
}
