import { Box, Button, Group, Paper, Stack, Stepper, Text, Title } from "@mantine/core";
import "@mantine/core/styles/Stepper.css";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { Link, useLocation, useSearchParams } from "wouter";

import { fieldError } from "../../api/client.ts";
import { Choice } from "../../ui/form.tsx";
import { Form, type FormState, SubmitButton, useForm } from "../../ui/form.tsx";
import { Icon } from "../../ui/icon.tsx";
import { PageHeader } from "../../ui/layout.tsx";
import { EmptyState, Loaded } from "../../ui/states.tsx";
import { useReader } from "./data/data.ts";
import { type Draft, labelFor, missingIn, newDraft, urlHint } from "./data/draft.ts";
import { type DeliveryKind, type Subscription, subscriptionsOptions } from "./data/reads.ts";
import { KINDS } from "./data/subscription-words.ts";
import { useCreateSubscription } from "./data/use-subscription-actions.ts";
import { DeliverySettings, EventFields, WithPreview } from "./form/delivery-fields.tsx";
import { type FieldsProps, IntervalField, LabelField, UrlField } from "./form/endpoint-fields.tsx";
import { NewHeaders } from "./form/own-headers.tsx";
import { keepSecrets } from "./form/verify-code.tsx";
import { UrlText } from "./stats/health-summary.tsx";
import { VerifyStep } from "./verify-step.tsx";
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

interface CreateFormProps {
  readonly taken: readonly Subscription[];
  readonly initialKind: DeliveryKind;
}

function CreateForm({ taken, initialKind }: CreateFormProps) {
  const [step, setStep] = useState(0);
  const form = useCreation(initialKind, () => setStep(0));
  const missing = missingIn(form.draft);
  const isFirst = step === 0;
  return (
    <>
      <SubscriptionCreationSteps
        active={step}
        onStep={(next) => (next === 0 || missing === undefined) && setStep(Math.min(next, 1))}
      />
      <Paper
        withBorder
        p={{ base: "md", sm: "lg" }}
        component="section"
        aria-label={stepTitle(step)}
        {...(isFirst && { maw: 760 })}
      >
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
              <Group gap="sm">
                <SubmitButton form={form} missing={missing}>
                  {isFirst ? "Continue" : "Create subscription"}
                </SubmitButton>
              </Group>
            </Group>
          }
        >
          <StepTitle step={step} />
          {isFirst ? (
            <>
              <UrlField form={form} isFirst />
              <LabelField form={form} />
              <KindChoice taken={taken} form={form} />
              <IntervalField form={form} />
              <NewHeaders form={form} />
            </>
          ) : (
            <>
              <Destination form={form} />
              <WithPreview form={form}>
                <Stack gap="lg">
                  <EventFields form={form} />
                  <Advanced form={form} />
                </Stack>
              </WithPreview>
            </>
          )}
        </Form>
      </Paper>
    </>
  );
}

/** Repeats where the events go, and that only a development server allows some addresses. */
function Destination({ form }: FieldsProps) {
  const url = form.draft.webhook_url.trim();
  return (
    <Text size="sm">
      Events go to <UrlText url={url} />. {urlHint(url)?.text}
    </Text>
  );
}

/**
 * Settings that most subscriptions leave as they are, folded unless the user has changed one. Those of a batch are a
 * single switch.
 */
function Advanced({ form }: FieldsProps) {
  const { draft } = form;
  const [isChanged] = useState(() => {
    const usual = newDraft(draft.delivery_kind);
    return SETTINGS.some((name) => draft[name] !== usual[name]);
  });
  if (draft.delivery_kind === "batch") return <DeliverySettings form={form} />;
  return (
    <details open={isChanged}>
      <summary>Advanced: order, headers and our emails</summary>
      <Box mt="md">
        <DeliverySettings form={form} />
      </Box>
    </details>
  );
}

const SETTINGS = [
  "ordering",
  "standard_webhooks",
  "sequence_headers",
  "suppress_native_notifications",
] as const;

/** Holds the form of a new subscription. The label is derived from the URL until the user edits the label. */
function useCreation(kind: DeliveryKind, onEndpointError: () => void): FormState<Draft> {
  const create = useCreateSubscription();
  const client = useQueryClient();
  const [, navigate] = useLocation();
  return useForm({
    name: "new subscription",
    secrets: ["headers"],
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
  ["webhook_url", "label", "batch_interval_hours", "headers"].some(
    (field) => fieldError(error, field) !== undefined,
  );

/**
 * Title of a step. When the step changes, the first field of the step takes the focus, so that Enter goes on. The title
 * is rendered inside the form, so that the form moves the focus to an invalid field afterwards.
 */
function StepTitle({ step }: { readonly step: number }) {
  const heading = useRef<HTMLHeadingElement>(null);
  const shown = useRef(step);
  useEffect(() => {
    if (shown.current !== step)
      heading.current?.closest("form")?.querySelector<HTMLElement>(FIRST_FIELD)?.focus();
    shown.current = step;
  }, [step]);
  return (
    <Title order={2} size="h4" ref={heading}>
      {stepTitle(step)}
    </Title>
  );
}

const stepTitle = (step: number) => (step === 0 ? "Where events go" : "What is sent");

const FIRST_FIELD = "input:not([type=radio]), input[type=radio]:checked";

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
