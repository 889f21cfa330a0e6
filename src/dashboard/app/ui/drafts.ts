import { useEffect, useState } from "react";

/*
 * Maps the name of a form to the changes that the user has typed but not sent. They survive a change of tab or page, an
 * expired session and a reload within this browser tab. They are discarded at sign-out and when another user signs in.
 */
const drafts = new Map<string, object>();

interface EditsOptions<Draft> {
  /** Name of the form. If undefined, the changes are lost when the form unmounts. */
  readonly name: string | undefined;
  /** Fields that are never stored, because they contain secrets. */
  readonly secrets: readonly (keyof Draft)[];
}

/** Holds the user's changes in a form, and stores them under the form's name until they are sent or discarded. */
export function useEdits<Draft extends object>({ name, secrets }: EditsOptions<Draft>) {
  const [edits, setEdits] = useState<Partial<Draft>>(
    () => (name === undefined ? undefined : drafts.get(name)) ?? {},
  );
  useEffect(() => {
    if (name === undefined) return undefined;
    if (Object.keys(edits).length === 0) {
      drafts.delete(name);
      return undefined;
    }
    const isKept = ([field]: [string, unknown]) => !secrets.some((secret) => secret === field);
    drafts.set(name, Object.fromEntries(Object.entries(edits).filter(isKept)));
    // Warns before the page is left with unsent changes. Browsers allow only their own dialog for this.
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", ask);
    return () => window.removeEventListener("beforeunload", ask);
    // oxlint-disable-next-line react/exhaustive-deps -- the list of secret fields never changes.
  }, [name, edits]);
  return [edits, setEdits] as const;
}

/** Returns whether a form has changes that were not sent. */
export const hasDraft = (name: string | undefined): boolean =>
  name !== undefined && drafts.has(name);

/** Removes the stored changes of a form after they were sent or discarded. */
export function discardDraft(name: string | undefined): void {
  if (name !== undefined) drafts.delete(name);
}

export function discardDrafts(): void {
  drafts.clear();
}

export function allDrafts(): Readonly<Record<string, object>> {
  return Object.fromEntries(drafts);
}

export function addDrafts(kept: Readonly<Record<string, object>>): void {
  for (const [name, draft] of Object.entries(kept)) drafts.set(name, draft);
}
