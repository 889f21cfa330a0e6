import { Button, Group, NumberInput, Text, Title } from "@mantine/core";
import "@mantine/core/styles/NumberInput.css";
import { useDisclosure } from "@mantine/hooks";
import { useEffect, useState } from "react";

import { Choice, Form, SubmitButton, useForm } from "../../../ui/form.tsx";
import { counted } from "../../../ui/format.ts";
import { Icon } from "../../../ui/icon.tsx";
import { Section, useFocusFallback } from "../../../ui/layout.tsx";
import { useCountdown } from "../../../ui/time.tsx";
import { useSeesSecrets } from "../data/data.ts";
import type { SubscriptionProps } from "../data/reads.ts";
import { type Secrets, useSubscriptionActions } from "../data/use-subscription-actions.ts";
import { EndpointCheck } from "./endpoint-check.tsx";
import css from "./form.module.css";
import { RotationSteps } from "./rotation-steps.tsx";
import { targetOf } from "./settings-form.tsx";
import { SigningSecret, VerifyCode } from "./verify-code.tsx";

export const SECRET_TITLE = "Signing secret";

/** Shows the signing secret, rotates it, and leads through the steps of a rotation that is under way. */
export function SecretPanel({ subscription }: SubscriptionProps) {
  const { secret_fingerprint: fingerprint, standard_webhooks: standard } = subscription;
  return (
    <Section
      id={targetOf(SECRET_TITLE)}
      title={SECRET_TITLE}
      description={
        <>
          Your endpoint verifies with it that a request comes from us. Its fingerprint is{" "}
          <code>{fingerprint}</code>, the first 16 digits of its SHA-256: use it to compare secrets
          without showing them.
        </>
      }
    >
      {/* The `key` mounts a new component after the headers of Standard Webhooks were switched on or off, so that a
         shown secret disappears, which lacks the other form. */}
      <Secret key={String(standard)} subscription={subscription} />
      <details>
        <summary>Code to verify signatures</summary>
        <VerifyCode />
      </details>
    </Section>
  );
}

function Secret({ subscription }: SubscriptionProps) {
  const { id, previous_secret_expires_at: until } = subscription;
  const [isStarting, start] = useDisclosure();
  /** The new secret of a rotation that this page has started. */
  const [fresh, setFresh] = useState<Secrets>();
  const seesSecrets = useSeesSecrets();
  const isRunning = useCountdown(until === null ? undefined : Date.parse(until)) > 0;
  const state = fresh !== undefined || isRunning ? "rotating" : "resting";
  const container = useFocusFallback(`${state} ${isStarting}`);
  // The form that started the rotation was taller than its steps, of which the first would be out of view.
  useEffect(() => {
    if (fresh !== undefined) container.current?.closest("section[id]")?.scrollIntoView();
  }, [fresh, container]);
  const content = () => {
    if (isStarting)
      return (
        <StartRotation id={id} isAgain={isRunning} onRotated={setFresh} onClose={start.close} />
      );
    if (state === "rotating")
      return (
        <RotationSteps
          subscription={subscription}
          fresh={fresh}
          isRunning={isRunning}
          onRotate={start.open}
          onEnded={() => setFresh(undefined)}
        />
      );
    if (!seesSecrets) return <Text size="sm">Only the partner can view the secret.</Text>;
    return (
      <Group align="flex-start">
        {/* The `key` hides a secret that is no longer the current one. */}
        <SigningSecret key={subscription.secret_fingerprint} id={id} />
        <Button
          variant="default"
          leftSection={<Icon name="refresh" size={16} />}
          onClick={start.open}
        >
          Rotate the secret…
        </Button>
      </Group>
    );
  };
  return (
    <section ref={container} tabIndex={-1} aria-label="Secret">
      {content()}
    </section>
  );
}

const MAX_GRACE_HOURS = 72;

interface Rotation {
  /** Whether the old secret stays valid for a while, or ends at once. */
  readonly old: "keep" | "end";
  readonly hours: number;
}

interface StartRotationProps {
  readonly id: string;
  /** True if the rotation before is not over yet, whose old secret then ends. */
  readonly isAgain: boolean;
  readonly onRotated: (secrets: Secrets) => void;
  readonly onClose: () => void;
}

/** Form that starts a rotation. It offers to check first whether the endpoint takes two signatures. */
function StartRotation({ id, isAgain, onRotated, onClose }: StartRotationProps) {
  const { rotateSecret } = useSubscriptionActions(id);
  const form = useForm<Rotation, Secrets>({
    initial: { old: "keep", hours: 24 },
    send: ({ old, hours }) => rotateSecret(old === "keep" ? hours : 0),
    onDone: (secrets) => {
      onRotated(secrets);
      onClose();
    },
  });
  const { old, hours } = form.draft;
  return (
    <div className={css.nested}>
      <Title order={3} size="h5" mb="sm">
        Rotate the secret
      </Title>
      <Form
        form={form}
        buttons={
          <Group>
            <SubmitButton
              form={form}
              // An empty field is 0 hours, which would end the old secret at once.
              isReady={old === "end" || hours > 0}
              {...(old === "end" && { color: "red" })}
            >
              Rotate
            </SubmitButton>
            <Button variant="default" onClick={onClose} disabled={form.isBusy}>
              Cancel
            </Button>
          </Group>
        }
      >
        <Choice
          label="The old secret"
          value={old}
          onChange={(next) => form.edit({ old: next })}
          isFirst
          options={[
            {
              value: "keep",
              label: `Keep it valid for ${counted(hours, "hour")} (recommended)`,
              description:
                "Requests carry a signature of each secret, so your endpoint accepts them before and after you deploy the new one.",
            },
            {
              value: "end",
              label: "End it at once",
              description:
                "After a leak. Your endpoint refuses every request until it has the new secret.",
            },
          ]}
        />
        {old === "keep" && (
          <>
            <NumberInput
              label="Hours"
              description={`The old secret ends after this time: 1 to ${MAX_GRACE_HOURS} hours. You can end it earlier.`}
              min={1}
              max={MAX_GRACE_HOURS}
              maw={320}
              allowDecimal={false}
              clampBehavior="strict"
              value={hours === 0 ? "" : hours}
              onChange={(value) => form.edit({ hours: Number(value) })}
            />
            <div>
              <Text size="sm" mb="xs">
                Does your endpoint accept a request if either signature is valid? If you are not
                sure, check it first.
              </Text>
              <EndpointCheck id={id} />
            </div>
          </>
        )}
        {isAgain && (
          <Text size="sm">
            The last rotation is not over: its old secret ends now, and the present one becomes the
            old one.
          </Text>
        )}
      </Form>
    </div>
  );
}
