import { Select, Stack, Switch, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { EVENT_EXAMPLES } from "../../../api/event-examples.ts";
import { CodeBlock } from "../../../ui/copy.tsx";
import type { FormState } from "../../../ui/form.tsx";
import { inLines } from "../../../ui/format.ts";
import { useReader } from "../data/data.ts";
import { catalogOptions } from "../data/reads.ts";
import type { Draft } from "../data/draft.ts";
import { Choice, labelled } from "./endpoint-fields.tsx";
import { EventPicker } from "./event-picker.tsx";

interface FieldsProps {
  readonly form: FormState<Draft>;
}

/**
 * Form fields for events, payload mode and ordering. Most of them are hidden for batch subscriptions, to which
 * they do not apply.
 */
export function DeliveryFields({ form }: FieldsProps) {
  const { draft } = form;
  if (draft.kind === "batch") return <BatchFields />;
  return (
    <div className="with-preview">
      <Stack gap="lg">
        <EventPicker
          events={draft.events}
          onChange={(events) => form.edit({ events })}
          error={labelled("The filter", form.errorOf("events"))}
        />
        <BodyChoice form={form} />
        <OrderChoice form={form} />
        <Switch
          label="Do not send our own mails"
          description="We leave out the mails that we would send about review actions, to reviewers and account owners, in all of your accounts, because your system tells them. It holds while the subscription is active."
          checked={draft.suppressNative}
          onChange={(event) => form.edit({ suppressNative: event.currentTarget.checked })}
        />
      </Stack>
      <PayloadPreview mode={draft.payloadMode} events={draft.events} />
    </div>
  );
}

function BodyChoice({ form }: FieldsProps) {
  return (
    <Choice
      label="Body"
      value={form.draft.payloadMode}
      onChange={(payloadMode) => form.edit({ payloadMode })}
      error={form.errorOf("payloadMode")}
      options={[
        {
          value: "full",
          label: "Full",
          description: "Everything about the event: actor, review, metadata. No call back needed.",
        },
        {
          value: "minimal",
          label: "Minimal",
          description: "Only ids. Your system asks the API for the rest.",
        },
      ]}
    />
  );
}

function OrderChoice({ form }: FieldsProps) {
  return (
    <Choice
      label="Order"
      value={form.draft.ordering}
      onChange={(ordering) => form.edit({ ordering })}
      error={form.errorOf("ordering")}
      options={[
        {
          value: "subscription",
          label: "Strict, over everything",
          description:
            "One request at a time, in the order in which things happened. An event that waits for a retry holds back all behind it.",
        },
        {
          value: "review",
          label: "Strict per review",
          description:
            "The events of one review stay in order; different reviews go out in parallel. For slow endpoints and much traffic.",
        },
      ]}
    />
  );
}

function BatchFields() {
  const events = useQuery(catalogOptions(useReader())).data?.events ?? [];
  const inBatch = events.filter((one) => one.in_batch).map(({ value }) => value);
  return (
    <div className="with-preview">
      <Text size="sm">
        A batch carries every event about reviews, responses and postings, in order, each in a
        request of its own with the full body. Connection events are not part of it.
      </Text>
      <PayloadPreview mode="full" events={inBatch} />
    </div>
  );
}

interface PayloadPreviewProps {
  readonly mode: "full" | "minimal";
  /** Names of the selected events; null for all events. */
  readonly events: readonly string[] | null;
}

/** Shows a sample webhook body for one of the selected events. */
function PayloadPreview({ mode, events }: PayloadPreviewProps) {
  const values = (events ?? Object.keys(EVENT_EXAMPLES)).filter((one) => one in EVENT_EXAMPLES);
  const [chosen, setChosen] = useState("review_received");
  const shown = values.includes(chosen) ? chosen : values[0];
  if (shown === undefined) return null;
  return (
    <Stack gap="xs">
      <Select
        label="Example"
        description="Each request carries one event."
        data={values}
        value={shown}
        allowDeselect={false}
        searchable
        onChange={(value) => value !== null && setChosen(value)}
      />
      <CodeBlock
        label={`${shown}, ${mode} body`}
        code={inLines(EVENT_EXAMPLES[shown]?.[mode] ?? "") ?? ""}
      />
    </Stack>
  );
}
