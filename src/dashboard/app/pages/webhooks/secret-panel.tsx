import { Button, Group, Text } from "@mantine/core";

import { ConfirmedAction } from "../../ui/confirm.tsx";
import { Countdown } from "../../ui/countdown.tsx";
import { useKeptFocus } from "../../ui/kept-focus.ts";
import { notify } from "../../ui/notify.ts";
import { Section } from "../../ui/section.tsx";
import { ExactTime } from "../../ui/time.tsx";
import { useCountdown } from "../../ui/use-time.ts";
import type { Subscription } from "./data/reads.ts";
import { useSubscriptionActions } from "./data/use-subscription-actions.ts";
import { RotateButton } from "./rotate-button.tsx";
import { Secret } from "./secret.tsx";
import { VerifyCode } from "./verify-code.tsx";

interface PanelProps {
  readonly subscription: Subscription;
}

/** The secret, what is signed with it, and until when the one before signs as well. */
export function SecretPanel({ subscription }: PanelProps) {
  const { id, secret_fingerprint: fingerprint } = subscription;
  return (
    <Section title="Signing secret">
      <Text size="sm">
        Fingerprint <code>{fingerprint}</code>: the first 16 digits of its SHA-256, to compare
        without showing it. Each look is written to the audit log.
      </Text>
      <Signatures subscription={subscription} />
      {/* The key hides a secret that was shown before a rotation. */}
      <Group align="flex-start">
        <Secret key={fingerprint} id={id} />
        <RotateButton id={id} />
      </Group>
      <details>
        <summary>Code that checks signatures</summary>
        <VerifyCode />
      </details>
    </Section>
  );
}

/** The headers that a delivery carries at this moment, in words for whoever writes the receiver. */
function Signatures({ subscription }: PanelProps) {
  const { previous_secret_expires_at: until } = subscription;
  const isRunning = useCountdown(until === null ? undefined : Date.parse(until)) > 0;
  const place = useKeptFocus(String(isRunning));
  return (
    <section ref={place} tabIndex={-1} className="panel" aria-label="Signatures sent now">
      <dl className="signatures">
        <dt>
          <code>X-SVC-Signature</code>
        </dt>
        <dd>made with the present secret</dd>
        <dt>
          <code>X-SVC-Signature-Previous</code>
        </dt>
        {isRunning && until !== null ? (
          <dd>
            made with the former secret, until <ExactTime at={until} />, <Countdown to={until} />
          </dd>
        ) : (
          <dd>not sent</dd>
        )}
      </dl>
      {isRunning && (
        <>
          <Text size="sm" my="sm">
            Every delivery carries both, so that receivers with either secret take it. Which of the
            two a receiver checks it does not tell us: look there before you end the former secret.
            Rotating again ends it, too.
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
      renderButton={(ask) => (
        <Button variant="default" onClick={ask}>
          End the former secret now …
        </Button>
      )}
      title="End the former secret"
      action="End it"
      danger
      onConfirm={async () => {
        await endPreviousSecret();
        notify.done("Deliveries carry one signature now.");
      }}
    >
      From the next attempt on deliveries carry <code>X-SVC-Signature</code> alone. A receiver that
      knows only the former secret refuses them all. This cannot be taken back; it is written to the
      audit log.
    </ConfirmedAction>
  );
}
