import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useState, type ReactNode } from "react";

import { ErrorNotice } from "./states.tsx";

interface ConfirmProps {
  readonly opened: boolean;
  readonly onClose: () => void;
  readonly title: string;
  /** What happens, and what is lost by it. */
  readonly children: ReactNode;
  /** The verb on the button. */
  readonly action: string;
  readonly danger?: boolean;
  /** False while something is still to be filled in. */
  readonly isReady?: boolean;
  readonly onConfirm: () => Promise<unknown>;
}

/** Asks before something that cannot be taken back. Stays open, with the reason, where it failed. */
export function Confirm(props: ConfirmProps) {
  const {
    opened,
    onClose,
    title,
    children,
    action,
    danger = false,
    isReady = true,
    onConfirm,
  } = props;
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const confirm = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await onConfirm();
      onClose();
    } catch (caught) {
      setError(caught);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={<Text fw={650}>{title}</Text>}
      closeButtonProps={{ "aria-label": "Close" }}
      centered
    >
      <Stack>
        <Text component="div" size="sm">
          {children}
        </Text>
        {error !== undefined && <ErrorNotice error={error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose} disabled={isBusy}>
            Cancel
          </Button>
          <Button
            {...(danger && { color: "red" })}
            onClick={() => void confirm()}
            loading={isBusy}
            disabled={!isReady}
          >
            {action}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
