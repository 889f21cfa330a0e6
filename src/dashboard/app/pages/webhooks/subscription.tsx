import { PageTabs } from "../../ui/layout.tsx";
import { Button, Paper, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { useParams, useSearchParams } from "wouter";

import { page } from "../../shell/page.tsx";
import { LiveBadge } from "../../ui/badges.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Dimmed, Facts, PageHeader } from "../../ui/layout.tsx";
import { Loaded } from "../../ui/states.tsx";
import { ExactTime } from "../../ui/time.tsx";
import { DisableSubscription } from "./operator-actions.tsx";
import { useIsReadOnly, useReader, useSubscriptionLive, useViewedPartner } from "./data/data.ts";
import { type Subscription, subscriptionOptions, type SubscriptionProps } from "./data/reads.ts";
import { Deliveries } from "./deliveries/deliveries.tsx";
import { DisabledBanner } from "./disabled-banner.tsx";
import { CheckButton } from "./form/endpoint-check.tsx";
import { eventsInWords, kindTitle } from "./data/subscription-words.ts";
import { ConditionBadge, UrlText } from "./stats/health-summary.tsx";
import { Overview } from "./overview.tsx";
import { EnablingTest, TestEvent } from "./test-event.tsx";

const Settings = page(() =>
  import("./form/settings.tsx").then((file) => ({ Page: file.Settings })),
);

export function Page() {
  const { id = "" } = useParams();
  const subscription = useQuery(subscriptionOptions(useReader(), id));
  if (subscription.data !== undefined)
    return <SubscriptionPage key={subscription.data.id} subscription={subscription.data} />;
  return (
    <>
      <PageHeader title="Subscription" back={{ href: "/webhooks", title: "Webhooks" }} />
      <Loaded query={subscription}>{() => null}</Loaded>
    </>
  );
}

function SubscriptionPage({ subscription }: SubscriptionProps) {
  const { id, is_active: isActive } = subscription;
  const { state, follow } = useSubscriptionLive(id);
  const [tab, setTab] = useTab();
  const [isTesting, test] = useDisclosure();
  const isReadOnly = useIsReadOnly();
  const partner = useViewedPartner();
  /** Id of the test event that was sent because the user chose to test before enabling the subscription. */
  const [sent, setSent] = useState<string>();
  const showEnabled = (eventId?: string) => {
    setSent(eventId);
    test.open();
  };
  return (
    <>
      <PageHeader
        title={subscription.label}
        back={{ href: "/webhooks", title: "Webhooks" }}
        beside={<ConditionBadge subscription={subscription} />}
        description={<Summary subscription={subscription} />}
        actions={
          <>
            <LiveBadge state={state} />
            {partner && isActive && (
              <DisableSubscription
                partnerId={partner.id}
                id={id}
                name={`“${subscription.label}” of ${partner.name}`}
              />
            )}
            {!isReadOnly && <CheckButton subscription={subscription} />}
            {!isReadOnly && (
              <TestButton
                subscription={subscription}
                opened={isTesting}
                sent={sent}
                onSent={setSent}
                onOpen={test.open}
                onClose={() => {
                  setSent(undefined);
                  test.close();
                }}
              />
            )}
          </>
        }
      />
      {!isActive && (
        <DisabledBanner
          subscription={subscription}
          isBrief={tab !== "overview"}
          onEnabled={showEnabled}
        />
      )}
      <PageTabs
        value={tab}
        onChange={setTab}
        tabs={{
          overview: { title: "Overview", content: <Overview subscription={subscription} /> },
          deliveries: {
            title: "Deliveries",
            content: <Deliveries {...{ subscription, live: state, follow }} />,
          },
          settings: {
            title: "Settings",
            content: isReadOnly ? (
              <ReadOnlySettings subscription={subscription} />
            ) : (
              <Settings
                subscription={subscription}
                // The `key` drops the result of a test of the URL before.
                test={<TestEvent key={subscription.webhook_url} id={id} isFirst />}
              />
            ),
          },
        }}
      />
    </>
  );
}

/**
 * Keeps the selected tab in the address. Selecting another tab removes the filters of the previous tab from the
 * address.
 */
function useTab() {
  const [params, setParams] = useSearchParams();
  const named = params.get("tab") ?? "";
  const tab = ["deliveries", "settings"].includes(named) ? named : "overview";
  return [tab, (next: string) => setParams(next === "overview" ? {} : { tab: next })] as const;
}

function Summary({ subscription }: SubscriptionProps) {
  return (
    <Text size="xs">
      <UrlText url={subscription.webhook_url} />{" "}
      <Text span inherit visibleFrom="sm">
        · {kindTitle(subscription.delivery_kind)} · {eventsInWords(subscription)}
      </Text>
    </Text>
  );
}

interface TestButtonProps extends SubscriptionProps {
  readonly opened: boolean;
  readonly sent: string | undefined;
  readonly onSent: (eventId: string | undefined) => void;
  readonly onOpen: () => void;
  readonly onClose: () => void;
}

function TestButton({ subscription, opened, sent, onSent, onOpen, onClose }: TestButtonProps) {
  return (
    <>
      {/* A disabled subscription sends no test, and the button that enables it offers one. */}
      {subscription.is_active && (
        <Button variant="default" onClick={onOpen} leftSection={<Icon name="send" size={16} />}>
          Test
        </Button>
      )}
      <Dialog opened={opened} onClose={onClose} title="Test event" centered>
        {sent === undefined ? (
          <>
            <Text size="sm" mb="md">
              A <code>webhook.test</code> is signed, sent, retried and recorded like every event. It
              is sent before queued events, does not block them, and is not counted in the success
              rate.
            </Text>
            {subscription.is_active && <TestEvent id={subscription.id} />}
          </>
        ) : (
          <EnablingTest {...{ subscription, onSent, onClose }} eventId={sent} />
        )}
      </Dialog>
    </>
  );
}

/** Shows the settings of a subscription to users who may not change them. */
function ReadOnlySettings({ subscription }: SubscriptionProps) {
  return (
    <Paper withBorder p="lg" component="section" aria-label="Settings">
      <Facts facts={Object.entries(settingsOf(subscription))} />
    </Paper>
  );
}

function settingsOf(one: Subscription): Readonly<Record<string, ReactNode>> {
  const isBatch = one.delivery_kind === "batch";
  return {
    Label: one.label,
    URL: <code>{one.webhook_url}</code>,
    Delivery: isBatch ? `Batch, every ${one.batch_interval_hours} h` : kindTitle(one.delivery_kind),
    ...(!isBatch && {
      Events: one.events === null ? "All" : one.events.join(", "),
      Body: one.payload_mode === "full" ? "Full" : "Minimal",
      Order: one.ordering === "review" ? "Strict per review" : "Strict across all events",
      "Notification emails": one.suppress_native_notifications ? "Off" : "On",
      "Sequence headers": one.sequence_headers ? "Sent" : "Not sent",
    }),
    "Standard Webhooks": one.standard_webhooks ? "Headers sent" : "Headers not sent",
    "Own headers": one.header_names.length === 0 ? "None" : one.header_names.join(", "),
    Secret: (
      <>
        Fingerprint <code>{one.secret_fingerprint}</code>
        <Dimmed>Only the partner can view the secret.</Dimmed>
      </>
    ),
    ...(one.previous_secret_expires_at !== null && {
      "Previous secret signs until": <ExactTime at={one.previous_secret_expires_at} />,
    }),
    Created: <ExactTime at={one.created_at} />,
    Changed: <ExactTime at={one.updated_at} />,
    ID: <code>{one.id}</code>,
  };
}
