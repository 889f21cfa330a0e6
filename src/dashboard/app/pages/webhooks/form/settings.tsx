import { Alert, Anchor, Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { useLocation } from "wouter";

import { Confirm, ConfirmedAction } from "../../../ui/dialog.tsx";
import { number } from "../../../ui/format.ts";
import { Icon } from "../../../ui/icon.tsx";
import { Section, Dimmed } from "../../../ui/layout.tsx";
import { notify } from "../../../ui/notify.ts";
import { ExactTime } from "../../../ui/time.tsx";
import { useReader } from "../data/data.ts";
import {
  areComplete,
  type Draft,
  hasMoved,
  INCOMPLETE_HEADERS,
  missingIn,
  movedHeaders,
  withoutValues,
} from "../data/draft.ts";
import { healthOptions, type SubscriptionProps } from "../data/reads.ts";
import { useSubscriptionActions } from "../data/use-subscription-actions.ts";
import { DeliverySettings, EventFields, WithPreview } from "./delivery-fields.tsx";
import { IntervalField, LabelField, UrlField } from "./endpoint-fields.tsx";
import { HeaderNames, HeaderRows, HeadersHint, MovedHeaders } from "./own-headers.tsx";
import { SECRET_TITLE, SecretPanel } from "./secret-panel.tsx";
import css from "./form.module.css";
import { SettingsForm, targetOf } from "./settings-form.tsx";

interface SettingsProps extends SubscriptionProps {
  /** Test of the endpoint, which is offered after a change of the URL. */
  readonly test: ReactNode;
}

/** Settings of a subscription in sections, each of which is saved on its own. */
export function Settings(given: SettingsProps) {
  const { subscription } = given;
  const { delivery_kind: kind } = subscription;
  // The banner above enables a disabled subscription.
  const endTitle = subscription.is_active ? "Disable or delete" : "Delete";
  const isBatch = kind === "batch";
  const events = isBatch ? "Events" : "Events and body";
  return (
    <div className={css.settings}>
      <nav aria-label="Sections" className={css.index}>
        {["Endpoint", SECRET_TITLE, events, "Delivery", HEADERS_TITLE, endTitle].map((title) => (
          <Anchor key={title} href={`#${targetOf(title)}`} size="sm">
            {title}
          </Anchor>
        ))}
      </nav>
      <Sections {...given} events={events} isBatch={isBatch} endTitle={endTitle} />
    </div>
  );
}

const HEADERS_TITLE = "Your own headers";

interface SectionsProps extends SettingsProps {
  /** Title of the section for the events. */
  readonly events: string;
  readonly isBatch: boolean;
  readonly endTitle: string;
}

function Sections({ subscription, test, ...titles }: SectionsProps) {
  const { events, isBatch, endTitle } = titles;
  const { id } = subscription;
  return (
    <Stack gap="lg">
      <EndpointSection subscription={subscription} test={test} />
      <SecretPanel subscription={subscription} />
      <SettingsForm
        subscription={subscription}
        title={events}
        effect="Applies to events from now on."
        isFixed={isBatch}
      >
        {(form) => (
          <WithPreview form={form}>
            <EventFields form={form} />
          </WithPreview>
        )}
      </SettingsForm>
      <SettingsForm
        subscription={subscription}
        title="Delivery"
        effect={
          isBatch ? "The interval counts from the last batch." : "Applies from the next attempt on."
        }
      >
        {(form) => (
          <>
            <IntervalField form={form} />
            <DeliverySettings form={form} />
          </>
        )}
      </SettingsForm>
      <HeadersSection subscription={subscription} />
      <Section id={targetOf(endTitle)} title={endTitle}>
        <Text size="sm">
          While a subscription is disabled, its events are held for up to 30 days. Once it is
          deleted, you can create another one of the same kind.
        </Text>
        <Group>
          {subscription.is_active && <DisableButton id={id} />}
          <DeleteButton subscription={subscription} />
        </Group>
      </Section>
      <Dimmed size="sm">
        Created <ExactTime at={subscription.created_at} />, changed{" "}
        <ExactTime at={subscription.updated_at} />. ID <code>{id}</code>
      </Dimmed>
    </Stack>
  );
}

/** Section for URL and label. After a change of the URL it offers a test. */
function EndpointSection({ subscription, test }: SettingsProps) {
  const [isMoved, setMoved] = useState(false);
  const missing = (draft: Draft) => {
    const isElsewhere = hasMoved(draft, subscription);
    const headers = isElsewhere ? movedHeaders(draft, subscription) : undefined;
    return missingIn({ ...draft, headers });
  };
  return (
    <SettingsForm
      subscription={subscription}
      title="Endpoint"
      effect="A new URL applies from the next attempt on."
      missing={missing}
      onMoved={() => setMoved(true)}
    >
      {(form) => (
        <>
          <UrlField form={form} />
          <MovedHeaders form={form} subscription={subscription} />
          {isMoved && subscription.is_active && !hasMoved(form.draft, subscription) && (
            <Alert color="blue" icon={<Icon name="send" />} title="Try the new URL">
              {test}
            </Alert>
          )}
          <LabelField form={form} />
        </>
      )}
    </SettingsForm>
  );
}

/** Section for headers of one's own: their names, or fields that replace all of them. */
function HeadersSection({ subscription }: SubscriptionProps) {
  const { header_names: names } = subscription;
  const missing = ({ headers = [] }: Draft) => {
    const isAny = names.length > 0 || headers.some(({ name }) => name.trim() !== "");
    return isAny && areComplete(headers) ? undefined : INCOMPLETE_HEADERS;
  };
  return (
    <SettingsForm
      subscription={subscription}
      title={HEADERS_TITLE}
      description={<HeadersHint />}
      effect="Applies from the next attempt on. Values are stored encrypted and never shown again."
      missing={missing}
    >
      {(form) => {
        const { headers } = form.draft;
        if (headers === undefined && names.length > 0)
          return (
            <Stack align="flex-start">
              <HeaderNames names={names} />
              <Button
                size="xs"
                variant="default"
                onClick={() => form.edit({ headers: withoutValues(names) })}
              >
                Change the headers…
              </Button>
            </Stack>
          );
        return (
          <>
            {names.length > 0 && (
              <Text size="sm">
                {headers?.length === 0
                  ? "Save to remove all headers."
                  : "You replace all headers: enter the value of each one, also of those that stay."}
              </Text>
            )}
            <HeaderRows
              rows={headers ?? []}
              onChange={(rows) =>
                form.edit({ headers: rows.length + names.length === 0 ? undefined : rows })
              }
              error={form.reasonOf("headers")}
            />
          </>
        );
      }}
    </SettingsForm>
  );
}

function DisableButton({ id }: { readonly id: string }) {
  const { disable } = useSubscriptionActions(id);
  return (
    <ConfirmedAction
      label="Disable…"
      button={{ leftSection: <Icon name="pause" size={16} /> }}
      title="Disable the subscription"
      action="Disable"
      onConfirm={disable}
      done="Subscription disabled."
    >
      Nothing is sent until you enable it again. You then choose whether the held events are sent or
      skipped.
    </ConfirmedAction>
  );
}

function DeleteButton({ subscription }: SubscriptionProps) {
  const [opened, { open, close }] = useDisclosure();
  return (
    <>
      <Button
        variant="light"
        color="red"
        onClick={open}
        leftSection={<Icon name="trash" size={16} />}
      >
        Delete the subscription…
      </Button>
      {opened && <DeleteDialog subscription={subscription} onClose={close} />}
    </>
  );
}

interface DeleteDialogProps extends SubscriptionProps {
  readonly onClose: () => void;
}

/**
 * Dialog that confirms the deletion of a subscription. The user must type the label, because a deleted
 * subscription cannot be restored.
 */
function DeleteDialog({ subscription: { id, label }, onClose }: DeleteDialogProps) {
  const { remove } = useSubscriptionActions(id);
  const [, navigate] = useLocation();
  const [typed, setTyped] = useState("");
  const confirm = async () => {
    await remove(() => navigate("/webhooks", { replace: true }));
    notify.done(`“${label}” deleted.`);
  };
  return (
    <Confirm
      opened
      onClose={onClose}
      title="Delete the subscription"
      action="Delete permanently"
      danger
      isReady={typed.trim() === label.trim()}
      onConfirm={confirm}
    >
      <Stack>
        <Losses id={id} />
        <TextInput
          label={
            <>
              Type <b>{label}</b> to confirm
            </>
          }
          value={typed}
          autoComplete="off"
          data-autofocus
          onChange={(event) => setTyped(event.currentTarget.value)}
        />
      </Stack>
    </Confirm>
  );
}

function Losses({ id }: { readonly id: string }) {
  const health = useQuery(healthOptions(useReader(), id)).data;
  const waiting = health === undefined ? undefined : health.pending + health.held;
  return (
    <div>
      <Text size="sm">This data is deleted permanently:</Text>
      <ul>
        <li>
          {waiting === undefined
            ? "the events that are queued"
            : `${number(waiting)} queued ${waiting === 1 ? "event" : "events"}`}
          , which will never be sent
        </li>
        <li>the secret: a new subscription gets a new one</li>
        <li>the deliveries and charts of the last 30 days</li>
      </ul>
    </div>
  );
}
