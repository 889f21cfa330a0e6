import {
  Alert,
  Button,
  Checkbox,
  Group,
  NumberInput,
  Stack,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import "@mantine/core/styles/NumberInput.css";
import { useMutation, useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";

import { useApi } from "../../session/session.tsx";
import { ConfirmedAction } from "../../ui/dialog.tsx";
import { Choice } from "../../ui/form.tsx";
import { Form, type FormState, useForm } from "../../ui/form.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Dimmed, PageHeader, Section, ErrorText } from "../../ui/layout.tsx";
import { notify } from "../../ui/notify.ts";
import { SecretOnRequest } from "../../ui/secret.tsx";
import { ErrorNotice, Loaded } from "../../ui/states.tsx";
import {
  type AlertDraft,
  alertDraftOf,
  type AlertKind,
  alertsOptions,
  type AlertSettings,
  isAlertKind,
  useAlertActions,
} from "./alert-data.ts";
import { labelled } from "./form/endpoint-fields.tsx";
import css from "./webhooks.module.css";

export function Page() {
  const alerts = useQuery(alertsOptions(useApi()));
  return (
    <>
      <PageHeader
        title="Alerts"
        back={{ href: "/webhooks", title: "Webhooks" }}
        description="Find out when deliveries fail. These settings apply to all your subscriptions."
      />
      <Loaded query={alerts}>{(settings) => <AlertForm settings={settings} />}</Loaded>
    </>
  );
}

function AlertForm({ settings }: { readonly settings: AlertSettings }) {
  const { update } = useAlertActions();
  const [secret, setSecret] = useState<string>();
  const form = useForm({
    name: "alerts",
    initial: alertDraftOf(settings),
    send: async (draft) => {
      const made = await update(draft);
      if (made !== null) setSecret(made);
    },
    done: "Saved.",
  });
  return (
    <Stack gap="lg">
      <Form form={form} gap="lg" action="Save">
        <Kinds form={form} />
        <Mails form={form}>
          <Unconfirmed settings={settings} />
        </Mails>
        <Section
          title="Webhook"
          description={
            <>
              Optional. Each alert is also POSTed to a URL, signed and retried like an event, with
              the header <code>X-SVC-Event: webhook.alert</code>.
            </>
          }
        >
          <TextInput
            label="Alert URL"
            description="Use an endpoint different from that of your events, which may be the one that fails."
            placeholder="https://example.com/webhooks/alerts"
            type="url"
            inputMode="url"
            autoComplete="off"
            spellCheck={false}
            {...form.text("webhook_url")}
            error={labelled("The URL", form.reasonOf("webhook_url"))}
          />
        </Section>
      </Form>
      {settings.secret_fingerprint !== null && (
        <AlertSecret
          key={settings.secret_fingerprint}
          fingerprint={settings.secret_fingerprint}
          fresh={secret}
          onRotated={setSecret}
        />
      )}
    </Stack>
  );
}

interface FieldsProps {
  readonly form: FormState<AlertDraft>;
}

function Mails({ form, children }: FieldsProps & { readonly children: ReactNode }) {
  const { toOwners, digest_minutes: digestMinutes } = form.draft;
  return (
    <Section title="Email">
      <Choice
        label="Recipients"
        value={toOwners ? "owners" : "others"}
        onChange={(value) => form.edit({ toOwners: value === "owners" })}
        options={[
          { value: "owners", label: "Owners of your company" },
          { value: "others", label: "Specific addresses" },
        ]}
      />
      {!toOwners && (
        <Textarea
          label="Addresses"
          description="One per line, up to 10. Each address must be confirmed by a link before it receives alerts."
          autosize
          minRows={2}
          {...form.text("recipients")}
          error={labelled("Address", form.reasonOf("recipients"))}
        />
      )}
      {children}
      <Minutes
        before="At most one email every"
        label="Minutes between emails"
        hint="Enter 0 to get every alert at once. A disabled subscription is always reported at once."
        range={[0, 1_440]}
        value={digestMinutes}
        onChange={(value) => form.edit({ digest_minutes: value })}
        error={form.reasonOf("digest_minutes")}
      />
    </Section>
  );
}

/** Lists the saved recipients who have not confirmed their address, and mails them another link on request. */
function Unconfirmed({ settings }: { readonly settings: AlertSettings }) {
  const { askAgain } = useAlertActions();
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => askAgain(settings),
    onSuccess: () => notify.done("Link sent."),
  });
  const { unconfirmed_recipients: addresses, recipients } = settings;
  if (addresses.length === 0) return null;
  return (
    <Alert title="Waiting for confirmation" color="yellow">
      <Stack gap="xs" align="flex-start">
        <Text size="sm">
          {addresses.join(", ")}
          {addresses.length === recipients?.length &&
            ". Until one address is confirmed, alerts go to the owners of your company."}
        </Text>
        <Button variant="default" size="xs" loading={isPending} onClick={() => mutate()}>
          Resend link
        </Button>
        {error !== null && <ErrorNotice error={error} />}
      </Stack>
    </Alert>
  );
}

/** Numbers of permanent failures in a row that can cause an alert. */
const FAILURE_COUNTS = [
  ["failures_5", "5"],
  ["failures_10", "10"],
  ["failures_18", "18"],
] as const;

/** Shows each kind of alert as a sentence that contains its threshold. */
function Kinds({ form }: FieldsProps) {
  const { kinds, oldest_waiting_minutes: waitingMinutes } = form.draft;
  const box = (kind: AlertKind) => ({
    checked: kinds.includes(kind),
    onChange: ({ currentTarget }: { currentTarget: { checked: boolean } }) =>
      form.edit({
        kinds: currentTarget.checked ? [...kinds, kind] : kinds.filter((one) => one !== kind),
      }),
  });
  return (
    <Section title="Send an alert when">
      <Checkbox
        label="An event has failed twice"
        description="It is retried automatically. Until it is delivered, later events wait for it."
        {...box("head_retrying")}
      />
      <Group gap={12} wrap="nowrap" align="flex-start">
        <Checkbox
          aria-label={`An event has waited for ${waitingMinutes} minutes`}
          mt={8}
          {...box("oldest_waiting")}
        />
        <Minutes
          before="An event has waited for"
          label="Minutes that an event may wait"
          range={[10, 1_440]}
          value={waitingMinutes}
          disabled={!kinds.includes("oldest_waiting")}
          onChange={(value) => form.edit({ oldest_waiting_minutes: value })}
          error={form.reasonOf("oldest_waiting_minutes")}
        />
      </Group>
      <Checkbox.Group
        label="Several events in a row fail for good"
        value={[...kinds]}
        onChange={(next) => form.edit({ kinds: next.filter(isAlertKind) })}
        description="Choose whether you hear of it after 5, 10 and 18 events in a row that failed for good. An event fails for good after four attempts without a 2xx status, or one with HTTP 410. After 20 in a row the subscription is disabled."
      >
        <Group gap="lg" mt="xs">
          {FAILURE_COUNTS.map(([kind, count]) => (
            <Checkbox key={kind} value={kind} label={`After ${count}`} />
          ))}
        </Group>
      </Checkbox.Group>
      <Checkbox
        label="A subscription is disabled"
        description="Always on, because nothing is sent from then on."
        disabled
        className={css.alwaysOn}
        {...box("disabled")}
      />
      <Checkbox
        label="Your endpoint works again"
        description="Sent only after an alert about a problem."
        {...box("recovered")}
      />
      {form.reasonOf("kinds") !== undefined && (
        <Text size="sm" c="red">
          {labelled("The list", form.reasonOf("kinds"))}
        </Text>
      )}
    </Section>
  );
}

interface MinutesProps {
  readonly before: string;
  /** Name of the field for screen readers. */
  readonly label: string;
  readonly hint?: string;
  readonly range: readonly [min: number, max: number];
  readonly value: number;
  readonly disabled?: boolean;
  readonly onChange: (value: number) => void;
  readonly error: string | undefined;
}

/** Sentence that contains a field for a number of minutes. */
function Minutes(given: MinutesProps) {
  const {
    before,
    label,
    hint,
    range: [min, max],
    error,
    ...props
  } = given;
  return (
    <Stack gap={4}>
      <Group gap="xs" component="span">
        <Text size="sm" span>
          {before}
        </Text>
        <NumberInput
          aria-label={label}
          w={120}
          rightSection={
            <Text size="sm" c="dimmed" span>
              minutes
            </Text>
          }
          rightSectionWidth={70}
          rightSectionPointerEvents="none"
          hideControls
          min={min}
          max={max}
          allowDecimal={false}
          clampBehavior="blur"
          {...props}
          onChange={(value) => props.onChange(Number(value))}
          error={error !== undefined}
        />
      </Group>
      {hint !== undefined && <Dimmed>{hint}</Dimmed>}
      {error !== undefined && <ErrorText>{labelled("The number", error)}</ErrorText>}
    </Stack>
  );
}

interface AlertSecretProps {
  readonly fingerprint: string;
  /** Signing secret that was just created or rotated; undefined otherwise. */
  readonly fresh: string | undefined;
  readonly onRotated: (secret: string) => void;
}

const byLabel = (secret: string) => ({ "Alert secret": secret });

function AlertSecret({ fingerprint, fresh, onRotated }: AlertSecretProps) {
  const { readSecret, rotateSecret } = useAlertActions();
  return (
    <Section
      title="Alert signing secret"
      description={
        <>
          Fingerprint <code>{fingerprint}</code>. This is not the signing secret of your deliveries.
          Each view is recorded in the audit log.
        </>
      }
    >
      <Group align="flex-start">
        <SecretOnRequest
          fresh={fresh === undefined ? undefined : byLabel(fresh)}
          read={async () => byLabel(await readSecret())}
        />
        <ConfirmedAction
          label="Rotate secret…"
          button={{ leftSection: <Icon name="refresh" size={16} /> }}
          title="Rotate the alert secret?"
          action="Rotate"
          danger
          onConfirm={async () => onRotated((await rotateSecret()) ?? "")}
        >
          <Text size="sm">
            Alerts are signed with the new secret immediately. Receivers that know only the current
            secret reject them until you configure the new one.
          </Text>
        </ConfirmedAction>
      </Group>
    </Section>
  );
}
