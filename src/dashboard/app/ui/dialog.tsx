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
 * A modal dialog whose content is mounted anew each time it opens. Its header is built here, because
 * Mantine's is a second banner landmark to screen readers.
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
  /** Explains the consequences, including what is lost. */
  readonly children: ReactNode;
  /** The verb on the button. */
  readonly action: string;
  readonly danger?: boolean;
  /** False while the user must still fill in something. */
  readonly isReady?: boolean;
  readonly onConfirm: () => Promise<unknown>;
}

/**
 * Asks for confirmation before an action that cannot be undone. If the action fails, the dialog stays open
 * and shows the error.
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
  /** Renders the button that opens the dialog by calling `ask`. */
  readonly renderButton: (ask: () => void) => ReactNode;
}

/** A button whose action needs a confirmation. */
export function ConfirmedAction({ renderButton, ...question }: ConfirmedProps) {
  const [opened, { open, close }] = useDisclosure();
  return (
    <>
      {renderButton(open)}
      <Confirm opened={opened} onClose={close} {...question} />
    </>
  );
}
