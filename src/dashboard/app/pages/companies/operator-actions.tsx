import { Button, Text, Textarea } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";

import { answerOf } from "../../api/client.ts";
import { useApi } from "../../session/session.tsx";
import { SecretField } from "../../ui/secret.tsx";
import { ConfirmedAction, Dialog } from "../../ui/dialog.tsx";
import { notify } from "../../ui/notify.ts";
import { Time } from "../../ui/time.tsx";

interface PartnerProps {
  readonly id: number;
  readonly name: string;
}

/** Button with which an operator opens the webhook pages of a partner and acts there as its owner. */
export function ActAsPartner({ id, name }: PartnerProps) {
  const { admin } = useApi();
  const { mutate, data, isPending, reset } = useMutation({
    mutationFn: () =>
      answerOf(
        admin.partners({ id })["portal-links"].post({ pages: ["webhooks"], access: "write" }),
      ),
    onError: (error) => notify.failed(error),
  });
  return (
    <>
      <Button variant="default" size="xs" loading={isPending} onClick={() => mutate()}>
        Act as partner
      </Button>
      <Dialog opened={data !== undefined} onClose={reset} title={`Act as ${name}`} centered>
        {data !== undefined && (
          <>
            <Text size="sm" mb="sm">
              The link opens the webhook pages as the owner. It works once and expires{" "}
              <Time at={data.expires_at} mayBeAhead />. Everything that you do is recorded in the
              audit log.
            </Text>
            <SecretField label="Portal link" value={data.url} />
            <Button component="a" href={data.url} target="_blank" rel="noopener" mt="sm">
              Open portal
            </Button>
          </>
        )}
      </Dialog>
    </>
  );
}

interface SubscriptionProps {
  readonly partnerId: number;
  readonly id: string;
  /** Names the subscription for screen readers. */
  readonly name: string;
}

/** Button with which an operator disables a subscription of a partner, for a reason that the partner reads. */
export function DisableSubscription({ partnerId, id, name }: SubscriptionProps) {
  const { admin } = useApi();
  const [reason, setReason] = useState("");
  const disable = () =>
    answerOf(
      admin
        .partners({ id: partnerId })
        .webhooks({ subscriptionId: id })
        .disable.post({ reason: reason.trim() }),
    );
  return (
    <ConfirmedAction
      label="Disable"
      button={{ size: "xs", "aria-label": `Disable ${name}` }}
      title="Disable the subscription?"
      action="Disable"
      danger
      isReady={reason.trim() !== ""}
      onConfirm={disable}
      done="Subscription disabled."
    >
      Events are held until an operator enables it again. The partner cannot enable it.
      <Textarea
        label="Reason"
        description="Shown to the partner."
        mt="sm"
        maxLength={500}
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
    </ConfirmedAction>
  );
}
