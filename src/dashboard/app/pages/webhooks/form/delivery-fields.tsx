import { Select, Stack, Switch, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";

import { EVENT_EXAMPLES } from "../../../api/event-examples.ts";
import { CodeBlock } from "../../../ui/copy.tsx";
import { Choice } from "../../../ui/form.tsx";
import { inLines } from "../../../ui/format.ts";
import { GuideLink } from "../../../ui/layout.tsx";
import { useReader } from "../data/data.ts";
import { catalogOptions } from "../data/reads.ts";
import { type FieldsProps, labelled } from "./endpoint-fields.tsx";
import { EventPicker } from "./event-picker.tsx";

/** Form fields for the events of a subscription and their form. A batch subscription has no choice. */
export function EventFields({ form }: FieldsProps) {
  const { delivery_kind: kind, events } = form.draft;
  if (kind === "batch")
    return (
      <Text size="sm">
        A batch has all events about reviews, responses and postings since the last batch, in order.
        Each event is a request of its own, with the full body. Events about connections are not
        part of a batch.
      </Text>
    );
  return (
    <Stack gap="lg">
      <EventPicker
        events={events}
        onChange={(some) => form.edit({ events: some })}
        error={labelled("The filter", form.reasonOf("events"))}
      />
      <BodyChoice form={form} />
    </Stack>
  );
}

/** Form fields for the order of deliveries, further headers and our own mails. */
export function DeliverySettings({ form }: FieldsProps) {
  const { draft } = form;
  const isBatch = draft.delivery_kind === "batch";
  return (
    <Stack gap="lg">
      {!isBatch && <OrderChoice form={form} />}
      <Switch
        label="Send Standard Webhooks headers"
        description="Adds webhook-id, webhook-timestamp and webhook-signature, which the libraries of Standard Webhooks verify. All other headers stay the same."
        checked={draft.standard_webhooks}
        onChange={(event) => form.edit({ standard_webhooks: event.currentTarget.checked })}
      />
      {!isBatch && (
        <>
          <Switch
            label="Send sequence headers"
            description={
              <>
                Numbers your events in X-SVC-Sequence and X-SVC-Settled, so that your endpoint
                notices if one is missing.{" "}
                <GuideLink guide="receiving#notice-missed-events">Notice missed events</GuideLink>
              </>
            }
            checked={draft.sequence_headers}
            onChange={(event) => form.edit({ sequence_headers: event.currentTarget.checked })}
          />
          <Switch
            label="Turn off our emails"
            description="Use it if your system sends emails itself. While this subscription is active, we do not email the reviewers and account owners of your accounts about reviews."
            checked={draft.suppress_native_notifications}
            onChange={(event) =>
              form.edit({ suppress_native_notifications: event.currentTarget.checked })
            }
          />
        </>
      )}
    </Stack>
  );
}

function BodyChoice({ form }: FieldsProps) {
  return (
    <Choice
      label="Body"
      value={form.draft.payload_mode}
      onChange={(mode) => form.edit({ payload_mode: mode })}
      error={form.errorOf("payload_mode")}
      options={[
        {
          value: "full",
          label: "Full",
          description:
            "Everything about the event: the person, the review and the details. You do not need to call the API.",
        },
        {
          value: "minimal",
          label: "Minimal",
          description: "Only IDs. Your system reads the rest from the API.",
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
          label: "Strict across all events",
          description:
            "One request at a time, in the order in which things happened. If one fails, all later events wait for its retry.",
        },
        {
          value: "review",
          label: "Strict per review",
          description:
            "The events of one review stay in order, and different reviews are sent in parallel. Best for slow endpoints and many events.",
        },
      ]}
    />
  );
}

/** Shows fields next to a sample of the body that they lead to. */
export function WithPreview({ form, children }: FieldsProps & { readonly children: ReactNode }) {
  const { delivery_kind: kind, payload_mode: mode, events } = form.draft;
  const catalog = useQuery(catalogOptions(useReader())).data?.events ?? [];
  const inBatch = catalog.filter((one) => one.in_batch).map(({ value }) => value);
  return (
    <div className="with-preview">
      {children}
      {kind === "batch" ? (
        <PayloadPreview mode="full" events={inBatch} />
      ) : (
        <PayloadPreview mode={mode} events={events} />
      )}
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
        isJson
        code={inLines(EVENT_EXAMPLES[shown]?.[mode] ?? "") ?? ""}
      />
    </Stack>
  );
}
