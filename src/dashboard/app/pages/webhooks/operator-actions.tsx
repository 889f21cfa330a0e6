import { Textarea } from "@mantine/core";
import { useState } from "react";

import { answerOf } from "../../api/client.ts";
import { useApi } from "../../session/session.tsx";
import { ConfirmedAction } from "../../ui/dialog.tsx";
import { useRefresh } from "../../ui/pages.ts";
import { WEBHOOKS } from "./data/reads.ts";

interface SubscriptionProps {
  readonly partnerId: number;
  readonly id: string;
  /** Names the subscription and its partner. */
  readonly name: string;
}

/** Returns the actions of an operator on a subscription of a partner. */
function useOperatorActions({ partnerId, id }: SubscriptionProps) {
  const { admin } = useApi();
  const { andRead } = useRefresh(WEBHOOKS);
  const subscription = admin.partners({ id: partnerId }).webhooks({ subscriptionId: id });
  return {
    disable: (reason: string) => andRead(answerOf(subscription.disable.post({ reason }))),
    enable: () => andRead(answerOf(subscription.enable.post({ held: "deliver" }))),
  };
}

/** Button with which an operator disables a subscription of a partner, for a reason that the partner reads. */
export function DisableSubscription(props: SubscriptionProps) {
  const { disable } = useOperatorActions(props);
  const [reason, setReason] = useState("");
  return (
    <ConfirmedAction
      label="Disable"
      button={{ size: "xs", "aria-label": `Disable ${props.name}` }}
      title={`Disable ${props.name}?`}
      action="Disable"
      danger
      isReady={reason.trim() !== ""}
      onConfirm={() => disable(reason.trim())}
      done="Subscription disabled."
    >
      Events are held until an operator enables it again. The partner cannot enable it.
      <Textarea
        label="Reason"
        description="Shown to the partner."
        required
        mt="sm"
        maxLength={500}
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
    </ConfirmedAction>
  );
}

/** Button with which an operator enables a disabled subscription of a partner. */
export function EnableSubscription(props: SubscriptionProps) {
  const { enable } = useOperatorActions(props);
  return (
    <ConfirmedAction
      label="Enable"
      button={{ size: "xs", "aria-label": `Enable ${props.name}` }}
      title={`Enable ${props.name}?`}
      action="Enable"
      onConfirm={enable}
      done="Subscription enabled."
    >
      The held events are delivered in order, and the count of failures starts at 0.
    </ConfirmedAction>
  );
}
