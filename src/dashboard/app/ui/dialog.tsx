import { Button, Group, Modal, type ModalRootProps, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";

import { ErrorNotice } from "./states.tsx";

interface DialogProps extends Omit<ModalRootProps, "title"> {
  readonly title: string;
  readonly withCloseButton?: boolean;
}

/**
 * Modal dialog whose content is mounted again each time the dialog opens. Has its own header, because Mantine's
 * header is a second banner landmark for screen readers.
 */
export function Dialog({ title, children, withCloseButton = true, ...props }: DialogProps) {
  return (
    <Modal.Root {...props}>
      <Modal.Overlay />
      <Modal.Content>
        <Modal.Header role="presentation">
          <Modal.Title>
            <Text fw={650} span>
              {title}
            </Text>
          </Modal.Title>
          {withCloseButton && <Modal.CloseButton aria-label="Close" />}
        </Modal.Header>
        <Modal.Body>{children}</Modal.Body>
      </Modal.Content>
    </Modal.Root>
  );
}

interface ConfirmProps {
  readonly opened: boolean;
  readonly onClose: () => void;
  readonly title: string;
  /** Explanation of the consequences, including the data that are lost. */
  readonly children: ReactNode;
  /** Verb on the button that confirms. */
  readonly action: string;
  readonly danger?: boolean;
  /** False while the user must still fill in a field of the dialog. */
  readonly isReady?: boolean;
  readonly onConfirm: () => Promise<unknown>;
}

/**
 * Dialog that asks for confirmation of an action that cannot be undone. If the action fails, the dialog stays
 * open and shows the error.
 */
export function Confirm(props: ConfirmProps) {
  const { opened, onClose, title, children, action, danger = false, isReady = true } = props;
  const { mutate, error, isPending } = useMutation({
    mutationFn: props.onConfirm,
    onSuccess: onClose,
  });
  return (
    <Dialog opened={opened} onClose={onClose} title={title} centered>
      <Stack>
        <Text component="div" size="sm">
          {children}
        </Text>
        {error !== null && <ErrorNotice error={error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose} disabled={isPending}>
            Cancel
          </Button>
          <Button
            {...(danger && { color: "red" })}
            onClick={() => mutate()}
            loading={isPending}
            disabled={!isReady}
          >
            {action}
          </Button>
        </Group>
      </Stack>
    </Dialog>
  );
}

interface ConfirmedProps extends Omit<ConfirmProps, "opened" | "onClose"> {
  /** Renders the button that opens the dialog. The button must call `ask`. */
  readonly renderButton: (ask: () => void) => ReactNode;
}

/** Button with a dialog that asks for confirmation before the action runs. */
export function ConfirmedAction({ renderButton, ...question }: ConfirmedProps) {
  const [opened, { open, close }] = useDisclosure();
  return (
    <>
      {renderButton(open)}
      <Confirm opened={opened} onClose={close} {...question} />
    </>
  );
}
