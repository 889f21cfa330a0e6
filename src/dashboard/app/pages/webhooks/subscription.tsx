import { Button, Group, Tabs, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useState } from "react";
import { useParams, useSearchParams } from "wouter";

import { page } from "../../chunks/page.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Icon } from "../../ui/icon.tsx";
import { LiveBadge } from "../../ui/live-badge.tsx";
import { PageHeader } from "../../ui/page-header.tsx";
import { StateBadge } from "../../ui/state-badge.tsx";
import { Loaded } from "../../ui/states.tsx";
import { useHealth, useSubscription } from "./data/data.ts";
import type { Subscription } from "./data/reads.ts";
import { useSubscriptionLive } from "./data/use-subscription-live.ts";
import { Deliveries } from "./deliveries.tsx";
import { DisabledBanner } from "./disabled-banner.tsx";
import { kindTitle } from "./kinds.ts";
import { Overview } from "./overview.tsx";
import { SettingsShown } from "./settings-shown.tsx";
import { eventsInWords, NOTHING_SENT, stateInWord } from "./subscription-words.ts";
import { TestEvent, type SentTest } from "./test-event.tsx";
import { useIsReadOnly } from "./data/viewed-partner.ts";

import "./webhooks.css";

const Settings = page(() => import("./settings.tsx").then((file) => ({ Page: file.Settings })));

export function Page() {
  const { id = "" } = useParams();
  const subscription = useSubscription(id);
  if (subscription.data !== undefined)
    return <SubscriptionPage key={subscription.data.id} subscription={subscription.data} />;
  return (
    <>
      <PageHeader title="Subscription" back={{ href: "/webhooks", title: "Webhooks" }} />
      <Loaded query={subscription}>{() => null}</Loaded>
    </>
  );
}

interface SubscriptionProps {
  readonly subscription: Subscription;
}

function SubscriptionPage({ subscription }: SubscriptionProps) {
  const { id, is_active: isActive } = subscription;
  const { state, follow } = useSubscriptionLive(id);
  const [tab, setTab] = useTab();
  const [isTesting, test] = useDisclosure();
  const isReadOnly = useIsReadOnly();
  const [sent, setSent] = useState<SentTest>();
  return (
    <>
      <PageHeader
        title={subscription.label}
        back={{ href: "/webhooks", title: "Webhooks" }}
        description={<Summary subscription={subscription} />}
        actions={
          <>
            <LiveBadge state={state} />
            {!isReadOnly && (
              <TestButton
                id={id}
                isActive={isActive}
                opened={isTesting}
                sent={sent}
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
          isBrief={tab === "overview"}
          onEnabled={(first) => {
            setSent(first);
            test.open();
          }}
        />
      )}
      <Tabs value={tab} onChange={(next) => next !== null && setTab(next)} keepMounted={false}>
        <TabNames />
        <Tabs.Panel value="overview">
          <Overview subscription={subscription} />
        </Tabs.Panel>
        <Tabs.Panel value="deliveries">
          <Deliveries subscription={subscription} live={state} follow={follow} />
        </Tabs.Panel>
        <Tabs.Panel value="settings">
          <SettingsTab subscription={subscription} />
        </Tabs.Panel>
      </Tabs>
    </>
  );
}

function TabNames() {
  return (
    <Tabs.List mb="md">
      <Tabs.Tab value="overview">Overview</Tabs.Tab>
      <Tabs.Tab value="deliveries">Deliveries</Tabs.Tab>
      <Tabs.Tab value="settings">Settings</Tabs.Tab>
    </Tabs.List>
  );
}

function SettingsTab({ subscription }: SubscriptionProps) {
  if (useIsReadOnly()) return <SettingsShown subscription={subscription} />;
  return <Settings subscription={subscription} />;
}

/** The tab is in the address; another tab leaves the filters of this one behind. */
function useTab() {
  const [params, setParams] = useSearchParams();
  const named = params.get("tab") ?? "";
  const tab = ["deliveries", "settings"].includes(named) ? named : "overview";
  return [tab, (next: string) => setParams(next === "overview" ? {} : { tab: next })] as const;
}

function Summary({ subscription }: SubscriptionProps) {
  return (
    <>
      <Text ff="monospace" size="sm" c="var(--mantine-color-text)">
        {subscription.webhook_url}
      </Text>
      <Group gap="xs" mt={4}>
        <StateBadge state={stateInWord(subscription, useHealth(subscription.id).data)} />
        <Text size="sm" span>
          {kindTitle(subscription.delivery_kind)} · {eventsInWords(subscription)}
        </Text>
      </Group>
    </>
  );
}

interface TestButtonProps {
  readonly id: string;
  readonly isActive: boolean;
  readonly opened: boolean;
  readonly sent: SentTest | undefined;
  readonly onOpen: () => void;
  readonly onClose: () => void;
}

function TestButton({ id, isActive, opened, sent, onOpen, onClose }: TestButtonProps) {
  return (
    <>
      <Button variant="default" onClick={onOpen} leftSection={<Icon name="send" size={16} />}>
        Test
      </Button>
      <Dialog opened={opened} onClose={onClose} title="Test event" centered>
        <Text size="sm" mb="md">
          A <code>webhook.test</code> is signed, sent, retried and recorded like every event. It
          overtakes what is queued, and holds nothing back.
        </Text>
        {isActive ? (
          <TestEvent key={sent?.eventId} id={id} sent={sent} onDisabled={onClose} />
        ) : (
          <Text size="sm">{NOTHING_SENT}</Text>
        )}
      </Dialog>
    </>
  );
}
