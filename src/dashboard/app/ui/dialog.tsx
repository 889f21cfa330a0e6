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
 * Its content is made anew each time it is opened. Its head is put together here, because that of `Modal` is a second
 * banner of the page to screen readers.
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
  /** The text says what happens, and what is lost by it. */
  readonly children: ReactNode;
  /** The verb that stands on the button. */
  readonly action: string;
  readonly danger?: boolean;
  /** It is false while something is still to be filled in. */
  readonly isReady?: boolean;
  readonly onConfirm: () => Promise<unknown>;
}

/** Asks before something that cannot be taken back. Stays open, with the reason, where it failed. */
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
  /** Answers the button; it opens the question by calling `ask`. */
  readonly renderButton: (ask: () => void) => ReactNode;
}

/** A button that asks before it does its work. */
export function ConfirmedAction({ renderButton, ...question }: ConfirmedProps) {
  const [opened, { open, close }] = useDisclosure();
  return (
    <>
      {renderButton(open)}
      <Confirm opened={opened} onClose={close} {...question} />
    </>
  );
}
