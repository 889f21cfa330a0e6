import { Button, NumberInput, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { useApi } from "../../session.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { SecretField } from "../../ui/copy.tsx";
import { keys } from "./data.ts";
import { Icon } from "../../ui/icon.tsx";

const MAX_GRACE_HOURS = 72;
const DEFAULT_GRACE_HOURS = 24;

/** A new secret; with a grace period deliveries carry both signatures until the receivers have followed. */
export function RotateButton({ id }: { readonly id: string }) {
  const api = useApi();
  const client = useQueryClient();
  const [opened, { open, close }] = useDisclosure();
  const [hours, setHours] = useState(DEFAULT_GRACE_HOURS);
  const [secret, setSecret] = useState<string>();
  const rotate = async () => {
    const { secret: made, ...subscription } = await api.call(
      "POST",
      "/partner/webhooks/:id/rotate-secret",
      { params: { id }, body: { grace_period_hours: hours } },
    );
    client.setQueryData(keys.one(id), subscription);
    setSecret(made);
  };
  return (
    <>
      {secret !== undefined && (
        <div className="takes-line">
          <SecretField label="New secret" value={secret} />
        </div>
      )}
      <Button variant="default" onClick={open} leftSection={<Icon name="refresh" size={16} />}>
        Rotate the secret …
      </Button>
      <Confirm
        opened={opened}
        onClose={close}
        title="Rotate the secret"
        action="Rotate"
        danger={hours === 0}
        onConfirm={rotate}
      >
        <Stack>
          <Text size="sm">
            From the next attempt on, <code>X-SVC-Signature</code> is made with a new secret. During
            the grace period <code>X-SVC-Signature-Previous</code> carries the signature of the
            secret until now as well: accept either, until all of your receivers know the new one.
          </Text>
          <NumberInput
            label="Grace period in hours"
            description="0 to 72"
            min={0}
            max={MAX_GRACE_HOURS}
            allowDecimal={false}
            clampBehavior="strict"
            value={hours}
            onChange={(value) => setHours(Number(value))}
          />
          {hours === 0 && (
            <Text size="sm">
              Without one, receivers that know only the present secret refuse every delivery at
              once.
            </Text>
          )}
        </Stack>
      </Confirm>
    </>
  );
}
