import { Group, NumberInput, Stack, Text } from "@mantine/core";
import "@mantine/core/styles/NumberInput.css";
import { useState } from "react";

import { ConfirmedAction } from "../../../ui/dialog.tsx";
import { Icon } from "../../../ui/icon.tsx";
import { Facts, Section, useFocusFallback } from "../../../ui/layout.tsx";
import { useCountdown } from "../../../ui/time.tsx";
import { Countdown, ExactTime } from "../../../ui/time.tsx";
import { useSeesSecrets } from "../data/data.ts";
import type { SubscriptionProps } from "../data/reads.ts";
import { type Secrets, useSubscriptionActions } from "../data/use-subscription-actions.ts";
import { SigningSecret, VerifyCode } from "./verify-code.tsx";

/** Shows the signing secret, the signature headers of deliveries, and after a rotation the end of the grace period. */
export function SecretPanel({ subscription }: SubscriptionProps) {
  const { id, secret_fingerprint: fingerprint, standard_webhooks: standard } = subscription;
  const seesSecrets = useSeesSecrets();
  return (
    <Section title="Signing secret">
      <Text size="sm">
        Fingerprint <code>{fingerprint}</code>: the first 16 digits of its SHA-256, to compare it
        without showing it. Each view of the secret is recorded in the audit log.
      </Text>
      <Signatures subscription={subscription} />
      {/* The `key` mounts a new component after a rotation, or after Standard Webhooks headers were switched on
         or off, so that a shown secret disappears. */}
      {seesSecrets ? (
        <Group align="flex-start">
          <SigningSecret key={`${fingerprint} ${standard}`} id={id} />
          <RotateButton key={String(standard)} id={id} />
        </Group>
      ) : (
        <Text size="sm">Only the partner can view the secret.</Text>
      )}
      <details>
        <summary>Code to verify signatures</summary>
        <VerifyCode />
      </details>
    </Section>
  );
}

/** Lists the signature headers that deliveries currently carry, for the developer of the receiving endpoint. */
function Signatures({ subscription }: SubscriptionProps) {
  const { previous_secret_expires_at: until, standard_webhooks: standard } = subscription;
  const isRunning = useCountdown(until === null ? undefined : Date.parse(until)) > 0;
  const container = useFocusFallback(String(isRunning));
  return (
    <section ref={container} tabIndex={-1} aria-label="Signatures sent now">
      <Facts
        facts={[
          ["X-SVC-Signature", "signed with the current secret"],
          [
            "X-SVC-Signature-Previous",
            isRunning && until !== null ? (
              <>
                signed with the previous secret, until <ExactTime at={until} />,{" "}
                <Countdown to={until} />
              </>
            ) : (
              "not sent"
            ),
          ],
          ...(standard
            ? [
                [
                  "webhook-signature",
                  `signed with ${isRunning ? "both secrets" : "the current secret"}`,
                ] as const,
              ]
            : []),
        ]}
      />
      {isRunning && (
        <>
          <Text size="sm" my="sm">
            Every attempt carries both headers. A receiver that still has the previous secret must
            verify the second header. Check your receivers before you revoke the previous secret.
            Another rotation revokes it, too.
          </Text>
          <EndButton id={subscription.id} />
        </>
      )}
    </section>
  );
}

function EndButton({ id }: { readonly id: string }) {
  const { endPreviousSecret } = useSubscriptionActions(id);
  return (
    <ConfirmedAction
      label="Revoke the previous secret now …"
      title="Revoke the previous secret"
      action="Revoke"
      danger
      onConfirm={endPreviousSecret}
      done="The previous secret is revoked. Deliveries now carry one signature."
    >
      From the next attempt on, deliveries carry only <code>X-SVC-Signature</code>. A receiver that
      knows only the previous secret rejects all of them. This cannot be undone and is recorded in
      the audit log.
    </ConfirmedAction>
  );
}

const MAX_GRACE_HOURS = 72;
const DEFAULT_GRACE_HOURS = 24;

/**
 * Button that rotates the signing secret. During the grace period deliveries carry signatures of both secrets,
 * so that receivers can switch without downtime.
 */
function RotateButton({ id }: { readonly id: string }) {
  const { rotateSecret } = useSubscriptionActions(id);
  const [hours, setHours] = useState(DEFAULT_GRACE_HOURS);
  const [secrets, setSecrets] = useState<Secrets>();
  return (
    <>
      {secrets !== undefined && <SigningSecret id={id} fresh={secrets} label="New secret" />}
      <ConfirmedAction
        label="Rotate the secret …"
        button={{ leftSection: <Icon name="refresh" size={16} /> }}
        title="Rotate the secret"
        action="Rotate"
        danger={hours === 0}
        onConfirm={async () => setSecrets(await rotateSecret(hours))}
      >
        <GracePeriod hours={hours} onChange={setHours} />
      </ConfirmedAction>
    </>
  );
}

interface GracePeriodProps {
  readonly hours: number;
  readonly onChange: (hours: number) => void;
}

function GracePeriod({ hours, onChange }: GracePeriodProps) {
  return (
    <Stack>
      <Text size="sm">
        From the next attempt on, <code>X-SVC-Signature</code> is computed with a new secret. During
        the grace period, <code>X-SVC-Signature-Previous</code> also carries the signature with the
        current secret. Accept either signature until all of your receivers have the new secret.
        Code that verifies only the first header rejects deliveries until it has the new secret.
      </Text>
      <NumberInput
        label="Grace period in hours"
        description="0 to 72"
        min={0}
        max={MAX_GRACE_HOURS}
        allowDecimal={false}
        clampBehavior="strict"
        value={hours}
        onChange={(value) => onChange(Number(value))}
      />
      {hours === 0 && (
        <Text size="sm">
          Without a grace period, receivers that know only the current secret reject every delivery
          from now on.
        </Text>
      )}
    </Stack>
  );
}
