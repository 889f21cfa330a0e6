import { Alert, Button, Group, Stack } from "@mantine/core";
import type { ReactNode } from "react";

import { SecretField } from "../../ui/copy.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Icon } from "../../ui/icon.tsx";

interface ShownOnceProps {
  readonly title: string;
  readonly label: string;
  /** Secret to show. The dialog is open while this is defined. */
  readonly secret: string | undefined;
  readonly onClose: () => void;
  readonly children?: ReactNode;
}

/**
 * Dialog for a secret that the API never returns again. Clicks outside do not close the dialog, so that the
 * user cannot lose the secret by accident.
 */
export function ShownOnce({ title, label, secret, onClose, children }: ShownOnceProps) {
  return (
    <Dialog
      opened={secret !== undefined}
      onClose={onClose}
      title={title}
      withCloseButton={false}
      closeOnClickOutside={false}
      closeOnEscape={false}
      size="lg"
      centered
    >
      <Stack>
        <Alert variant="light" color="yellow" icon={<Icon name="alert" />}>
          Copy it now. You cannot see it again.
        </Alert>
        {children}
        {secret !== undefined && <SecretField label={label} value={secret} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            I have stored it
          </Button>
        </Group>
      </Stack>
    </Dialog>
  );
}
