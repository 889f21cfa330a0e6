import {
  Alert,
  Button,
  type ButtonProps,
  Group,
  Modal,
  type ModalRootProps,
  Stack,
  Text,
} from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useEffect, useId, useState } from "react";

import { Icon } from "./icon.tsx";
import { notify } from "./notify.ts";
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
  const isTopmost = useTopmost(props.opened);
  return (
    <Modal.Root {...props} onClose={() => isTopmost() && props.onClose()}>
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

interface DialogButtonProps {
  readonly label: string;
  readonly title?: string;
  /** Look of a button that creates nothing. If absent, the button has the icon of a creation. */
  readonly button?: ButtonProps & { readonly "aria-label"?: string };
  /** True if the address of the page asks for the dialog. */
  readonly isOpen?: boolean;
  /** Called after the dialog was closed, for example to remove from the address what had opened it. */
  readonly onClosed?: () => unknown;
  /** Returns the form of the dialog, which calls `close` when it is done. */
  readonly children: (close: () => void) => ReactNode;
}

/** What opens a dialog from the address of its page. */
export type OpenedByLink = Pick<DialogButtonProps, "isOpen" | "onClosed">;

/** Button that opens a dialog with a form, for example to create something. */
export function DialogButton(props: DialogButtonProps) {
  const { label, title = label, isOpen = false, onClosed, children } = props;
  const { button = { leftSection: <Icon name="plus" size={16} /> } } = props;
  const [opened, { open, close: hide }] = useDisclosure(isOpen);
  // Calls `onClosed` at once, because a form may lead to another page next. Mantine would call it in a later render.
  const close = () => {
    hide();
    onClosed?.();
  };
  // A search for an action of the page that is shown changes only the address.
  useEffect(() => {
    if (isOpen) open();
  }, [isOpen, open]);
  return (
    <>
      <Button {...button} onClick={open}>
        {label}
      </Button>
      <Dialog opened={opened} onClose={close} title={title} size="lg">
        {children(close)}
      </Dialog>
    </>
  );
}

/**
 * State of one dialog that all rows of a list share, because a dialog per row slows scrolling. `row` is undefined
 * until the dialog is first opened, and does not change while the dialog closes.
 */
export function useRowDialog<Row>() {
  const [row, setRow] = useState<Row>();
  const [opened, { open, close }] = useDisclosure();
  const show = (next: Row) => {
    setRow(next);
    open();
  };
  return { show, dialog: { row, opened, onClose: close } };
}

/** Ids of the open dialogs, the topmost last. */
const openDialogs: string[] = [];

/**
 * Returns a function that tells whether a dialog is the topmost one. Every open dialog of Mantine receives the Escape
 * key, but only the topmost dialog may close.
 */
function useTopmost(isOpen: boolean): () => boolean {
  const id = useId();
  useEffect(() => {
    if (!isOpen) return undefined;
    openDialogs.push(id);
    return () => {
      // Removes the dialog from the list in a later task. The dialogs below still receive the key press that closed
      // this dialog, and would close, too, if they were topmost.
      setTimeout(() => openDialogs.splice(openDialogs.indexOf(id), 1));
    };
  }, [isOpen, id]);
  return () => openDialogs.at(-1) === id;
}

/** Returns whether a dialog is open. Shortcuts of the page ignore keys while one is open. */
export const hasDialog = () => document.querySelector("[role=dialog]") !== null;

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
  /**
   * Returns an explanation of an error after which the action cannot succeed; undefined for other errors. The dialog
   * shows it in place of the default error notice, and disables the button.
   */
  readonly refusalOf?: (error: Error) => string | undefined;
  /** Notification after the action has succeeded. */
  readonly done?: string;
}

/**
 * Dialog that asks for confirmation of an action that cannot be undone. If the action fails, the dialog stays
 * open and shows the error.
 */
export function Confirm(props: ConfirmProps) {
  const { opened, title, children, action, danger = false, isReady = true } = props;
  const { mutate, error, isPending, reset } = useMutation({
    // Shows the notification in `mutationFn` and not in `onSuccess`, which would use the text of a later render.
    mutationFn: async () => {
      await props.onConfirm();
      if (props.done !== undefined) notify.done(props.done);
    },
    onSuccess: () => onClose(),
  });
  const onClose = () => {
    reset();
    props.onClose();
  };
  const refusal = error === null ? undefined : props.refusalOf?.(error);
  return (
    <Dialog opened={opened} onClose={onClose} title={title} centered>
      {/* A form, so that Enter in a field confirms, as in every other form. */}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          // The event would bubble to a form in which the dialog is rendered.
          event.stopPropagation();
          if (isReady && !isPending) mutate();
        }}
      >
        <Stack>
          <Text component="div" size="sm">
            {children}
          </Text>
          {error !== null && refusal === undefined && <ErrorNotice error={error} />}
          {refusal !== undefined && (
            <Alert color="red" role="alert" icon={<Icon name="alert" />}>
              {refusal}
            </Alert>
          )}
          <Group justify="flex-end">
            {/* Without a field, the focus begins at the button that is safe to press. */}
            <Button
              variant="default"
              onClick={onClose}
              disabled={isPending}
              data-autofocus={danger || undefined}
            >
              Cancel
            </Button>
            <Button
              type="submit"
              {...(danger && { color: "red" })}
              loading={isPending}
              disabled={!isReady || refusal !== undefined}
              data-autofocus={!danger || undefined}
            >
              {action}
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}

interface ConfirmedProps extends Omit<ConfirmProps, "opened" | "onClose"> {
  readonly label: string;
  readonly button?: ButtonProps & { readonly "aria-label"?: string };
}

/** Button with a dialog that asks for confirmation before the action runs. */
export function ConfirmedAction({ label, button, ...question }: ConfirmedProps) {
  const [opened, { open, close }] = useDisclosure();
  return (
    <>
      <Button variant="default" {...button} onClick={open}>
        {label}
      </Button>
      <Confirm opened={opened} onClose={close} {...question} />
    </>
  );
}

interface ActionButtonProps {
  readonly label: string;
  /** Label for screen readers, which also names what the action is applied to. */
  readonly fullLabel: string;
  readonly onClick: () => Promise<unknown>;
  readonly done: string;
}

/** Button of an action that needs no confirmation. Notifications show its success or its error. */
export function ActionButton({ label, fullLabel, onClick, done }: ActionButtonProps) {
  const { mutate, isPending } = useMutation({
    mutationFn: onClick,
    onSuccess: () => notify.done(done),
    onError: (error) => notify.failed(error),
  });
  return (
    <Button
      size="xs"
      variant="default"
      loading={isPending}
      onClick={() => mutate()}
      aria-label={fullLabel}
    >
      {label}
    </Button>
  );
}

export interface ActiveSwitchProps extends Pick<ConfirmedProps, "button" | "children"> {
  readonly isActive: boolean;
  readonly name: string;
  /** Noun in the question of the dialog; `name` if absent. */
  readonly noun?: string;
  readonly onSwitch: (isActive: boolean) => Promise<unknown>;
  readonly done: string;
}

/** Button that deactivates or activates something, after a dialog has explained the consequences. */
export function ActiveSwitch({ isActive, name, noun = name, ...props }: ActiveSwitchProps) {
  const { button, onSwitch, done, children } = props;
  const action = isActive ? "Deactivate" : "Activate";
  return (
    <ConfirmedAction
      label={action}
      button={{ size: "xs", "aria-label": `${action} ${name}`, ...button }}
      title={`${action} ${noun}?`}
      action={action}
      danger={isActive}
      onConfirm={() => onSwitch(!isActive)}
      done={done}
    >
      {children}
    </ConfirmedAction>
  );
}
