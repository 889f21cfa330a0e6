import { Button, Group, Stack, Text, Timeline, Title } from "@mantine/core";
import "@mantine/core/styles/Timeline.css";
import type { ReactNode } from "react";

import { ConfirmedAction } from "../../../ui/dialog.tsx";
import { Icon } from "../../../ui/icon.tsx";
import { Facts } from "../../../ui/layout.tsx";
import { Countdown, ExactTime } from "../../../ui/time.tsx";
import { useSeesSecrets } from "../data/data.ts";
import type { CheckReport, SubscriptionProps } from "../data/reads.ts";
import { type Secrets, useSubscriptionActions } from "../data/use-subscription-actions.ts";
import { EndpointCheck, useNewestCheck } from "./endpoint-check.tsx";
import { SigningSecret } from "./verify-code.tsx";

interface RotationStepsProps extends SubscriptionProps {
  /** The new secret, if this page has started the rotation. */
  readonly fresh: Secrets | undefined;
  /** True while deliveries carry a signature of the old secret, too. */
  readonly isRunning: boolean;
  readonly onRotate: () => void;
  /** Called after the rotation has ended. */
  readonly onEnded: () => void;
}

/** Leads through a rotation: copy the new secret, deploy it, check the endpoint, end the old secret. */
export function RotationSteps(props: RotationStepsProps) {
  const { subscription, fresh, isRunning, onRotate, onEnded } = props;
  const { id, secret_fingerprint: fingerprint } = subscription;
  const seesSecrets = useSeesSecrets();
  const report = useNewestCheck(id);
  const hasNew = knowsNewSecret(report, isRunning);
  const bullet = (step: number) => (hasNew === true ? <Icon name="check" size={14} /> : step);
  return (
    <Stack gap="md" align="flex-start">
      <Title order={3} size="h5">
        Rotation under way
      </Title>
      <Timeline active={hasNew === true ? 2 : -1} bulletSize={26} lineWidth={2} w="100%">
        <Timeline.Item bullet={bullet(1)} title={<StepTitle>Copy the new secret</StepTitle>}>
          {seesSecrets ? (
            <SigningSecret key={fingerprint} id={id} fresh={fresh} label="New secret" />
          ) : (
            <Text size="sm">Only the partner can view the secret.</Text>
          )}
        </Timeline.Item>
        <Timeline.Item bullet={bullet(2)} title={<StepTitle>Deploy it to your endpoint</StepTitle>}>
          <Text size="sm" mb="xs">
            Replace the old secret in the secret store of your endpoint.{" "}
            {isRunning
              ? "Nothing is lost meanwhile, if your endpoint accepts either of the two signatures."
              : "Until then your endpoint refuses every request, and we retry them."}
          </Text>
          <Signatures {...props} />
        </Timeline.Item>
        <Timeline.Item bullet={bullet(3)} title={<StepTitle>Check that it works</StepTitle>}>
          <Text size="sm" mb="xs">
            {CHECK_WORDS[String(hasNew)]}
          </Text>
          <EndpointCheck id={id} variant="filled" />
        </Timeline.Item>
        <Timeline.Item
          bullet={isRunning ? 4 : bullet(4)}
          title={<StepTitle>End the old secret</StepTitle>}
        >
          {isRunning ? (
            <EndButton subscription={subscription} hasNew={hasNew} onEnded={onEnded} />
          ) : (
            <Group>
              <Text size="sm">The old secret has ended.</Text>
              <Button size="xs" variant="default" onClick={onEnded}>
                Finish
              </Button>
            </Group>
          )}
        </Timeline.Item>
      </Timeline>
      {seesSecrets && isRunning && (
        <Button size="xs" variant="subtle" onClick={onRotate}>
          Rotate once more…
        </Button>
      )}
    </Stack>
  );
}

function StepTitle({ children }: { readonly children: ReactNode }) {
  return (
    <Title order={4} size="h6" fw={600}>
      {children}
    </Title>
  );
}

/**
 * Returns whether a check has shown that the endpoint has the new secret; undefined if none has decided it, and
 * `unclear` if the endpoint accepts a secret that is not its own, because then its answers prove nothing. After the end
 * of the old secret every valid delivery is signed with the new one alone.
 */
function knowsNewSecret(report: CheckReport | undefined, isRunning: boolean): Known {
  const passed = (code: string) => report?.findings.find((one) => one.code === code)?.passed;
  const hasNew = passed(isRunning ? "deployed_secret" : "valid_signature") ?? undefined;
  if (hasNew !== true || passed("foreign_secret") === true) return hasNew;
  return passed("foreign_secret") === false ? "unclear" : undefined;
}

type Known = boolean | "unclear" | undefined;

const CHECK_WORDS: Readonly<Record<string, string>> = {
  true: "Your endpoint has the new secret.",
  false: "Your endpoint does not have the new secret yet. Deploy it, then check again.",
  unclear:
    "Your endpoint accepts the signature of any secret, so no check can tell whether it has the new one.",
  undefined: "Test requests show whether your endpoint has the new secret.",
};

/** Lists the signature headers that requests carry now, for the developer of the endpoint. */
function Signatures({ subscription, isRunning }: RotationStepsProps) {
  const { standard_webhooks: isStandard } = subscription;
  return (
    <section aria-label="Signatures sent now">
      <Facts
        facts={[
          ["X-SVC-Signature", "signed with the new secret"],
          ...(isRunning
            ? [["X-SVC-Signature-Previous", "signed with the old secret"] as const]
            : []),
          ...(isStandard
            ? [
                [
                  "webhook-signature",
                  `signed with ${isRunning ? "both secrets" : "the new secret"}`,
                ] as const,
              ]
            : []),
        ]}
      />
    </section>
  );
}

interface EndButtonProps extends SubscriptionProps {
  readonly hasNew: Known;
  readonly onEnded: () => void;
}

function EndButton({ subscription, hasNew, onEnded }: EndButtonProps) {
  const { endPreviousSecret } = useSubscriptionActions(subscription.id);
  const { previous_secret_expires_at: until } = subscription;
  return (
    <Stack gap="xs" align="flex-start">
      {until !== null && (
        <Text size="sm">
          It ends by itself <ExactTime at={until} />, <Countdown to={until} />.
        </Text>
      )}
      <ConfirmedAction
        label="End the old secret now…"
        button={{ variant: hasNew === true ? "filled" : "default" }}
        title="End the old secret"
        action="End it"
        danger={hasNew !== true}
        onConfirm={async () => {
          await endPreviousSecret();
          onEnded();
        }}
        done="Old secret ended. Requests carry one signature again."
      >
        {hasNew === true
          ? "The check has shown that your endpoint has the new secret."
          : "No check has shown yet that your endpoint has the new secret. If it has only the old one, it refuses every request from now on."}{" "}
        This cannot be undone.
      </ConfirmedAction>
    </Stack>
  );
}
