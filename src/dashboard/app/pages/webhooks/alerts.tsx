import {
  Alert,
  Button,
  Checkbox,
  Group,
  NumberInput,
  Radio,
  Stack,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import "@mantine/core/styles/NumberInput.css";
import { useMutation, useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";

import { useApi } from "../../session/session.tsx";
import { SecretField } from "../../ui/copy.tsx";
import { ConfirmedAction } from "../../ui/dialog.tsx";
import { Form, type FormState, useForm } from "../../ui/form.tsx";
import { Icon } from "../../ui/icon.tsx";
import { PageHeader, Section } from "../../ui/layout.tsx";
import { notify } from "../../ui/notify.ts";
import { ErrorNotice, Loaded } from "../../ui/states.tsx";
import {
  ALERT_FIELDS,
  ALERT_WORDS,
  type AlertDraft,
  alertDraftOf,
  type AlertKind,
  alertsOptions,
  type AlertSettings,
  useAlertActions,
} from "./alert-data.ts";
import { labelled } from "./form/endpoint-fields.tsx";
import "./webhooks.css";

export function Page() {
  const alerts = useQuery(alertsOptions(useApi()));
  return (
    <>
      <PageHeader
        title="Alerts"
        back={{ href: "/webhooks", title: "Webhooks" }}
        description="Who hears of trouble with deliveries, of what, and how often. They hold for both subscriptions."
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
    names: ALERT_FIELDS,
    send: update,
    onDone: (made, changes) => {
      changes.reset();
      if (made !== null) setSecret(made);
      notify.done("Saved.");
    },
  });
  return (
    <Stack gap="lg">
      <Form form={form} gap="lg" action="Save">
        <Mails form={form}>
          <Unconfirmed settings={settings} />
        </Mails>
        <Kinds form={form} />
        <Section
          title="Webhook"
          description="Each alert can also be posted to an address of its own: signed, checked and tried four times, as deliveries are. Its X-SVC-Event is webhook.alert."
        >
          <TextInput
            label="URL for alerts"
            description="Leave it empty to post none. Better not the endpoint that may be in trouble."
            placeholder="https://example.com/webhooks/alerts"
            type="url"
            inputMode="url"
            autoComplete="off"
            spellCheck={false}
            {...form.text("url")}
            error={labelled("The URL", form.errorOf("url"))}
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
  const { toOwners, digestMinutes } = form.draft;
  return (
    <Section title="Mails">
      <Radio.Group
        label="Who gets them"
        value={toOwners ? "owners" : "others"}
        onChange={(value) => form.edit({ toOwners: value === "owners" })}
      >
        <Stack gap="xs" mt="xs">
          <Radio value="owners" label="The owners of your company" />
          <Radio value="others" label="These addresses" />
        </Stack>
      </Radio.Group>
      {!toOwners && (
        <Textarea
          label="Addresses"
          description="One a line, up to 10. Each gets a mail with a link to confirm it, and alerts only after that."
          autosize
          minRows={2}
          {...form.text("recipients")}
          error={labelled("Address", form.errorOf("recipients"))}
        />
      )}
      {children}
      <NumberInput
        label="At most one mail in so many minutes"
        description="What happens meanwhile comes in the next one; 0 sends each at once. Disabling is always mailed at once."
        min={0}
        max={1_440}
        allowDecimal={false}
        clampBehavior="strict"
        value={digestMinutes}
        onChange={(value) => form.edit({ digestMinutes: Number(value) })}
        error={labelled("The number", form.errorOf("digestMinutes"))}
      />
    </Section>
  );
}

/** Lists the saved recipients that have not confirmed, and mails them another link on request. */
function Unconfirmed({ settings }: { readonly settings: AlertSettings }) {
  const { askAgain } = useAlertActions();
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => askAgain(settings),
    onSuccess: () => notify.done("Sent."),
  });
  const { unconfirmed_recipients: addresses, recipients } = settings;
  if (addresses.length === 0) return null;
  return (
    <Alert title="Not confirmed yet" color="yellow">
      <Stack gap="xs" align="flex-start">
        <Text size="sm">
          {addresses.join(", ")}
          {addresses.length === recipients?.length &&
            ". Until one of them confirms, alerts go to the owners of your company."}
        </Text>
        <Button variant="default" size="xs" loading={isPending} onClick={() => mutate()}>
          Send the link again
        </Button>
        {error !== null && <ErrorNotice error={error} />}
      </Stack>
    </Alert>
  );
}

function Kinds({ form }: FieldsProps) {
  const { kinds, waitingMinutes } = form.draft;
  const toggle = (kind: AlertKind, isOn: boolean) =>
    form.edit({ kinds: isOn ? [...kinds, kind] : kinds.filter((one) => one !== kind) });
  return (
    <Section title="What is told">
      <Stack gap="sm">
        {ALERT_WORDS.map(({ kind, label, description }) => (
          <Checkbox
            key={kind}
            label={label}
            description={description}
            checked={kinds.includes(kind)}
            disabled={kind === "disabled"}
            onChange={(event) => toggle(kind, event.currentTarget.checked)}
          />
        ))}
      </Stack>
      <NumberInput
        label="An event waits too long after so many minutes"
        description="10 to 1,440"
        min={10}
        max={1_440}
        allowDecimal={false}
        clampBehavior="blur"
        value={waitingMinutes}
        disabled={!kinds.includes("oldest_waiting")}
        onChange={(value) => form.edit({ waitingMinutes: Number(value) })}
        error={labelled("The number", form.errorOf("waitingMinutes"))}
      />
      {form.errorOf("kinds") !== undefined && (
        <Text size="sm" c="red">
          {labelled("The list", form.errorOf("kinds"))}
        </Text>
      )}
    </Section>
  );
}

interface AlertSecretProps {
  readonly fingerprint: string;
  /** Signing secret that was just created or rotated; undefined otherwise. */
  readonly fresh: string | undefined;
  readonly onRotated: (secret: string) => void;
}

/**
 * Shows the signing secret of alerts: immediately after it was created or rotated, otherwise on request,
 * because the API writes each read into the audit log.
 */
function AlertSecret({ fingerprint, fresh, onRotated }: AlertSecretProps) {
  const { readSecret, rotateSecret } = useAlertActions();
  const { data: secret = fresh, mutate, error } = useMutation({ mutationFn: readSecret });
  return (
    <Section
      title="Signing secret of alerts"
      description={
        <>
          Fingerprint <code>{fingerprint}</code>. It is not the one of your deliveries. Each look is
          written to the audit log.
        </>
      }
    >
      <Group align="flex-start">
        {secret === undefined ? (
          <Button variant="default" onClick={() => mutate()}>
            Get the secret
          </Button>
        ) : (
          <div className="takes-line">
            <SecretField label="Secret of alerts" value={secret} />
          </div>
        )}
        <ConfirmedAction
          label="Rotate the secret …"
          button={{ leftSection: <Icon name="refresh" size={16} /> }}
          title="Rotate the secret of alerts"
          action="Rotate"
          danger
          onConfirm={async () => onRotated((await rotateSecret()) ?? "")}
        >
          <Text size="sm">
            From the next alert on, signatures are made with a new secret. Receivers that know only
            the present one refuse alerts at once.
          </Text>
        </ConfirmedAction>
      </Group>
      {error !== null && <ErrorNotice error={error} />}
    </Section>
  );
}
