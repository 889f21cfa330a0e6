import { Alert, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";

import { useSession } from "../../session/session.tsx";
import { number } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { ExactTime, Time } from "../../ui/time.tsx";
import { EnableSubscription } from "./operator-actions.tsx";
import { useIsReadOnly, useMayEnable, useReader, useViewedPartner } from "./data/data.ts";
import { healthOptions, type SubscriptionProps } from "./data/reads.ts";
import { disabledBecause, wayOut } from "./data/subscription-words.ts";
import { EnableButton, type EnableProps } from "./form/enable-button.tsx";
import { CancelTest } from "./test-event.tsx";
import { TextLink } from "../../ui/layout.tsx";
import { BatchWait } from "./stats/batch-wait.tsx";
import { OperatorNote } from "./stats/health-summary.tsx";

interface DisabledBannerProps extends EnableProps {
  /** True if the banner takes one line, because the page has a list or a form to show. */
  readonly isBrief: boolean;
}

/** Explains why the subscription is disabled and how many events are held, and offers to enable it. */
export function DisabledBanner({ subscription, isBrief, onEnabled }: DisabledBannerProps) {
  const { id, disabled_at: at } = subscription;
  const { held } = useQuery(healthOptions(useReader(), id)).data ?? {};
  const mayEnable = useMayEnable(subscription);
  const partner = useViewedPartner();
  if (subscription.pending_test_event_id !== null)
    return <TestBanner subscription={subscription} />;
  const title = "Disabled: nothing is sent";
  return (
    <Alert color="red" icon={<Icon name="pause" />} title={!isBrief && title} mb="md">
      <Group justify="space-between" gap="sm">
        {isBrief ? (
          <Text size="sm">
            <strong>{title}.</strong> {heldEventsText(held)}{" "}
            <BatchWait subscription={subscription} />
          </Text>
        ) : (
          <div className="grows section-words">
            <Text size="sm">
              It was disabled <Time at={at} /> (<ExactTime at={at} />){" "}
              {disabledBecause(subscription)}
              {subscription.disabled_note === null ? "." : ":"}{" "}
              <WhoDisabled subscription={subscription} />
            </Text>
            <OperatorNote subscription={subscription} />
            <Text size="sm">
              {heldEventsText(held)} <BatchWait subscription={subscription} />{" "}
              {wayOut(subscription, mayEnable)}
            </Text>
          </div>
        )}
        {mayEnable && !partner && (
          <EnableButton subscription={subscription} onEnabled={onEnabled} />
        )}
        {mayEnable && partner && (
          <EnableSubscription
            partnerId={partner.id}
            id={id}
            name={`“${subscription.label}” of ${partner.name}`}
          />
        )}
      </Group>
    </Alert>
  );
}

/** Links to the entries of the audit log that tell who has disabled the subscription. */
function WhoDisabled({ subscription: { id, disabled_reason: reason } }: SubscriptionProps) {
  const partner = useViewedPartner();
  // Portal links have no audit log.
  const isKnown = reason === "manual" || (reason === "operator" && partner !== undefined);
  if (useSession().portal !== undefined || !isKnown) return null;
  const company = partner === undefined ? "" : `&company=${partner.id}`;
  return (
    <TextLink href={`~/dashboard/audit?action=WEBHOOK_DISABLED&q=${id}${company}`}>
      Show who disabled it
    </TextLink>
  );
}

/** Explains that the result of a pending test decides whether the subscription is enabled. */
function TestBanner({ subscription }: SubscriptionProps) {
  const { id, pending_test_event_id: eventId } = subscription;
  return (
    <Alert color="yellow" icon={<Icon name="pause" />} title="Disabled: test in progress" mb="md">
      <Stack gap="sm" align="flex-start">
        <Text size="sm">
          The subscription is enabled when your endpoint answers the{" "}
          <TextLink href={`/webhooks/${id}/deliveries/${eventId}`}>test event</TextLink> with a 2xx
          status. Until then its events are held.
        </Text>
        {!useIsReadOnly() && <CancelTest id={id} />}
      </Stack>
    </Alert>
  );
}

function heldEventsText(held: number | undefined): string {
  if (held === undefined || held === 0) return "New events are held, for up to 30 days.";
  return `${number(held)} ${held === 1 ? "event is" : "events are"} held, for up to 30 days.`;
}
