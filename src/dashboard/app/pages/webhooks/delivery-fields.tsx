import { Stack, Switch, Text } from "@mantine/core";

import { fieldError } from "../../ui/explain.ts";
import { Choice } from "./choice.tsx";
import { useCatalog } from "./data.ts";
import type { Draft, Edit } from "./draft.ts";
import { labelled } from "./endpoint-fields.tsx";
import { EventPicker } from "./event-picker.tsx";
import { PayloadPreview } from "./payload-preview.tsx";

/** What is sent, and how: for a batch most of it is fixed. */
export function DeliveryFields({
  draft,
  edit,
  error,
}: {
  readonly draft: Draft;
  readonly edit: Edit;
  readonly error: unknown;
}) {
  if (draft.kind === "batch") return <BatchFields />;
  return (
    <div className="with-preview">
      <Stack gap="lg">
        <EventPicker
          events={draft.events}
          onChange={(events) => edit({ events })}
          error={labelled("The filter", fieldError(error, "events"))}
        />
        <Choice
          label="Body"
          value={draft.payloadMode}
          onChange={(payloadMode) => edit({ payloadMode })}
          error={fieldError(error, "payload_mode")}
          options={[
            {
              value: "full",
              label: "Full",
              description:
                "Everything about the event: actor, review, metadata. No call back needed.",
            },
            {
              value: "minimal",
              label: "Minimal",
              description: "Only ids. Your system asks the API for the rest.",
            },
          ]}
        />
        <Choice
          label="Order"
          value={draft.ordering}
          onChange={(ordering) => edit({ ordering })}
          error={fieldError(error, "ordering")}
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
        <Switch
          label="Do not send our own mails"
          description="We leave out the mails that we would send about review actions, to reviewers and account owners, in all of your accounts, because your system tells them. It holds while the subscription is active."
          checked={draft.suppressNative}
          onChange={(event) => edit({ suppressNative: event.currentTarget.checked })}
        />
      </Stack>
      <PayloadPreview mode={draft.payloadMode} events={draft.events} />
    </div>
  );
}

function BatchFields() {
  const events = useCatalog().data?.events ?? [];
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
