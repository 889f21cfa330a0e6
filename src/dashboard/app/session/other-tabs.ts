import { useEffect, useRef, useState } from "react";

import { storedSession, type Session } from "./identity.ts";

/*
 * A new tab takes over the session that another tab of this browser keeps. A channel reaches documents of this origin
 * alone, and nothing of it is stored. A page inside a frame neither asks nor answers: whoever embeds it is somebody else.
 */

type Message =
  | { readonly kind: "ask"; readonly id: string }
  | { readonly kind: "answer"; readonly id: string; readonly session: Session }
  | { readonly kind: "ended"; readonly token: string };

const NAME = "reviewrelay.session";
/** So long the sign-in is not shown yet: a tab that is awake answers much sooner. */
const PATIENCE_MS = 150;
/** A busy tab's answer still counts, and one that comes when somebody may be typing does not. */
const TOO_LATE_MS = 2_000;

interface OtherTabs {
  /** Whether this tab has nobody yet, and should look for somebody. */
  readonly isAlone: boolean;
  readonly onSession: (session: Session) => void;
  /** Somebody signed out in another tab. */
  readonly onEnded: (token: string) => void;
}

/** Answers whether another tab may be about to hand its session over. */
export function useOtherTabs({ isAlone, onSession, onEnded }: OtherTabs): boolean {
  const [isAsking, setAsking] = useState(isAlone && !isFramed());
  const begin = useRef({ isAlone, onSession, onEnded });
  useEffect(() => {
    const channel = openChannel();
    if (channel === undefined) return undefined;
    const { current } = begin;
    const id = current.isAlone ? randomId() : undefined;
    const isLate = deadline(TOO_LATE_MS);
    let isTaken = false;
    channel.addEventListener("message", ({ data }: MessageEvent<Message>) => {
      if (data.kind === "ended") current.onEnded(data.token);
      if (data.kind === "ask") answer(channel, data.id);
      if (data.kind !== "answer" || data.id !== id || isTaken || isLate()) return;
      isTaken = true;
      current.onSession(data.session);
      setAsking(false);
    });
    if (id !== undefined) post(channel, { kind: "ask", id });
    const shown = setTimeout(() => setAsking(false), PATIENCE_MS);
    return () => {
      clearTimeout(shown);
      channel.close();
    };
  }, []);
  return isAsking;
}

/** Has the other tabs of the same session end as well. */
export function tellEnded(token: string): void {
  const channel = openChannel();
  if (channel === undefined) return;
  post(channel, { kind: "ended", token });
  channel.close();
}

/** What is to be kept is handed over, and nothing else. */
function answer(channel: BroadcastChannel, id: string): void {
  const session = storedSession.kept();
  if (session !== undefined) post(channel, { kind: "answer", id, session });
}

function openChannel(): BroadcastChannel | undefined {
  return isFramed() ? undefined : new BroadcastChannel(NAME);
}

const isFramed = () => window.top !== window.self;

function post(channel: BroadcastChannel, message: Message): void {
  // A channel has no target origin: it reaches its own alone.
  // oxlint-disable-next-line unicorn/require-post-message-target-origin
  channel.postMessage(message);
}

/** Unlike a UUID to be had where the page is not secure, too. */
function randomId(): string {
  return crypto.getRandomValues(new Uint32Array(4)).join("-");
}

function deadline(afterMs: number): () => boolean {
  const startedAt = performance.now();
  return () => performance.now() - startedAt > afterMs;
}
