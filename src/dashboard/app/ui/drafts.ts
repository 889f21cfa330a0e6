import { useEffect, useState } from "react";

/*
 * Edits that were typed but not sent, by form name. They survive a change of tab or page, an expired session
 * and a reload, within this browser tab. They are dropped at sign-out, or when another user signs in.
 */
const drafts = new Map<string, object>();

interface EditsOptions<Draft> {
  /** If undefined, the edits end with the form. */
  readonly name: string | undefined;
  /** Fields that are never kept. */
  readonly secrets: readonly (keyof Draft)[];
}

/** Holds the edits of a form, and keeps them under the form's name. */
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
    // The browser's own dialog is the only way to warn before the page is left.
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", ask);
    return () => window.removeEventListener("beforeunload", ask);
    // oxlint-disable-next-line react/exhaustive-deps -- which fields are secret never changes.
  }, [name, edits]);
  return [edits, setEdits] as const;
}

/** Drops a draft that was sent or discarded. */
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
