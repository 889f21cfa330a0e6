import { Button, NumberInput, Stack, Text } from "@mantine/core";
import { useState } from "react";

import { ConfirmedAction } from "../../ui/confirm.tsx";
import { SecretField } from "../../ui/copy.tsx";
import { Icon } from "../../ui/icon.tsx";
import { useSubscriptionActions } from "./data/use-subscription-actions.ts";

import "@mantine/core/styles/NumberInput.css";

const MAX_GRACE_HOURS = 72;
const DEFAULT_GRACE_HOURS = 24;

/** Makes a new secret; in the grace period deliveries carry both signatures, until the receivers have followed. */
export function RotateButton({ id }: { readonly id: string }) {
  const { rotateSecret } = useSubscriptionActions(id);
  const [hours, setHours] = useState(DEFAULT_GRACE_HOURS);
  const [secret, setSecret] = useState<string>();
  return (
    <>
      {secret !== undefined && (
        <div className="takes-line">
          <SecretField label="New secret" value={secret} />
        </div>
      )}
      <ConfirmedAction
        renderButton={(ask) => (
          <Button variant="default" onClick={ask} leftSection={<Icon name="refresh" size={16} />}>
            Rotate the secret …
          </Button>
        )}
        title="Rotate the secret"
        action="Rotate"
        danger={hours === 0}
        onConfirm={async () => setSecret(await rotateSecret(hours))}
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
        From the next attempt on, <code>X-SVC-Signature</code> is made with a new secret. During the
        grace period <code>X-SVC-Signature-Previous</code> carries the signature of the secret until
        now as well: accept either, until all of your receivers know the new one.
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
          Without one, receivers that know only the present secret refuse every delivery at once.
        </Text>
      )}
    </Stack>
  );
}
