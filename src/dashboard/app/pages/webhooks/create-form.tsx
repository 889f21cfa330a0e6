import { Button, Group, Paper, Stack, Stepper, Title } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState, type FormEvent } from "react";
import { Link, useLocation } from "wouter";

import { useApi } from "../../session.tsx";
import { fieldError } from "../../ui/explain.ts";
import { Icon } from "../../ui/icon.tsx";
import { ErrorNotice } from "../../ui/states.tsx";
import { Choice } from "./choice.tsx";
import { keepSecret } from "./fresh-secret.ts";
import { keys } from "./data.ts";
import type { DeliveryKind, Subscription } from "./model.ts";
import { DeliveryFields } from "./delivery-fields.tsx";
import { newDraft, type Draft, type Edit } from "./draft.ts";
import { EndpointFields } from "./endpoint-fields.tsx";
import { KINDS } from "./kinds.ts";
import { createSubscription } from "./save.ts";
import { labelFor, urlHint } from "./url-hint.ts";
import { isAtField, useFieldFaults } from "./use-field-faults.ts";

interface CreateProps {
  readonly taken: readonly Subscription[];
  readonly initialKind: DeliveryKind;
}

export function CreateForm({ taken, initialKind }: CreateProps) {
  const { draft, edit } = useNamedDraft(initialKind);
  const [step, setStep] = useState(0);
  const heading = useFocusOnChange(step);
  const { create, error, isBusy } = useCreate(() => setStep(0));
  const form = useFieldFaults(error);
  const isReady = draft.label.trim() !== "" && draft.url !== "" && !hasError(draft);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (step === 0) setStep(1);
    else void create(draft);
  };
  return (
    <form onSubmit={submit} noValidate ref={form}>
      <Stepper
        active={step}
        onStepClick={(next) => (next === 0 || isReady) && setStep(Math.min(next, 1))}
        size="sm"
        completedIcon={<Icon name="check" size={16} />}
        mb="lg"
        maw={760}
      >
        <Stepper.Step label="Endpoint" />
        <Stepper.Step label="Events" />
        <Stepper.Step label="Verify" allowStepSelect={false} />
      </Stepper>
      <Paper withBorder p="lg" {...(step === 0 && { maw: 760 })}>
        <Stack gap="lg">
          <Title order={2} size="h4" ref={heading} tabIndex={-1} className="quiet-focus">
            {step === 0 ? "Where events go" : "What is sent"}
          </Title>
          {step === 0 ? (
            <>
              <KindChoice taken={taken} kind={draft.kind} edit={edit} />
              <EndpointFields draft={draft} edit={edit} error={error} />
            </>
          ) : (
            <DeliveryFields draft={draft} edit={edit} error={error} />
          )}
          {error !== undefined && !isAtField(error) && <ErrorNotice error={error} />}
          <Group justify="space-between">
            <Back step={step} onBack={() => setStep(0)} />
            <Button type="submit" loading={isBusy} disabled={!isReady}>
              {step === 0 ? "Continue" : "Create subscription"}
            </Button>
          </Group>
        </Stack>
      </Paper>
    </form>
  );
}

/** Another step begins at its heading, for keyboards and screen readers too. */
function useFocusOnChange(step: number) {
  const heading = useRef<HTMLHeadingElement>(null);
  const shown = useRef(step);
  useEffect(() => {
    if (shown.current !== step) heading.current?.focus();
    shown.current = step;
  }, [step]);
  return heading;
}

function Back({ step, onBack }: { readonly step: number; readonly onBack: () => void }) {
  if (step > 0)
    return (
      <Button variant="default" onClick={onBack}>
        Back
      </Button>
    );
  return (
    <Button variant="default" component={Link} href="/webhooks">
      Cancel
    </Button>
  );
}

const hasError = (draft: Draft) => urlHint(draft.url.trim())?.kind === "error";

/** The label follows the URL until somebody writes another one. */
function useNamedDraft(kind: DeliveryKind) {
  const [draft, setDraft] = useState(() => newDraft(kind));
  const edit: Edit = (change) =>
    setDraft((before) => {
      const isOwn = before.label !== labelFor(before.url);
      const named = change.url !== undefined && !isOwn ? { label: labelFor(change.url) } : {};
      return { ...before, ...named, ...change };
    });
  return { draft, edit };
}

function useCreate(onEndpointFault: () => void) {
  const api = useApi();
  const client = useQueryClient();
  const [, navigate] = useLocation();
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const create = async (draft: Draft) => {
    setBusy(true);
    setError(undefined);
    try {
      const made = await createSubscription(api, draft);
      keepSecret(client, made.id, made.secret);
      navigate(`/webhooks/new?id=${made.id}`, { replace: true });
      void client.invalidateQueries({ queryKey: keys.list });
    } catch (caught) {
      setError(caught);
      if (isAboutEndpoint(caught)) onEndpointFault();
    } finally {
      setBusy(false);
    }
  };
  return { create, error, isBusy };
}

const isAboutEndpoint = (error: unknown): boolean =>
  ["webhook_url", "label", "batch_interval_hours"].some(
    (field) => fieldError(error, field) !== undefined,
  );

function KindChoice({
  taken,
  kind,
  edit,
}: {
  readonly taken: readonly Subscription[];
  readonly kind: DeliveryKind;
  readonly edit: Edit;
}) {
  return (
    <Choice
      label="Kind"
      value={kind}
      onChange={(chosen) => edit({ kind: chosen })}
      options={KINDS.map((one) => {
        const holder = taken.find((other) => other.delivery_kind === one.kind);
        return {
          value: one.kind,
          label: one.title,
          description:
            holder === undefined
              ? one.short
              : `${one.short} Taken by “${holder.label}”: each kind has one slot.`,
          isTaken: holder !== undefined,
        };
      })}
    />
  );
}
