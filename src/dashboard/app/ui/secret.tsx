import { Alert, Button, Group, Stack, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";

import { CopyTextButton } from "./copy.tsx";
import { Dialog } from "./dialog.tsx";
import { Icon } from "./icon.tsx";
import { ErrorNotice } from "./states.tsx";

const MOST_DOTS = 32;

interface SecretFieldProps {
  readonly label: string;
  /** The secret; undefined before it was read. */
  readonly value: string | undefined;
  /**
   * Reads a secret that has no value yet, and returns undefined if that fails. Show and Copy call it, because the API
   * writes each read into the audit log.
   */
  readonly read?: () => Promise<string | undefined>;
}

/** Shows a secret as dots until the user asks to see it. */
export function SecretField({ label, value, read = async () => value }: SecretFieldProps) {
  const [isShown, setShown] = useState(false);
  const show = async () => setShown(value !== undefined || (await read()) !== undefined);
  const dots = Math.min(value?.length ?? MOST_DOTS, MOST_DOTS);
  return (
    <Group align="flex-end" gap="xs">
      <TextInput
        label={label}
        value={isShown && value !== undefined ? value : "•".repeat(dots)}
        readOnly
        flex="1 1 260px"
        classNames={{ input: "mono" }}
      />
      <Button
        variant="default"
        onClick={() => (isShown ? setShown(false) : void show())}
        aria-pressed={isShown}
      >
        {isShown ? "Hide" : "Show"}
      </Button>
      <CopyTextButton value={value ?? read}>Copy</CopyTextButton>
    </Group>
  );
}

interface SecretOnRequestProps {
  /** Secrets by their labels, if they were just created or rotated; undefined otherwise. */
  readonly fresh: Readonly<Record<string, string>> | undefined;
  readonly read: () => Promise<Readonly<Record<string, string>>>;
}

/**
 * Shows secrets immediately after they were created or rotated. Otherwise reads and shows them on request, because
 * the API writes each read into the audit log.
 */
export function SecretOnRequest({ fresh, read }: SecretOnRequestProps) {
  const { data: secrets = fresh, mutate, error } = useMutation({ mutationFn: read });
  if (secrets !== undefined)
    return (
      <Stack gap="xs" flex="1 1 100%">
        {Object.entries(secrets).map(([label, value]) => (
          <SecretField key={label} label={label} value={value} />
        ))}
      </Stack>
    );
  return (
    <Stack gap="xs" align="flex-start">
      <Button variant="default" onClick={() => mutate()}>
        View secret
      </Button>
      {error !== null && <ErrorNotice error={error} />}
    </Stack>
  );
}

interface SecretDialogProps {
  readonly title: string;
  readonly label: string;
  /** Secret to show. The dialog is open while this is defined. */
  readonly secret: string | undefined;
  readonly onClose: () => void;
  readonly children?: ReactNode;
}

/**
 * Dialog for a secret that the API never returns again. It closes by its button only, so that the user cannot lose the
 * secret by accident.
 */
export function SecretDialog({ title, label, secret, onClose, children }: SecretDialogProps) {
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
        <Alert color="yellow" icon={<Icon name="alert" />}>
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
