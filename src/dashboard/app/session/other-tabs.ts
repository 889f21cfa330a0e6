import { useEffect, useEffectEvent, useRef, useState } from "react";

import { storedSession, type Session } from "./identity.ts";

/*
 * Sharing of a remembered session between tabs. A new tab takes over the session that another tab of the
 * browser keeps by remember-me. Tabs exchange the session over a BroadcastChannel, which reaches only documents
 * of this origin and stores nothing. A framed page takes no part, because another site embeds it.
 */

type Message =
  | { readonly kind: "ask"; readonly id: string }
  | { readonly kind: "answer"; readonly id: string; readonly session: Session }
  | { readonly kind: "ended"; readonly token: string };

const CHANNEL_NAME = "reviewrelay.session";
/**
 * Time for which the sign-in page stays hidden while this tab waits for an answer of other tabs. Tabs that are
 * not suspended answer within this time.
 */
const ASK_TIMEOUT_MS = 150;
/**
 * Age of a request to other tabs after which their answers are ignored, because the user may already be typing a
 * password. Busy tabs may answer later than `ASK_TIMEOUT_MS`.
 */
const LATE_ANSWER_MS = 2_000;

interface OtherTabs {
  /** True if this tab has no session and should ask the other tabs for a session. */
  readonly hasNoSession: boolean;
  readonly onSession: (session: Session) => void;
  /** Called when another tab has signed out the session with this token. */
  readonly onEnded: (token: string) => void;
}

/** Exchanges sessions and sign-outs with the other tabs. Returns true while this tab waits for an answer. */
export function useOtherTabs({ hasNoSession, onSession, onEnded }: OtherTabs): boolean {
  const [isAsking, setAsking] = useState(hasNoSession && !isFramed());
  const hadNoSession = useRef(hasNoSession);
  const take = useEffectEvent(onSession);
  const end = useEffectEvent(onEnded);
  useEffect(() => {
    const channel = openChannel();
    if (channel === undefined) return undefined;
    const id = hadNoSession.current ? randomId() : undefined;
    const isLate = deadline(LATE_ANSWER_MS);
    let isTaken = false;
    channel.addEventListener("message", ({ data }: MessageEvent<Message>) => {
      if (data.kind === "ended") end(data.token);
      if (data.kind === "ask") answer(channel, data.id);
      if (data.kind !== "answer" || data.id !== id || isTaken || isLate()) return;
      isTaken = true;
      take(data.session);
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

/** Sends the session to the tab that asked for it, if this tab keeps a session by remember-me. */
function answer(channel: BroadcastChannel, id: string): void {
  const session = storedSession.kept();
  if (session !== undefined) post(channel, { kind: "answer", id, session });
}

function openChannel(): BroadcastChannel | undefined {
  return isFramed() ? undefined : new BroadcastChannel(CHANNEL_NAME);
}

const isFramed = () => window.top !== window.self;

function post(channel: BroadcastChannel, message: Message): void {
  // The rule demands a target origin, but a BroadcastChannel has none: its messages reach documents of the same
  // origin only.
  // oxlint-disable-next-line unicorn/require-post-message-target-origin
  channel.postMessage(message);
}

/**
 * Returns a random id for a request to other tabs. `crypto.randomUUID` is not used, because it is missing on
 * pages without HTTPS.
 */
function randomId(): string {
  return crypto.getRandomValues(new Uint32Array(4)).join("-");
}

function deadline(afterMs: number): () => boolean {
  const startedAt = performance.now();
  return () => performance.now() - startedAt > afterMs;
}
