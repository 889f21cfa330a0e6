import { Button, Group, Paper, Stepper, Title } from "@mantine/core";
import "@mantine/core/styles/Stepper.css";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { Link, useLocation } from "wouter";

import { fieldError } from "../../../api/client.ts";
import { Form, type FormState, SubmitButton, useForm } from "../../../ui/form.tsx";
import { Icon } from "../../../ui/icon.tsx";
import { type Draft, DRAFT_FIELDS, labelFor, newDraft, urlHint } from "../data/draft.ts";
import type { DeliveryKind, Subscription } from "../data/reads.ts";
import { useCreateSubscription } from "../data/use-subscription-actions.ts";
import { KINDS } from "../data/subscription-words.ts";
import { Choice, EndpointFields } from "./endpoint-fields.tsx";
import { DeliveryFields } from "./delivery-fields.tsx";
import { keepSecret } from "./verify-code.tsx";

interface CreateFormProps {
  readonly taken: readonly Subscription[];
  readonly initialKind: DeliveryKind;
}

export function CreateForm({ taken, initialKind }: CreateFormProps) {
  const [step, setStep] = useState(0);
  const form = useCreation(initialKind, () => setStep(0));
  const { label, url } = form.draft;
  const isReady = label.trim() !== "" && url !== "" && urlHint(url.trim())?.kind !== "error";
  const isFirst = step === 0;
  return (
    <>
      <CreationSteps
        active={step}
        onStep={(next) => (next === 0 || isReady) && setStep(Math.min(next, 1))}
      />
      <Paper withBorder p="lg" {...(isFirst && { maw: 760 })}>
        <Form
          form={isFirst ? { ...form, submit: () => setStep(1) } : form}
          gap="lg"
          buttons={
            <Group justify="space-between">
              {isFirst ? <Cancel /> : <Back onBack={() => setStep(0)} />}
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
    names: DRAFT_FIELDS,
    alongside: ({ url }, before) =>
      url !== undefined && before.label === labelFor(before.url) ? { label: labelFor(url) } : {},
    send: create,
    onDone: ({ id, secret }, changes) => {
      changes.reset();
      keepSecret(client, id, secret);
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
 * Title of a step. Takes the focus when the step changes, so that screen readers announce the step. It is
 * inside the form, so that an invalid field is focused after it and keeps the focus.
 */
function StepTitle({ step }: { readonly step: number }) {
  const heading = useRef<HTMLHeadingElement>(null);
  const shown = useRef(step);
  useEffect(() => {
    if (shown.current !== step) heading.current?.focus();
    shown.current = step;
  }, [step]);
  return (
    <Title order={2} size="h4" ref={heading} tabIndex={-1} className="quiet-focus">
      {step === 0 ? "Where events go" : "What is sent"}
    </Title>
  );
}

function Back({ onBack }: { readonly onBack: () => void }) {
  return (
    <Button variant="default" onClick={onBack}>
      Back
    </Button>
  );
}

function Cancel() {
  return (
    <Button variant="default" component={Link} href="/webhooks">
      Cancel
    </Button>
  );
}

interface KindChoiceProps {
  readonly taken: readonly Subscription[];
  readonly form: FormState<Draft>;
}

function KindChoice({ taken, form }: KindChoiceProps) {
  return (
    <Choice
      label="Kind"
      value={form.draft.kind}
      onChange={(kind) => form.edit({ kind })}
      options={KINDS.map((one) => {
        const holder = taken.find((other) => other.delivery_kind === one.kind);
        return {
          value: one.kind,
          label: one.title,
          description:
            holder === undefined
              ? one.short
              : `${one.short} Taken by “${holder.label}”: each kind has one slot.`,
          isDisabled: holder !== undefined,
        };
      })}
    />
  );
}

interface CreationStepsProps {
  readonly active: number;
  /** Goes back to a step; undefined once the subscription exists, because its creation cannot be undone. */
  readonly onStep?: (step: number) => void;
}

/** Shows the steps of the creation and the current step. */
export function CreationSteps({ active, onStep }: CreationStepsProps) {
  const isDone = onStep === undefined;
  return (
    <Stepper
      active={active}
      {...(onStep && { onStepClick: onStep })}
      size="sm"
      wrap={false}
      className="creation-steps"
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
