import { Button, Group, Paper, Stack, Stepper, Text, TextInput, Title } from "@mantine/core";
import "@mantine/core/styles/Stepper.css";
import { useDisclosure } from "@mantine/hooks";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { Link, useLocation, useSearchParams } from "wouter";

import { fieldError } from "../../api/client.ts";
import { Choice } from "../../ui/form.tsx";
import { Form, type FormState, SubmitButton, useForm } from "../../ui/form.tsx";
import { Icon } from "../../ui/icon.tsx";
import { PageHeader, Panel } from "../../ui/layout.tsx";
import { EmptyState, Loaded } from "../../ui/states.tsx";
import { useReader } from "./data/data.ts";
import { type Draft, draftOf, labelFor, newDraft, urlHint } from "./data/draft.ts";
import {
  type DeliveryKind,
  type Subscription,
  subscriptionOptions,
  type SubscriptionProps,
  subscriptionsOptions,
} from "./data/reads.ts";
import { KINDS } from "./data/subscription-words.ts";
import { useCreateSubscription, useSubscriptionActions } from "./data/use-subscription-actions.ts";
import { DeliveryFields } from "./form/delivery-fields.tsx";
import { EndpointFields, type FieldsProps } from "./form/endpoint-fields.tsx";
import { freshSecrets, keepSecrets, SigningSecret, VerifyCode } from "./form/verify-code.tsx";
import { TestEvent } from "./test-event.tsx";
import css from "./webhooks.module.css";

/**
 * Page that creates a subscription in the steps endpoint, events and verification. In the verification step the
 * address contains the id of the new subscription, so that a reload continues with this step.
 */
export function Page() {
  const [params] = useSearchParams();
  const id = params.get("id");
  const subscriptions = useQuery({ ...subscriptionsOptions(useReader()), enabled: id === null });
  return (
    <>
      <PageHeader
        key={id}
        title="New subscription"
        back={{ href: "/webhooks", title: "Webhooks" }}
        description="Enter your endpoint, choose its events, and verify it with a test event."
      />
      {id === null ? (
        <Loaded query={subscriptions}>
          {({ data }) => <FreeSlotForm taken={data} requestedKind={params.get("kind")} />}
        </Loaded>
      ) : (
        <>
          <SubscriptionCreationSteps active={2} />
          <VerifyStep id={id} />
        </>
      )}
    </>
  );
}

interface FreeSlotFormProps {
  /** Kind of subscription that the address asks for; null if it names none. */
  readonly requestedKind: string | null;
  readonly taken: readonly Subscription[];
}

/**
 * Shows the form for the requested kind of subscription. If the partner already has a subscription of this
 * kind, shows the form for the first kind that is still free.
 */
function FreeSlotForm({ taken, requestedKind }: FreeSlotFormProps) {
  const free = KINDS.filter(({ kind }) => !taken.some((one) => one.delivery_kind === kind));
  const first = free.find(({ kind }) => kind === requestedKind) ?? free[0];
  if (first === undefined)
    return (
      <EmptyState
        icon="webhook"
        title="You have both subscriptions"
        action={
          <Button component={Link} href="/webhooks">
            Go to your subscriptions
          </Button>
        }
      >
        You can have one immediate and one batch subscription. To create another, delete one first.
      </EmptyState>
    );
  return <CreateForm taken={taken} initialKind={first.kind} />;
}

/**
 * Last step of the creation: shows the signing secret, sample code that verifies signatures, and a button that
 * sends a test event.
 */
function VerifyStep({ id }: { readonly id: string }) {
  const { data } = useQuery(subscriptionOptions(useReader(), id));
  const [fresh] = useState(freshSecrets(useQueryClient(), id));
  useEffect(() => {
    globalThis.scrollTo(0, 0);
  }, []);
  return (
    <Stack maw={760} gap="lg">
      <Text size="sm">
        {data === undefined ? "The subscription" : `“${data.label}”`} is active. Complete three
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
            <UrlForm subscription={data} />
            {/* The `key` mounts a new component when the URL changes, so that the result of a test of the former
               URL disappears. */}
            <TestEvent id={id} key={data.webhook_url} />
          </>
        )}
      </Panel>
      <Group justify="flex-end">
        <Button component={Link} href={`/webhooks/${id}`} variant="default">
          Go to the subscription
        </Button>
      </Group>
    </Stack>
  );
}

/** Shows the URL of a subscription, and lets the user correct it in place. */
function UrlForm({ subscription }: SubscriptionProps) {
  const { update } = useSubscriptionActions(subscription.id);
  const [isOpen, { open, close }] = useDisclosure();
  const form = useForm({
    initial: draftOf(subscription),
    send: (draft) => update(draft, subscription),
    onDone: (_, changes) => {
      changes.reset();
      close();
    },
  });
  const hint = urlHint(form.draft.webhook_url.trim());
  if (!isOpen)
    return (
      <Group gap="xs" mb="sm">
        <Text size="sm" className="mono">
          {subscription.webhook_url}
        </Text>
        <Button size="compact-sm" variant="subtle" onClick={open}>
          Edit URL
        </Button>
      </Group>
    );
  return (
    <Form
      form={form}
      gap="xs"
      buttons={
        <Group gap="xs" mb="sm">
          <SubmitButton form={form} size="xs" isReady={hint?.kind !== "error"}>
            Save URL
          </SubmitButton>
          <Button size="xs" variant="default" onClick={close}>
            Cancel
          </Button>
        </Group>
      }
    >
      <TextInput
        label="Endpoint URL"
        type="url"
        data-autofocus
        {...form.text("webhook_url")}
        description={hint?.text}
      />
    </Form>
  );
}

interface CreateFormProps {
  readonly taken: readonly Subscription[];
  readonly initialKind: DeliveryKind;
}

function CreateForm({ taken, initialKind }: CreateFormProps) {
  const [step, setStep] = useState(0);
  const form = useCreation(initialKind, () => setStep(0));
  const { label, webhook_url: url } = form.draft;
  const isReady = label.trim() !== "" && url !== "" && urlHint(url.trim())?.kind !== "error";
  const isFirst = step === 0;
  return (
    <>
      <SubscriptionCreationSteps
        active={step}
        onStep={(next) => (next === 0 || isReady) && setStep(Math.min(next, 1))}
      />
      <Paper withBorder p="lg" {...(isFirst && { maw: 760 })}>
        <Form
          form={isFirst ? { ...form, submit: () => setStep(1) } : form}
          gap="lg"
          buttons={
            <Group justify="space-between">
              {isFirst ? (
                <Button variant="default" component={Link} href="/webhooks">
                  Cancel
                </Button>
              ) : (
                <Button variant="default" onClick={() => setStep(0)}>
                  Back
                </Button>
              )}
              <SubmitButton form={form} isReady={isReady}>
                {isFirst ? "Continue" : "Create subscription"}
              </SubmitButton>
            </Group>
          }
        >
          <StepTitle step={step} />
          {isFirst && <KindChoice taken={taken} form={form} />}
          {isFirst ? <EndpointFields form={form} /> : <DeliveryFields form={form} />}
        </Form>
      </Paper>
    </>
  );
}

/** Holds the form of a new subscription. The label is derived from the URL until the user edits the label. */
function useCreation(kind: DeliveryKind, onEndpointError: () => void): FormState<Draft> {
  const create = useCreateSubscription();
  const client = useQueryClient();
  const [, navigate] = useLocation();
  return useForm({
    name: "new subscription",
    initial: newDraft(kind),
    alongside: ({ webhook_url: url }, { label, webhook_url: before }) =>
      url !== undefined && label === labelFor(before) ? { label: labelFor(url) } : {},
    send: create,
    onDone: ({ id, secret, standard_webhooks_secret }, changes) => {
      changes.reset();
      keepSecrets(client, id, { secret, standard_webhooks_secret });
      navigate(`/webhooks/new?id=${id}`, { replace: true });
    },
    onFailed: (error) => {
      if (isAboutEndpoint(error)) onEndpointError();
    },
  });
}

const isAboutEndpoint = (error: unknown): boolean =>
  ["webhook_url", "label", "batch_interval_hours"].some(
    (field) => fieldError(error, field) !== undefined,
  );

/**
 * Title of a step. Takes the focus when the step changes, so that screen readers announce the step. It is rendered
 * inside the form, so that the form moves the focus to an invalid field after the title has taken it.
 */
function StepTitle({ step }: { readonly step: number }) {
  const heading = useRef<HTMLHeadingElement>(null);
  const shown = useRef(step);
  useEffect(() => {
    if (shown.current !== step) heading.current?.focus();
    shown.current = step;
  }, [step]);
  return (
    <Title order={2} size="h4" ref={heading} tabIndex={-1}>
      {step === 0 ? "Where events go" : "What is sent"}
    </Title>
  );
}

interface KindChoiceProps extends FieldsProps {
  readonly taken: readonly Subscription[];
}

function KindChoice({ taken, form }: KindChoiceProps) {
  return (
    <Choice
      label="Kind"
      value={form.draft.delivery_kind}
      onChange={(kind) => form.edit({ delivery_kind: kind })}
      options={KINDS.map((one) => {
        const holder = taken.find((other) => other.delivery_kind === one.kind);
        return {
          value: one.kind,
          label: one.title,
          description:
            holder === undefined
              ? one.short
              : `${one.short} Already used by “${holder.label}”: you can have one subscription of each kind.`,
          isDisabled: holder !== undefined,
        };
      })}
    />
  );
}

interface CreationStepsProps {
  readonly active: number;
  /** Goes back to an earlier step; undefined once the subscription exists, because its creation cannot be undone. */
  readonly onStep?: (step: number) => void;
}

/** Shows the steps of the creation and the current step. */
function SubscriptionCreationSteps({ active, onStep }: CreationStepsProps) {
  const isDone = onStep === undefined;
  return (
    <Stepper
      active={active}
      {...(onStep && { onStepClick: onStep })}
      size="sm"
      wrap={false}
      className={css.creationSteps}
      completedIcon={<Icon name="check" size={16} />}
      mb="lg"
      maw={760}
    >
      <Stepper.Step label="Endpoint" disabled={isDone} />
      <Stepper.Step label="Events" disabled={isDone} />
      <Stepper.Step label="Verify" {...(!isDone && { allowStepSelect: false })} />
    </Stepper>
  );
}
