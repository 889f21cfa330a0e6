import { Select, Stack, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";

import type { FormState } from "../../../ui/form.tsx";
import { useReader } from "../data/data.ts";
import { catalogOptions } from "../data/reads.ts";
import { type Draft, urlHint } from "../data/draft.ts";

/** Properties of a component for some fields of a subscription. */
export interface FieldsProps {
  readonly form: FormState<Draft>;
}

export function EndpointFields({ form }: FieldsProps) {
  return (
    <Stack>
      <UrlField form={form} />
      <TextInput
        label="Label"
        description="A name for your team. It is not sent to your endpoint."
        required
        maxLength={100}
        {...form.text("label")}
        error={labelled("The label", form.errorOf("label"))}
      />
      {form.draft.delivery_kind === "batch" && <IntervalField form={form} />}
    </Stack>
  );
}

/** Form field for the webhook URL, with hints while the user types. The API makes the final decision. */
function UrlField({ form }: FieldsProps) {
  const hint = urlHint(form.draft.webhook_url.trim());
  const error = labelled("The URL", form.errorOf("webhook_url"));
  return (
    <TextInput
      label="Endpoint URL"
      description={
        hint?.kind === "advice"
          ? hint.text
          : "We POST events to this URL. It must use https and a public address."
      }
      placeholder="https://example.com/webhooks/reviews"
      type="url"
      inputMode="url"
      autoComplete="off"
      spellCheck={false}
      required
      {...form.text("webhook_url")}
      error={error ?? (hint?.kind === "error" && hint.text)}
    />
  );
}

function IntervalField({ form }: FieldsProps) {
  const { batch_interval_hours: intervalHours } = form.draft;
  const hours = useQuery(catalogOptions(useReader())).data?.batch_interval_hours ?? [intervalHours];
  return (
    <Select
      label="Interval"
      description="How often a batch is sent, counted from the creation of the subscription. A batch without events is not sent."
      data={hours.map((one) => ({
        value: String(one),
        label: one === 1 ? "Every hour" : `Every ${one} hours`,
      }))}
      allowDeselect={false}
      value={String(intervalHours)}
      error={labelled("The interval", form.errorOf("batch_interval_hours"))}
      onChange={(value) => value !== null && form.edit({ batch_interval_hours: Number(value) })}
    />
  );
}

/** Builds a sentence from a field name and the API's validation error, such as `The label` + `must not be empty`. */
export function labelled(name: string, error: string | undefined): string | undefined {
  return error === undefined ? undefined : `${name} ${error}.`;
}
