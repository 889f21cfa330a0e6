import { Button, Group, Stack, Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Link } from "wouter";

import { Form, SubmitButton, useForm } from "../../ui/form.tsx";
import { Panel } from "../../ui/layout.tsx";
import { useReader } from "./data/data.ts";
import { draftOf, hasMoved, missingIn, movedHeaders } from "./data/draft.ts";
import { subscriptionOptions, type SubscriptionProps } from "./data/reads.ts";
import { useSubscriptionActions } from "./data/use-subscription-actions.ts";
import { EndpointCheck } from "./form/endpoint-check.tsx";
import { UrlField } from "./form/endpoint-fields.tsx";
import { MovedHeaders } from "./form/own-headers.tsx";
import { freshSecrets, SigningSecret, VerifyCode } from "./form/verify-code.tsx";
import { TestEvent } from "./test-event.tsx";

/**
 * Last step of the creation: shows the signing secret, sample code that verifies signatures, and a button that
 * sends a test event.
 */
export function VerifyStep({ id }: { readonly id: string }) {
  const { data } = useQuery(subscriptionOptions(useReader(), id));
  const [fresh] = useState(freshSecrets(useQueryClient(), id));
  useEffect(() => {
    globalThis.scrollTo(0, 0);
  }, []);
  /** Number of times that the user has corrected the URL. */
  const [corrections, setCorrections] = useState(0);
  return (
    <Stack maw={760} gap="lg">
      <Text size="sm">
        {data === undefined ? "The subscription" : `“${data.label}”`} is active. Complete these
        steps so that your endpoint accepts only our events.
      </Text>
      <Panel title="1. Store the secret">
        <Text size="sm" mb="sm">
          Store it in the secret store of your endpoint, not in its code. You can view it again in
          the settings at any time.
        </Text>
        <SigningSecret id={id} {...(fresh !== undefined && { fresh })} />
      </Panel>
      <Panel title="2. Verify signatures">
        <VerifyCode />
      </Panel>
      <Panel title="3. Send a test event">
        <Text size="sm" mb="sm">
          A <code>webhook.test</code> is signed, sent, retried and recorded like every event.
        </Text>
        {data !== undefined && (
          <>
            <UrlForm subscription={data} onSaved={() => setCorrections(corrections + 1)} />
            {/* The `key` mounts a new component when the URL changes, so that the result of a test of the former
               URL disappears. */}
            <TestEvent
              id={id}
              key={`${data.webhook_url} ${corrections}`}
              isFirst={corrections > 0}
            />
          </>
        )}
      </Panel>
      <Panel title="4. Check your endpoint">
        <Text size="sm" mb="sm">
          Up to ten test requests, valid ones and forged ones, show whether your endpoint is ready:
          whether it refuses a wrong signature, accepts a repeated delivery, and answers in time.
        </Text>
        <EndpointCheck id={id} />
      </Panel>
      <Group justify="flex-end">
        <Button component={Link} href={`/webhooks/${id}`} variant="default">
          Go to the subscription
        </Button>
      </Group>
    </Stack>
  );
}

interface UrlFormProps extends SubscriptionProps {
  readonly onSaved: () => void;
}

/** Shows the URL of a subscription, and lets the user correct it in place. */
function UrlForm({ subscription, onSaved }: UrlFormProps) {
  const { update } = useSubscriptionActions(subscription.id);
  /** Whether the form is open. `closed` is the state after a cancel, in which the button takes the focus back. */
  const [state, setState] = useState<"resting" | "open" | "closed">("resting");
  const form = useForm({
    initial: draftOf(subscription),
    send: (draft) => update(draft, subscription),
    onDone: (_, changes) => {
      changes.reset();
      setState("resting");
      onSaved();
    },
  });
  const { draft } = form;
  if (state !== "open")
    return (
      <Group gap="xs" mb="sm">
        <Text size="sm" className="mono">
          {subscription.webhook_url}
        </Text>
        <Button
          size="compact-sm"
          variant="subtle"
          // Autofocus is acceptable because the user has just left the form that this button opens.
          // oxlint-disable-next-line jsx-a11y/no-autofocus
          autoFocus={state === "closed"}
          onClick={() => setState("open")}
        >
          Edit URL
        </Button>
      </Group>
    );
  const missing = hasMoved(draft, subscription)
    ? missingIn({ ...draft, headers: movedHeaders(draft, subscription) })
    : "Enter another URL.";
  return (
    <Form
      form={form}
      gap="xs"
      buttons={
        <Group gap="xs" mb="sm">
          <SubmitButton form={form} size="xs" missing={missing}>
            Save URL
          </SubmitButton>
          <Button
            size="xs"
            variant="default"
            onClick={() => {
              form.reset();
              setState("closed");
            }}
          >
            Cancel
          </Button>
        </Group>
      }
    >
      <UrlField form={form} isFirst />
      <MovedHeaders form={form} subscription={subscription} />
    </Form>
  );
}
