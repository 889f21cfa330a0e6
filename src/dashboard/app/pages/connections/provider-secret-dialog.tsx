import { Button, Code, Group, Stack, Text } from "@mantine/core";

import { SecretField } from "../../ui/copy.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import type { ProviderSecret } from "./data.ts";

interface ProviderSecretDialogProps {
  /** The dialog is closed while it is undefined. */
  readonly provider: ProviderSecret | undefined;
  readonly onClose: () => void;
}

/** Shows a secret that the server will not tell again. */
export function ProviderSecretDialog({ provider, onClose }: ProviderSecretDialogProps) {
  return (
    <Dialog
      opened={provider !== undefined}
      onClose={onClose}
      title={`The secret of ${provider?.name ?? ""}`}
      closeOnClickOutside={false}
      size="lg"
    >
      <Stack>
        <Text size="sm">
          Copy it now: it is not shown again. Whoever sends events signs the body with it, in{" "}
          <Code>X-Provider-Signature</Code>.
        </Text>
        {provider && <SecretField label="Secret" value={provider.secret} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            I have it
          </Button>
        </Group>
      </Stack>
    </Dialog>
  );
}
