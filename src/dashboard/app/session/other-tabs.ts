import { useEffect, useRef, useState } from "react";

import { storedSession, type Session } from "./identity.ts";

/*
 * A new tab takes over a session that another tab of the browser keeps by remember-me. Tabs exchange it over
 * a BroadcastChannel, which reaches documents of this origin only and stores nothing. A framed page neither
 * asks nor answers, because another site embeds it.
 */

type Message =
  | { readonly kind: "ask"; readonly id: string }
  | { readonly kind: "answer"; readonly id: string; readonly session: Session }
  | { readonly kind: "ended"; readonly token: string };

const NAME = "reviewrelay.session";
/** The sign-in is hidden for this long while the other tabs are asked. A tab that is not suspended answers sooner. */
const ASK_TIMEOUT_MS = 150;
/**
 * A later answer is dropped, because the user may already be typing a password. A busy tab may answer after
 * `ASK_TIMEOUT_MS`.
 */
const LATE_ANSWER_MS = 2_000;

interface OtherTabs {
  /** True if this tab has no session and should ask the other tabs for one. */
  readonly hasNoSession: boolean;
  readonly onSession: (session: Session) => void;
  /** Called when the session with this token was signed out in another tab. */
  readonly onEnded: (token: string) => void;
}

/** Returns true while the answer of another tab is awaited. */
export function useOtherTabs({ hasNoSession, onSession, onEnded }: OtherTabs): boolean {
  const [isAsking, setAsking] = useState(hasNoSession && !isFramed());
  const begin = useRef({ hasNoSession, onSession, onEnded });
  useEffect(() => {
    const channel = openChannel();
    if (channel === undefined) return undefined;
    const { current } = begin;
    const id = current.hasNoSession ? randomId() : undefined;
    const isLate = deadline(LATE_ANSWER_MS);
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
    const shown = setTimeout(() => setAsking(false), ASK_TIMEOUT_MS);
    return () => {
      clearTimeout(shown);
      channel.close();
    };
  }, []);
  return isAsking;
}

/** Signs out all other tabs that use this token. */
export function notifyEnded(token: string): void {
  const channel = openChannel();
  if (channel === undefined) return;
  post(channel, { kind: "ended", token });
  channel.close();
}

/** Answers another tab with the session, if it is kept by remember-me. */
function answer(channel: BroadcastChannel, id: string): void {
  const session = storedSession.kept();
  if (session !== undefined) post(channel, { kind: "answer", id, session });
}

function openChannel(): BroadcastChannel | undefined {
  return isFramed() ? undefined : new BroadcastChannel(NAME);
}

const isFramed = () => window.top !== window.self;

function post(channel: BroadcastChannel, message: Message): void {
  // A BroadcastChannel has no target origin; it reaches its own origin only.
  // oxlint-disable-next-line unicorn/require-post-message-target-origin
  channel.postMessage(message);
}

/** Unlike `crypto.randomUUID`, this works on a page without HTTPS, too. */
function randomId(): string {
  return crypto.getRandomValues(new Uint32Array(4)).join("-");
}

function deadline(afterMs: number): () => boolean {
  const startedAt = performance.now();
  return () => performance.now() - startedAt > afterMs;
}
