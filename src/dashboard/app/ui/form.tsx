import { Button, type ButtonProps, Group, Stack, type StackProps } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type ChangeEvent, type ReactNode, useEffect, useRef } from "react";

import { apiErrorOf, fieldError } from "../api/client.ts";
import { forgetDraft, useEdits } from "./kept-drafts.ts";
import { ErrorNotice } from "./states.tsx";

interface FormOptions<Draft, Answer> {
  /** The form begins with it, and fields that nobody touched follow it. */
  readonly initial: Draft;
  /** Field of the draft → its name in the API, for the fields that show their own errors. */
  readonly names: { readonly [Field in keyof Draft]?: string };
  /** Answers what changes along with an edit, such as a name that is made from an address. */
  readonly alongside?: (edit: Partial<Draft>, before: Draft) => Partial<Draft>;
  readonly send: (draft: Draft) => Promise<Answer>;
  readonly onDone: (answer: Answer, changes: FormChanges<Draft>) => void;
  /** With a name the edits outlive the form until they are sent or discarded. */
  readonly name?: string;
  /** Fields that are never kept. */
  readonly secrets?: readonly (keyof Draft)[];
  readonly onFailed?: (error: Error, changes: FormChanges<Draft>) => void;
}

interface FormChanges<Draft> {
  edit(edit: Partial<Draft>): void;
  /** Goes back to what the form began with. */
  reset(): void;
}

type TextOnly<Value> = Value extends string ? unknown : never;

interface TextBinding {
  readonly value: string;
  readonly error: string | undefined;
  readonly onChange: (event: ChangeEvent<HTMLInputElement | HTMLTextAreaElement>) => void;
}

/**
 * What somebody fills in, and how the last try to send it went. It has methods instead of function properties, so that
 * a part of a form takes every form that has the fields of the part.
 */
export interface FormState<out Draft> extends FormChanges<Draft> {
  readonly draft: Draft;
  /** Answers the properties of an input for a field of text. */
  text<Field extends keyof Draft>(field: Field & TextOnly<Draft[Field]>): TextBinding;
  /** Answers what the API says of one field. */
  errorOf(field: keyof Draft): string | undefined;
  /** It is null before the first try, while one is under way, and after one that worked. */
  readonly error: Error | null;
  /** Whether the fields show all of the error. */
  readonly isErrorAtFields: boolean;
  readonly isBusy: boolean;
  submit(): void;
}

export function useForm<Draft extends object, Answer>(
  options: FormOptions<Draft, Answer>,
): FormState<Draft> {
  const { initial, names, alongside = () => ({}), send, onDone, onFailed } = options;
  const { name, secrets = [] } = options;
  const [touched, setTouched] = useEdits<Draft>({ name, secrets });
  const draft: Draft = { ...initial, ...touched };
  const changes: FormChanges<Draft> = {
    edit: (edit) =>
      setTouched((before) => ({
        ...before,
        ...alongside(edit, { ...initial, ...before }),
        ...edit,
      })),
    reset: () => {
      forgetDraft(name);
      setTouched({});
      lastTry.reset();
    },
  };
  const lastTry = useMutation({
    mutationFn: () => send(draft),
    onSuccess: (answer) => {
      // The form may be gone before it could say so itself.
      forgetDraft(name);
      onDone(answer, changes);
    },
    onError: (error) => onFailed?.(error, changes),
  });
  const { mutate, error, isPending } = lastTry;
  const errorOf = (field: keyof Draft) => fieldError(error, names[field] ?? String(field));
  return {
    ...changes,
    draft,
    errorOf,
    error,
    isErrorAtFields: isShownBy(Object.values(names), error),
    isBusy: isPending,
    text: (field) => ({
      value: String(draft[field]),
      error: errorOf(field),
      // The type of the parameter allows fields of text only.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      onChange: (event) => changes.edit({ [field]: event.currentTarget.value } as Partial<Draft>),
    }),
    submit: () => {
      if (!isPending) mutate();
    },
  };
}

/** Whether the fields of these names show all of the error; the field of a list shows `stores.3`, too. */
function isShownBy(names: readonly unknown[], error: unknown): boolean {
  const wrong = Object.keys(apiErrorOf(error)?.errors ?? {});
  return (
    wrong.length > 0 &&
    wrong.every((one) => names.some((name) => one === name || one.startsWith(`${String(name)}.`)))
  );
}

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
