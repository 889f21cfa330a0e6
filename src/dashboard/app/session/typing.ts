import { allDrafts, bringDrafts } from "../ui/kept-drafts.ts";
import { tabStorage } from "./tab-storage.ts";

/*
 * A reload, a deploy that asks for one, and the way to an identity provider and back end a document, and not what was
 * typed in it.
 */

const KEY = "reviewrelay.drafts";

interface Typing {
  /** The id of whoever typed it. */
  readonly user: number;
  readonly drafts: Readonly<Record<string, object>>;
}

/** Leaves what is typed to the next document of this tab; answers how to end that. */
export function leaveTyping(whose: () => number | undefined): () => void {
  const leave = () => {
    const user = whose();
    const drafts = allDrafts();
    if (user === undefined || Object.keys(drafts).length === 0) tabStorage.remove(KEY);
    else tabStorage.write(KEY, { user, drafts } satisfies Typing);
  };
  window.addEventListener("pagehide", leave);
  return () => window.removeEventListener("pagehide", leave);
}

/** Brings back what the document before has left, unless this is somebody else; answers who typed it. */
export function takeTyping(present: number | undefined): number | undefined {
  const left = tabStorage.read(KEY);
  tabStorage.remove(KEY);
  if (left === null) return undefined;
  // `leaveTyping` has written it.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const { user, drafts } = JSON.parse(left) as Typing;
  if (present !== undefined && present !== user) return undefined;
  bringDrafts(drafts);
  return user;
}
