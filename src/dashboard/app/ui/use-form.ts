import { useMutation } from "@tanstack/react-query";
import { useState, type ChangeEvent } from "react";

import { apiErrorOf, fieldError } from "../api/api-error.ts";

interface FormOptions<Draft, Answer> {
  /** What the form begins with. Fields that nobody touched follow it. */
  readonly initial: Draft;
  /** Field of the draft → its name in the API, for those fields that show their own errors. */
  readonly names: { readonly [Field in keyof Draft]?: string };
  /** What changes along with an edit, such as a name that is made from an address. */
  readonly alongside?: (edit: Partial<Draft>, before: Draft) => Partial<Draft>;
  readonly send: (draft: Draft) => Promise<Answer>;
  readonly onDone: (answer: Answer, changes: FormChanges<Draft>) => void;
  readonly onFailed?: (error: Error, changes: FormChanges<Draft>) => void;
}

interface FormChanges<Draft> {
  edit(edit: Partial<Draft>): void;
  /** Back to what the form began with. */
  reset(): void;
}

type TextOnly<Value> = Value extends string ? unknown : never;

interface TextBinding {
  readonly value: string;
  readonly error: string | undefined;
  readonly onChange: (event: ChangeEvent<HTMLInputElement | HTMLTextAreaElement>) => void;
}

/** What somebody fills in, and how the last try to send it went. Methods, so that a part of a form takes any form that has its fields. */
export interface FormState<out Draft> extends FormChanges<Draft> {
  readonly draft: Draft;
  /** The properties of an input for a field of text. */
  text<Field extends keyof Draft>(field: Field & TextOnly<Draft[Field]>): TextBinding;
  /** What the API says of one field. */
  errorOf(field: keyof Draft): string | undefined;
  /** Null before the first try, while one is under way, and after one that worked. */
  readonly error: Error | null;
  /** Whether fields show all of the error. */
  readonly isErrorAtFields: boolean;
  readonly isBusy: boolean;
  submit(): void;
}

export function useForm<Draft extends object, Answer>(
  options: FormOptions<Draft, Answer>,
): FormState<Draft> {
  const { initial, names, alongside = () => ({}), send, onDone, onFailed } = options;
  const [touched, setTouched] = useState<Partial<Draft>>({});
  const draft: Draft = { ...initial, ...touched };
  const changes: FormChanges<Draft> = {
    edit: (edit) =>
      setTouched((before) => ({
        ...before,
        ...alongside(edit, { ...initial, ...before }),
        ...edit,
      })),
    reset: () => {
      setTouched({});
      lastTry.reset();
    },
  };
  const lastTry = useMutation({
    mutationFn: () => send(draft),
    onSuccess: (answer) => onDone(answer, changes),
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
  const faulty = Object.keys(apiErrorOf(error)?.errors ?? {});
  return (
    faulty.length > 0 &&
    faulty.every((one) => names.some((name) => one === name || one.startsWith(`${String(name)}.`)))
  );
}
