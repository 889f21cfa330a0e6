import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useEffect, useRef, type ReactNode } from "react";

import { ApiError } from "../../../client/api-error.ts";
import { ErrorNotice } from "./states.tsx";

/** The errors of a form that no field shows; where fields show theirs, the first of them gets the focus. */
export function FormError({
  error,
  fields,
}: {
  readonly error: unknown;
  /** Names of the fields that show their own errors. */
  readonly fields: readonly string[];
}) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (error === null || error === undefined) return;
    const form = place.current?.closest("form");
    form?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [error]);
  const isShown =
    error instanceof ApiError &&
    error.status === 422 &&
    // `stores.3` is shown by the field of the list.
    Object.keys(error.errors).every((name) =>
      fields.some((field) => name === field || name.startsWith(`${field}.`)),
    );
  return (
    <div ref={place} className="form-error">
      {error !== null && error !== undefined && !isShown && <ErrorNotice error={error} />}
    </div>
  );
}

/** A form in a dialog. Its fields begin anew each time it is opened. */
export function FormDialog({
  opened,
  onClose,
  title,
  children,
}: {
  readonly opened: boolean;
  readonly onClose: () => void;
  readonly title: string;
  readonly children: ReactNode;
}) {
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={<Text fw={650}>{title}</Text>}
      closeButtonProps={{ "aria-label": "Close" }}
      size="lg"
    >
      {children}
    </Modal>
  );
}

interface DialogFormProps<T> {
  /** Called on submit; what it answers goes to `onDone`. */
  readonly send: () => Promise<T>;
  readonly onDone: (answer: T) => void;
  readonly onCancel: () => void;
  /** The verb on the button. */
  readonly action: string;
  readonly fields: readonly string[];
  readonly children: (error: Error | null) => ReactNode;
}

/** Fields, the errors of the last try, and the buttons. */
export function DialogForm<T>(props: DialogFormProps<T>) {
  const { send, onDone, onCancel, action, fields, children } = props;
  const { mutate, error, isPending } = useMutation({ mutationFn: send, onSuccess: onDone });
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        mutate();
      }}
    >
      <Stack>
        {children(error)}
        <FormError error={error} fields={fields} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onCancel} disabled={isPending}>
            Cancel
          </Button>
          <Button type="submit" loading={isPending}>
            {action}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
