import { useMutation } from "@tanstack/react-query";
import type { ChangeEvent } from "react";

import { apiErrorOf, fieldError } from "../api/api-error.ts";
import { forgetDraft, useEdits } from "./kept-drafts.ts";

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
