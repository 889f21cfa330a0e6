import { Button, Group, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";

import { ConfirmedAction } from "../../ui/confirm.tsx";
import { SecretField } from "../../ui/copy.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Section } from "../../ui/section.tsx";
import { ErrorNotice } from "../../ui/states.tsx";
import { useAlertActions } from "./data/alerts.ts";

interface AlertSecretProps {
  readonly fingerprint: string;
  /** It is given where the secret was just made. */
  readonly fresh: string | undefined;
  readonly onRotated: (secret: string) => void;
}

/** Shows what alerts are signed with, where it was just made or on request. */
export function AlertSecret({ fingerprint, fresh, onRotated }: AlertSecretProps) {
  const { readSecret, rotateSecret } = useAlertActions();
  const { data: secret = fresh, mutate, error } = useMutation({ mutationFn: readSecret });
  return (
    <Section
      title="Signing secret of alerts"
      description={
        <>
          Fingerprint <code>{fingerprint}</code>. It is not the one of your deliveries. Each look is
          written to the audit log.
        </>
      }
    >
      <Group align="flex-start">
        {secret === undefined ? (
          <Button variant="default" onClick={() => mutate()}>
            Get the secret
          </Button>
        ) : (
          <div className="takes-line">
            <SecretField label="Secret of alerts" value={secret} />
          </div>
        )}
        <ConfirmedAction
          renderButton={(ask) => (
            <Button variant="default" onClick={ask} leftSection={<Icon name="refresh" size={16} />}>
              Rotate the secret …
            </Button>
          )}
          title="Rotate the secret of alerts"
          action="Rotate"
          danger
          onConfirm={async () => onRotated((await rotateSecret()) ?? "")}
        >
          <Text size="sm">
            From the next alert on, signatures are made with a new secret. Receivers that know only
            the present one refuse alerts at once.
          </Text>
        </ConfirmedAction>
      </Group>
      {error !== null && <ErrorNotice error={error} />}
    </Section>
  );
}
