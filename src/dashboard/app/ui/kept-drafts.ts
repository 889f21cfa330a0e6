import { useEffect, useState } from "react";

/*
 * What somebody has typed and not sent, by the name of its form. It outlives another tab of the page, another page, a
 * session that expired and a reload, in this browser tab alone; it ends when somebody signs out, or somebody else in.
 */
const drafts = new Map<string, object>();

interface EditsOptions<Draft> {
  /** Without one the edits end with their form. */
  readonly name: string | undefined;
  /** Fields that end with the form all the same. */
  readonly secrets: readonly (keyof Draft)[];
}

/** Holds the edits of a form. */
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
    // Only the browser can ask before it leaves.
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", ask);
    return () => window.removeEventListener("beforeunload", ask);
    // oxlint-disable-next-line react/exhaustive-deps -- which fields are secret never changes.
  }, [name, edits]);
  return [edits, setEdits] as const;
}

/** For what was sent, or thrown away by whoever typed it. */
export function forgetDraft(name: string | undefined): void {
  if (name !== undefined) drafts.delete(name);
}

export function forgetDrafts(): void {
  drafts.clear();
}

export function allDrafts(): Readonly<Record<string, object>> {
  return Object.fromEntries(drafts);
}

export function bringDrafts(kept: Readonly<Record<string, object>>): void {
  for (const [name, draft] of Object.entries(kept)) drafts.set(name, draft);
}
