import { Select, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";

import type { FormState } from "../../../ui/form.tsx";
import { useReader } from "../data/data.ts";
import { catalogOptions } from "../data/reads.ts";
import { type Draft, urlHint } from "../data/draft.ts";

/** Properties of a component for some fields of a subscription. */
export interface FieldsProps {
  readonly form: FormState<Draft>;
}

interface UrlFieldProps extends FieldsProps {
  /** True if the field takes the focus when it appears, because the user types into it next. */
  readonly isFirst?: boolean;
}

/** Form field for the webhook URL, with hints while the user types. The API makes the final decision. */
export function UrlField({ form, isFirst = false }: UrlFieldProps) {
  const hint = urlHint(form.draft.webhook_url.trim());
  const error = labelled("The URL", form.reasonOf("webhook_url"));
  return (
    <TextInput
      label="Endpoint URL"
      description={
        hint?.kind === "advice"
          ? hint.text
          : "We POST events to this URL. It must use https and a public address; only a development server allows http."
      }
      placeholder="https://example.com/webhooks/reviews"
      type="url"
      inputMode="url"
      autoComplete="off"
      spellCheck={false}
      required
      // Autofocus is acceptable because the user has just opened the form and will type the URL next.
      // oxlint-disable-next-line jsx-a11y/no-autofocus
      autoFocus={isFirst}
      {...form.text("webhook_url")}
      error={error ?? (hint?.kind === "error" && hint.text)}
    />
  );
}

export function LabelField({ form }: FieldsProps) {
  return (
    <TextInput
      label="Label"
      description="A name for your team. It is not sent to your endpoint."
      required
      maxLength={100}
      {...form.text("label")}
      error={labelled("The label", form.reasonOf("label"))}
    />
  );
}

/** Form field for the interval of a batch subscription. Renders nothing for an immediate one. */
export function IntervalField({ form }: FieldsProps) {
  const { batch_interval_hours: intervalHours, delivery_kind: kind } = form.draft;
  const hours = useQuery(catalogOptions(useReader())).data?.batch_interval_hours ?? [intervalHours];
  if (kind !== "batch") return null;
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
      error={labelled("The interval", form.reasonOf("batch_interval_hours"))}
      onChange={(value) => value !== null && form.edit({ batch_interval_hours: Number(value) })}
    />
  );
}

/** Builds a sentence from a field name and the API's validation error, such as `The label` + `must not be empty`. */
export function labelled(name: string, error: string | undefined): string | undefined {
  return error === undefined ? undefined : `${name} ${error}.`;
}
