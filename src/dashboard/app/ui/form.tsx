import { Button, Group, Stack, type ButtonProps, type StackProps } from "@mantine/core";
import { useEffect, useRef, type ReactNode } from "react";

import { ErrorNotice } from "./states.tsx";
import type { FormState } from "./use-form.ts";

type AnyForm = Pick<FormState<object>, "error" | "isErrorAtFields" | "isBusy" | "submit">;

interface FormProps {
  readonly form: AnyForm;
  readonly children: ReactNode;
  /** They follow the fields and the error. */
  readonly buttons: ReactNode;
  /** Shows the error in other words than the usual. */
  readonly renderError?: (error: Error) => ReactNode;
  /** Whether the browser refuses a form that is not filled in, before the server does. */
  readonly isCheckedByBrowser?: boolean;
  readonly gap?: StackProps["gap"];
}

/**
 * Shows the fields, the error of the last try unless the fields show it, and the buttons. The first field that was
 * refused gets the focus.
 */
export function Form(props: FormProps) {
  const { form, children, buttons, isCheckedByBrowser = false, gap = "md" } = props;
  const { renderError = (error) => <ErrorNotice error={error} /> } = props;
  const { error } = form;
  const element = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (error !== null) element.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [error]);
  return (
    <form
      ref={element}
      noValidate={!isCheckedByBrowser}
      onSubmit={(event) => {
        event.preventDefault();
        form.submit();
      }}
    >
      <Stack gap={gap}>
        {children}
        {error !== null && !form.isErrorAtFields && renderError(error)}
        {buttons}
      </Stack>
    </form>
  );
}

interface SubmitProps extends ButtonProps {
  readonly form: AnyForm;
  /** It is false while something is still to be filled in. */
  readonly isReady?: boolean;
  readonly autoFocus?: boolean;
}

export function SubmitButton({ form, isReady = true, ...button }: SubmitProps) {
  return <Button type="submit" loading={form.isBusy} disabled={!isReady} {...button} />;
}

interface DialogButtonsProps {
  readonly form: AnyForm & Pick<FormState<object>, "reset">;
  /** The verb that stands on the button. */
  readonly action: string;
  readonly onCancel: () => void;
  readonly isReady?: boolean;
}

/** The buttons of a form in a dialog. Cancel throws away what was typed; Escape, or a click beside it, does not. */
export function DialogButtons({ form, action, onCancel, isReady = true }: DialogButtonsProps) {
  const cancel = () => {
    form.reset();
    onCancel();
  };
  return (
    <Group justify="flex-end" className="dialog-buttons">
      <Button variant="default" onClick={cancel} disabled={form.isBusy}>
        Cancel
      </Button>
      <SubmitButton form={form} isReady={isReady}>
        {action}
      </SubmitButton>
    </Group>
  );
}
