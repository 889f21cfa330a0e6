import { useEffect, useState } from "react";

/*
 * What somebody has typed and not sent, by the name of its form. It outlives another tab of the page, another page and a
 * session that expired, in the memory of this browser tab alone; it ends when somebody signs out, or somebody else in.
 */
const drafts = new Map<string, object>();

/** Holds the edits of a form; without a name they end with it. */
export function useEdits<Draft extends object>(name: string | undefined) {
  const [edits, setEdits] = useState<Partial<Draft>>(
    () => (name === undefined ? undefined : drafts.get(name)) ?? {},
  );
  useEffect(() => {
    if (name === undefined) return undefined;
    if (Object.keys(edits).length === 0) {
      drafts.delete(name);
      return undefined;
    }
    drafts.set(name, edits);
    // Only the browser can ask before it leaves.
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", ask);
    return () => window.removeEventListener("beforeunload", ask);
  }, [name, edits]);
  return [edits, setEdits] as const;
}

export function forgetDrafts(): void {
  drafts.clear();
}
