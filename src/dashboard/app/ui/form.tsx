import { Button, type ButtonProps, Group, Stack, type StackProps } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type ChangeEvent, type ReactNode, useEffect, useRef } from "react";

import { apiErrorOf, fieldError } from "../api/client.ts";
import { discardDraft, useEdits } from "./drafts.ts";
import { ErrorNotice } from "./states.tsx";

interface FormOptions<Draft, Answer> {
  /** The initial values. Fields that the user has not edited follow later changes of them. */
  readonly initial: Draft;
  /** Draft field → API field, for fields that show their own validation errors. */
  readonly names: { readonly [Field in keyof Draft]?: string };
  /** Returns further edits that follow from an edit, such as a name that is derived from an address. */
  readonly alongside?: (edit: Partial<Draft>, before: Draft) => Partial<Draft>;
  readonly send: (draft: Draft) => Promise<Answer>;
  readonly onDone: (answer: Answer, changes: FormChanges<Draft>) => void;
  /** If set, the edits are kept under this name until they are sent or discarded, even when the form unmounts. */
  readonly name?: string;
  /** Fields that are never kept, because they contain secrets. */
  readonly secrets?: readonly (keyof Draft)[];
  readonly onFailed?: (error: Error, changes: FormChanges<Draft>) => void;
}

interface FormChanges<Draft> {
  edit(edit: Partial<Draft>): void;
  /** Discards the edits. */
  reset(): void;
}

type TextOnly<Value> = Value extends string ? unknown : never;

interface TextBinding {
  readonly value: string;
  readonly error: string | undefined;
  readonly onChange: (event: ChangeEvent<HTMLInputElement | HTMLTextAreaElement>) => void;
}

/**
 * The draft of a form and the result of its last submission. It has methods instead of function properties,
 * so that the type is covariant: a part of a form accepts every form with the fields of the part.
 */
export interface FormState<out Draft> extends FormChanges<Draft> {
  readonly draft: Draft;
  /** Returns the input props for a text field. */
  text<Field extends keyof Draft>(field: Field & TextOnly<Draft[Field]>): TextBinding;
  /** Returns the API's validation error for a field. */
  errorOf(field: keyof Draft): string | undefined;
  /** Null before the first submission, during one, and after a successful one. */
  readonly error: Error | null;
  /** True if the fields show the whole error, so that the form needs no separate notice. */
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
      discardDraft(name);
      setTouched({});
      lastTry.reset();
    },
  };
  const lastTry = useMutation({
    mutationFn: () => send(draft),
    onSuccess: (answer) => {
      // The form may be unmounted before `useEdits` could discard the draft.
      discardDraft(name);
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
      // The parameter's type allows text fields only.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      onChange: (event) => changes.edit({ [field]: event.currentTarget.value } as Partial<Draft>),
    }),
    submit: () => {
      if (!isPending) mutate();
    },
  };
}

/**
 * Returns whether the named fields show the whole error. A list field also shows the errors of its entries,
 * such as `stores.3`.
 */
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
  /** The buttons, rendered below the fields and the error. */
  readonly buttons: ReactNode;
  /** Replaces the default error notice. */
  readonly renderError?: (error: Error) => ReactNode;
  /** Lets the browser validate required fields before the form is sent. */
  readonly isCheckedByBrowser?: boolean;
  readonly gap?: StackProps["gap"];
}

/**
 * Renders the fields, the error of the last submission unless the fields show it, and the buttons. The first
 * invalid field gets the focus.
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
  /** False while the user must still fill in something. */
  readonly isReady?: boolean;
  readonly autoFocus?: boolean;
}

export function SubmitButton({ form, isReady = true, ...button }: SubmitProps) {
  return <Button type="submit" loading={form.isBusy} disabled={!isReady} {...button} />;
}

interface DialogButtonsProps {
  readonly form: AnyForm & Pick<FormState<object>, "reset">;
  /** The verb on the button. */
  readonly action: string;
  readonly onCancel: () => void;
  readonly isReady?: boolean;
}

/**
 * The buttons of a form in a dialog. Cancel discards the draft; Escape or a click outside closes the dialog
 * and keeps it.
 */
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
