import {
  Button,
  type ButtonProps,
  Group,
  Stack,
  type StackProps,
  Radio,
  Text,
} from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type ChangeEvent, type ReactNode, useEffect, useEffectEvent, useId, useRef } from "react";

import { apiErrorOf, fieldError } from "../api/client.ts";
import { discardDraft, hasDraft, useEdits } from "./drafts.ts";
import { notify } from "./notify.ts";
import { ErrorNotice } from "./states.tsx";

interface FormOptions<Draft, Answer> {
  /** Initial values of the form. Fields that the user has not edited show later changes of these values. */
  readonly initial: Draft;
  /** Maps a form field to its API field. Contains only the fields whose names differ from those of the API. */
  readonly names?: { readonly [Field in keyof Draft]?: string };
  /** Returns changes of other fields that follow from a change, such as a label that is derived from a URL. */
  readonly alongside?: (edit: Partial<Draft>, before: Draft) => Partial<Draft>;
  readonly send: (draft: Draft) => Promise<Answer>;
  /** Notification after a submission that succeeded. */
  readonly done?: string | ((answer: Answer) => string);
  /** Called after a submission that succeeded. If absent, the form itself then discards the user's changes. */
  readonly onDone?: (answer: Answer, changes: FormChanges<Draft>) => void;
  /**
   * Name under which the user's changes are stored until they are sent or discarded, even if the form unmounts.
   * If absent, they are not stored.
   */
  readonly name?: string;
  /** Fields that are never stored, because they contain secrets. */
  readonly secrets?: readonly (keyof Draft)[];
  readonly onFailed?: (error: Error, changes: FormChanges<Draft>) => void;
}

interface FormChanges<Draft> {
  edit(edit: Partial<Draft>): void;
  /** Discards the user's changes and the error of the last submission. */
  reset(): void;
}

type TextOnly<Value> = Value extends string ? unknown : never;

interface TextBinding {
  readonly value: string;
  readonly error: string | undefined;
  readonly onChange: (event: ChangeEvent<HTMLInputElement | HTMLTextAreaElement>) => void;
}

/**
 * State of a form and the result of its last submission. Declares methods and not function properties, which
 * makes the type covariant: a component for some fields accepts every form that has these fields.
 */
export interface FormState<out Draft> extends FormChanges<Draft> {
  readonly draft: Draft;
  /** Returns the properties that connect a text input to a form field. */
  text<Field extends keyof Draft>(field: Field & TextOnly<Draft[Field]>): TextBinding;
  /** Returns a sentence for the API's validation error of a form field, until another value is entered. */
  errorOf(field: keyof Draft): string | undefined;
  /** Returns the same error as the API words it, for a sentence that names the field: it begins with a verb. */
  reasonOf(field: keyof Draft): string | undefined;
  /**
   * Error of the last submission. Null before the first submission, while a submission runs, and after a
   * successful submission.
   */
  readonly error: Error | null;
  /** True if the error appears completely at the form fields, so that the form needs no separate error notice. */
  readonly isErrorAtFields: boolean;
  readonly isBusy: boolean;
  /** Name under which the user's changes are stored; undefined if they are not. */
  readonly name: string | undefined;
  submit(): void;
}

export function useForm<Draft extends object, Answer>(
  options: FormOptions<Draft, Answer>,
): FormState<Draft> {
  const { initial, alongside = () => ({}), send, done, onFailed } = options;
  const names: NonNullable<typeof options.names> = options.names ?? {};
  const { onDone = () => changes.reset(), name, secrets = [] } = options;
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
    mutationFn: (sent: Draft) => send(sent),
    onSuccess: (answer) => {
      // Discards the stored changes here as well, because the form may unmount before `useEdits` can do so.
      discardDraft(name);
      if (done !== undefined) notify.done(typeof done === "string" ? done : done(answer));
      onDone(answer, changes);
    },
    onError: (error) => onFailed?.(error, changes),
  });
  const { mutate, error, isPending, variables: sent } = lastTry;
  const nameOf = (field: keyof Draft) => names[field] ?? String(field);
  const reasonOf = (field: keyof Draft) =>
    sent !== undefined && isOther(draft[field], sent[field])
      ? undefined
      : fieldError(error, nameOf(field));
  const errorOf = (field: keyof Draft) => {
    const reason = reasonOf(field);
    // What an empty field must be is said beside it.
    const isMissing = reason?.startsWith("must ") === true && isEmpty(draft[field]);
    return isMissing ? "This is required." : asSentence(reason);
  };
  return {
    ...changes,
    draft,
    errorOf,
    reasonOf,
    error,
    isErrorAtFields: isShownBy(keysOf(initial).map(nameOf), error),
    isBusy: isPending,
    name,
    text: (field) => ({
      value: String(draft[field]),
      error: errorOf(field),
      // The assertion is safe because the parameter's type allows only fields with text values.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      onChange: (event) => changes.edit({ [field]: event.currentTarget.value } as Partial<Draft>),
    }),
    submit: () => {
      if (!isPending) mutate(draft);
    },
  };
}

/** Returns whether a field has another value than the one that was sent. Some forms empty a field whose text was wrong. */
const isOther = (value: unknown, sent: unknown) =>
  !isEmpty(value) && JSON.stringify(value) !== JSON.stringify(sent);

const isEmpty = (value: unknown) =>
  value === undefined || value === "" || (Array.isArray(value) && value.length === 0);

/** Makes a sentence of the API's validation error, which begins with a verb, or with "number 2" for an entry of a list. */
function asSentence(error: string | undefined): string | undefined {
  if (error === undefined) return undefined;
  // Programs send null for what people leave empty.
  const text = error.replace(/,? or null$/, "");
  return text.startsWith("number ") ? `N${text.slice(1)}.` : `This ${text}.`;
}

/**
 * Returns the form fields that can show validation errors. Switches cannot, so fields with boolean values are left
 * out.
 */
const keysOf = <Draft extends object>(initial: Draft) =>
  // The assertion is needed because `Object.keys` returns `string[]`.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  (Object.keys(initial) as (keyof Draft)[]).filter((one) => typeof initial[one] !== "boolean");

/**
 * Returns whether the named fields show all validation errors of a response. A list field also shows the errors
 * of its entries, such as `stores.3`.
 */
function isShownBy(names: readonly string[], error: unknown): boolean {
  const wrong = Object.keys(apiErrorOf(error)?.errors ?? {});
  return (
    wrong.length > 0 &&
    wrong.every((one) => names.some((name) => one === name || one.startsWith(`${name}.`)))
  );
}

type AnyForm = Pick<
  FormState<object>,
  "error" | "isErrorAtFields" | "isBusy" | "name" | "submit" | "reset"
>;

interface FormProps {
  readonly form: AnyForm;
  readonly children: ReactNode;
  /** Verb on the button that sends the form. */
  readonly action?: string;
  /** False while the user must still fill in a field. */
  readonly isReady?: boolean;
  /** Called by the Cancel button of a form in a dialog, after the user's changes were discarded. */
  readonly onCancel?: () => void;
  /** Buttons below the fields and the error, in place of the default ones. */
  readonly buttons?: ReactNode;
  /** Renders the error of the last submission in place of the default error notice. */
  readonly renderError?: (error: Error) => ReactNode;
  /** True if the browser validates required fields before the form is sent. */
  readonly isCheckedByBrowser?: boolean;
  readonly gap?: StackProps["gap"];
  readonly variant?: ButtonProps["variant"];
}

/**
 * Renders the fields, the buttons, and the error of the last submission unless the fields show it. After an error the
 * first invalid field gets the focus.
 */
export function Form(props: FormProps) {
  const { form, children, isCheckedByBrowser = false, gap = "md", onCancel } = props;
  const { renderError = (error) => <ErrorNotice error={error} /> } = props;
  const { error } = form;
  const element = useRef<HTMLFormElement>(null);
  const sayIfKept = useEffectEvent(() => {
    if (onCancel !== undefined && hasDraft(form.name))
      notify.done("Not saved yet. Your entries are kept until you come back.");
  });
  // Runs when the dialog of the form has closed.
  useEffect(() => () => sayIfKept(), []);
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
        {props.buttons ?? <Buttons {...props} />}
      </Stack>
    </form>
  );
}

interface SubmitProps extends ButtonProps {
  readonly form: AnyForm;
  /** False while the user must still fill in a field. */
  readonly isReady?: boolean;
  /** Says what is missing, beside a button that is not ready. */
  readonly missing?: string | undefined;
  readonly autoFocus?: boolean;
}

export function SubmitButton({ form, missing, isReady = true, ...button }: SubmitProps) {
  const id = useId();
  const isOff = !isReady || missing !== undefined;
  return (
    <>
      {missing !== undefined && (
        <Text size="sm" c="dimmed" id={id}>
          {missing}
        </Text>
      )}
      <Button
        type="submit"
        loading={form.isBusy}
        disabled={isOff}
        {...(missing !== undefined && { "aria-describedby": id })}
        {...button}
      />
    </>
  );
}

/**
 * Button that sends the form. A form in a dialog also has Cancel, which discards the user's changes. Escape or a click
 * outside closes the dialog and keeps the changes for the next time.
 */
function Buttons({ form, action, isReady = true, onCancel, variant = "filled" }: FormProps) {
  const submit = (
    <SubmitButton form={form} isReady={isReady} variant={variant}>
      {action}
    </SubmitButton>
  );
  if (onCancel === undefined) return <Group>{submit}</Group>;
  const cancel = () => {
    form.reset();
    onCancel();
  };
  return (
    <Group justify="flex-end" className="dialog-buttons">
      <Button variant="default" onClick={cancel} disabled={form.isBusy}>
        Cancel
      </Button>
      {submit}
    </Group>
  );
}

interface Option<T extends string> {
  readonly value: T;
  readonly label: string;
  readonly description?: ReactNode;
  readonly isDisabled?: boolean;
}

interface ChoiceProps<T extends string> {
  readonly label: string;
  readonly value: T;
  readonly options: readonly Option<T>[];
  readonly onChange: (value: T) => void;
  readonly error?: string | undefined;
  /** True if the selected option takes the focus when the choice appears, because it is the first field of a form. */
  readonly isFirst?: boolean;
}

/** Radio buttons for a choice between a few options, each with a possible explanation. */
export function Choice<T extends string>(props: ChoiceProps<T>) {
  const { label, value, options, onChange, error, isFirst = false } = props;
  const choose = (text: string) => {
    const option = options.find((one) => one.value === text);
    if (option) onChange(option.value);
  };
  return (
    <Radio.Group label={label} value={value} onChange={choose} error={error}>
      <Stack gap="xs" mt={6}>
        {options.map((option) => (
          <Radio
            key={option.value}
            className="choice"
            value={option.value}
            label={option.label}
            description={option.description}
            disabled={option.isDisabled ?? false}
            // Autofocus is acceptable because the user has just opened the form.
            // oxlint-disable-next-line jsx-a11y/no-autofocus
            autoFocus={isFirst && option.value === value}
          />
        ))}
      </Stack>
    </Radio.Group>
  );
}
