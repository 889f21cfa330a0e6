import { Button, Code, Group, Stack, Text, TextInput } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { useApi } from "../../session/session.tsx";
import { StateSummary } from "../../ui/badges.tsx";
import { ConfirmedAction, DialogButton } from "../../ui/dialog.tsx";
import { Choice, Form, useForm } from "../../ui/form.tsx";
import { counted, number } from "../../ui/format.ts";
import { Facts, PageHeader, Section, TextLink } from "../../ui/layout.tsx";
import { notify } from "../../ui/notify.ts";
import { SecretDialog } from "../../ui/secret.tsx";
import { EmptyState, Loaded } from "../../ui/states.tsx";
import { Countdown, ExactTime, LastUsed, Time } from "../../ui/time.tsx";
import {
  type AuditWebhook,
  auditWebhookOptions,
  type Start,
  useAuditWebhookActions,
  type WebhookDraft,
} from "./data.ts";

export function Page() {
  const webhook = useQuery(auditWebhookOptions(useApi()));
  const [secret, setSecret] = useState<string>();
  return (
    <>
      <PageHeader
        title="Audit webhook"
        description={
          <>
            Sends every entry of the <TextLink href="/audit">audit log</TextLink> to one URL, for
            example of your SIEM: signed, in order, and repeated until it is accepted.
          </>
        }
      />
      <Loaded query={webhook}>
        {(found) =>
          found === null ? (
            <EmptyState
              icon="webhook"
              title="No audit webhook yet"
              action={
                <DialogButton label="Set up" title="Set up the audit webhook">
                  {(close) => <WebhookForm onClose={close} onSecret={setSecret} />}
                </DialogButton>
              }
            >
              The entries stay in the audit log in any case.
            </EmptyState>
          ) : (
            <Shown webhook={found} onSecret={setSecret} />
          )
        }
      </Loaded>
      <SecretDialog
        title="The secret of the audit webhook"
        label="Secret"
        secret={secret}
        onClose={() => setSecret(undefined)}
      >
        <Text size="sm">
          The receiver checks each request with it, as in Standard Webhooks: by the headers{" "}
          <Code>webhook-id</Code>, <Code>webhook-timestamp</Code> and <Code>webhook-signature</Code>
          .
        </Text>
      </SecretDialog>
    </>
  );
}

interface ShownProps {
  readonly webhook: AuditWebhook;
  readonly onSecret: (secret: string) => void;
}

function Shown({ webhook, onSecret }: ShownProps) {
  const { url, lost_rows: lost } = webhook;
  return (
    <Stack gap="lg">
      <Progress webhook={webhook} />
      <Section
        title="Receiver"
        actions={
          <DialogButton label="Change URL" title="Change the URL" button={{ variant: "default" }}>
            {(close) => <WebhookForm webhook={webhook} onClose={close} onSecret={onSecret} />}
          </DialogButton>
        }
      >
        <Facts
          facts={[
            ["URL", <Code key="url">{url}</Code>],
            ["Last accepted", <LastUsed key="accepted" at={webhook.delivered_at} />],
            [
              "Oldest unsent entry",
              webhook.oldest_waiting_at === null ? (
                "None"
              ) : (
                <Time key="waiting" at={webhook.oldest_waiting_at} />
              ),
            ],
            [
              "Entries lost",
              lost === 0
                ? "None"
                : `${number(lost)}, removed by retention before they were accepted`,
            ],
            ["Set up", <ExactTime key="made" at={webhook.created_at} />],
            ["Last change", <ExactTime key="changed" at={webhook.updated_at} />],
          ]}
        />
      </Section>
      <SendTest webhook={webhook} />
      <Section
        title="Secret and removal"
        description="The secret is shown only when it is made. A new one replaces it immediately."
      >
        <Ends webhook={webhook} onSecret={onSecret} />
      </Section>
    </Stack>
  );
}

/** Returns whether the receiver has accepted a request since the URL or the secret was set. */
const hasAccepted = ({ delivered_at: accepted, updated_at: set }: AuditWebhook) =>
  accepted !== null && Date.parse(accepted) >= Date.parse(set);

/** Button that sends a test, and below it what became of the test. */
function SendTest({ webhook }: Pick<ShownProps, "webhook">) {
  const { test } = useAuditWebhookActions();
  const [before, setBefore] = useState<AuditWebhook>();
  const {
    mutate,
    isPending,
    data: at,
  } = useMutation({
    mutationFn: test,
    onMutate: () => setBefore(webhook),
    onError: (error) => {
      setBefore(undefined);
      notify.failed(error);
    },
  });
  return (
    <Section
      title="Test"
      description="Adds a test entry to the audit log and sends it at once, together with any entries that still wait."
      actions={
        <Button variant="default" loading={isPending} onClick={() => mutate()}>
          Send test
        </Button>
      }
    >
      {before && <TestResult at={at} before={before} now={webhook} />}
    </Section>
  );
}

interface TestResultProps {
  /** Time of the test's entry in the audit log; undefined until it is known. */
  readonly at: string | undefined;
  /** The audit webhook before the test, and now. */
  readonly before: AuditWebhook;
  readonly now: AuditWebhook;
}

function TestResult({ at, before, now }: TestResultProps) {
  const { last_error: error, oldest_waiting_at: oldest } = now;
  const isSent = at !== undefined && (oldest === null || Date.parse(oldest) > Date.parse(at));
  if (isSent && now.delivered_at !== before.delivered_at)
    return (
      <StateSummary isWell title="Test accepted">
        The receiver answered with a status from 200 to 299.
      </StateSummary>
    );
  if (error !== null && error.at !== before.last_error?.at)
    return (
      <StateSummary isWell={false} title="Test not accepted">
        Last attempt <Time at={error.at} />: {errorInWords(error.error)}. It is repeated until it is
        accepted.
      </StateSummary>
    );
  return (
    <StateSummary isWell={null} title="Sending the test…">
      This takes a few seconds.
    </StateSummary>
  );
}

function Progress({ webhook }: Pick<ShownProps, "webhook">) {
  const { failures, last_error: error, next_attempt_at: next } = webhook;
  const { oldest_waiting_at: oldest } = webhook;
  if (failures > 0)
    return (
      <StateSummary
        isWell={false}
        title={`The last ${failures === 1 ? "request" : counted(failures, "request")} failed`}
      >
        {error !== null && (
          <>
            {!hasAccepted(webhook) && "This URL has not accepted a request yet. "}
            Last error <Time at={error.at} />: {errorInWords(error.error)}.{" "}
          </>
        )}
        {next !== null && (
          <>
            Next attempt <Countdown to={next} />. Nothing is lost meanwhile.
          </>
        )}
      </StateSummary>
    );
  if (!hasAccepted(webhook))
    return (
      <StateSummary isWell={null} title="Nothing sent yet">
        The first entries follow within seconds.
      </StateSummary>
    );
  return (
    <StateSummary isWell title={oldest === null ? "Up to date" : "Sending"}>
      {oldest === null ? (
        "Every entry was accepted."
      ) : (
        <>
          The next entry is from <Time at={oldest} />.
        </>
      )}
    </StateSummary>
  );
}

/** Describes the error code of a POST of the audit log (contract 3.12). */
function errorInWords(error: string): string {
  if (error.startsWith("http_")) return `the receiver answered HTTP ${error.slice(5)}`;
  if (error.startsWith("tls_")) return `TLS failed: ${error.slice(4).replaceAll("_", " ")}`;
  return error.replaceAll("_", " ");
}

function Ends({ webhook: { url }, onSecret }: ShownProps) {
  const { set, remove } = useAuditWebhookActions();
  return (
    <Group>
      <ConfirmedAction
        label="Rotate secret"
        title="Rotate the secret of the audit webhook?"
        action="Rotate secret"
        danger
        onConfirm={async () => onSecret(await set({ url, start: "here" }))}
      >
        The current secret stops working immediately. Until the receiver has the new one, it refuses
        the requests; they are repeated, so no entry is lost.
      </ConfirmedAction>
      <ConfirmedAction
        label="Remove"
        button={{ variant: "subtle", color: "red" }}
        title="Remove the audit webhook?"
        action="Remove webhook"
        danger
        onConfirm={remove}
        done="Audit webhook removed."
      >
        No further entry is sent, and the secret is deleted. The audit log itself stays. If you set
        up a webhook again, you choose where it begins.
      </ConfirmedAction>
    </Group>
  );
}

interface WebhookFormProps {
  /** Audit webhook that the form changes; undefined to set up one. */
  readonly webhook?: AuditWebhook;
  readonly onClose: () => void;
  readonly onSecret: (secret: string) => void;
}

function WebhookForm({ webhook, onClose, onSecret }: WebhookFormProps) {
  const { set } = useAuditWebhookActions();
  const start: Start = webhook === undefined ? "newest" : "here";
  const form = useForm<WebhookDraft, string>({
    initial: { url: webhook?.url ?? "", start },
    send: set,
    onDone: (secret) => {
      onClose();
      onSecret(secret);
    },
  });
  return (
    <Form
      form={form}
      action={webhook === undefined ? "Set up" : "Change and create a new secret"}
      onCancel={onClose}
    >
      <TextInput
        label="URL"
        description="The address that receives JSON. It must answer with a status from 200 to 299."
        placeholder="https://"
        type="url"
        required
        data-autofocus
        {...form.text("url")}
      />
      <Choice
        label="Begin with"
        value={form.draft.start}
        onChange={(next) => form.edit({ start: next })}
        options={[
          ...(webhook === undefined
            ? []
            : [{ value: "here" as const, label: "The first entry that was not sent yet" }]),
          { value: "newest", label: "The next entry that is written" },
          { value: "oldest", label: "The oldest entry of the audit log" },
        ]}
      />
      {webhook !== undefined && (
        <Text size="sm">
          A change also makes a new secret, which replaces the current one immediately.
        </Text>
      )}
    </Form>
  );
}
