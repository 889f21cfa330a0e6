import {
  type ReactNode,
  type RefObject,
  useCallback,
  useEffect,
  useMemo,
  useRef,
  useState,
} from "react";

import { apiWith, BASE_URL } from "../api/connect.ts";
import { readIdentity, type Session } from "./identity.ts";
import type { PortalLink } from "./links.ts";
import { queryClient } from "./query-client.ts";
import { SessionContext, type SessionState } from "./session.tsx";
import { NO_CALLBACK } from "./links.ts";

/*
 * Messages from the portal to the page that frames it (guide "Embedding"). They report only that the portal has
 * opened, its height in px, and that the session has ended. They are sent only to origins that may frame the
 * portal.
 */

type HostMessage =
  | { readonly type: "opened" }
  | { readonly type: "height"; readonly height: number }
  | { readonly type: "ended" };

const SOURCE = "reviewrelay-portal";
/** Minimum height in px that is reported for the frame, because a dialog needs this height even over a short page. */
const MIN_HEIGHT = 400;
/**
 * Maximum height in px that is reported for the frame; taller content scrolls inside the frame. Lists load only
 * the rows in view, and in a frame of unlimited height all rows would be in view.
 */
const MAX_HEIGHT = 1_600;

/**
 * Returns the origins that may frame the portal. The server writes them into a `meta` element of the document
 * and into the header's `frame-ancestors`.
 */
function listedOrigins(): readonly string[] {
  const meta = document.querySelector<HTMLMetaElement>('meta[name="framed-by"]');
  return (meta?.content ?? "").split(" ").filter((one) => one !== "");
}

/**
 * Returns the origins that messages to the host page are sent to. If the browser supports `ancestorOrigins`,
 * this is only the framing origin. Otherwise all allowed origins are returned, and the browser drops messages
 * for the wrong ones.
 */
function hostOrigins(): readonly string[] {
  const listed = listedOrigins();
  const around = location.ancestorOrigins?.[0];
  return around === undefined ? listed : listed.filter((one) => one === around);
}

const isFramed = () => window.parent !== window;

function notifyHost(message: HostMessage): void {
  if (!isFramed()) return;
  for (const origin of hostOrigins())
    window.parent.postMessage({ source: SOURCE, ...message }, origin);
}

/** Reports the height of the content to the host page whenever the height changes. */
export function useReportedHeight(content: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const { current } = content;
    if (current === null || !isFramed()) return undefined;
    let last = 0;
    const observer = new ResizeObserver(() => {
      const full = Math.ceil(current.getBoundingClientRect().height);
      const height = Math.min(Math.max(full, MIN_HEIGHT), MAX_HEIGHT);
      if (height === last) return;
      last = height;
      notifyHost({ type: "height", height });
    });
    observer.observe(current);
    return () => observer.disconnect();
  }, [content]);
}

/**
 * Returns whether the portal is in a frame. Then the host page can open the portal again after the session has
 * ended.
 */
export function useHasHost(): boolean {
  return useState(isFramed)[0];
}

/**
 * Reason why a portal shows no pages. `used`: the server rejected the code as used, expired or unknown.
 * `missing`: the link contained no code, for example after a reload. `expired`: the session ended.
 */
type PortalEndReason = "used" | "missing" | "expired";

export interface PortalState {
  readonly session: Session | undefined;
  readonly ended: PortalEndReason | undefined;
  /**
   * Error of the request that redeems the code, such as a network failure. The code may still be valid, so
   * `retry` sends the request again.
   */
  readonly error: unknown;
  readonly retry: () => void;
}

interface PortalSessionProps {
  readonly link: PortalLink;
  readonly children: (state: PortalState) => ReactNode;
}

/**
 * Redeems the one-time code of a portal link for a session. Only the memory of this page contains the session,
 * so a reload ends it.
 */
export function PortalSession({ link: { base, code }, children }: PortalSessionProps) {
  const [session, setSession] = useState<Session>();
  const [ended, setEnded] = useState<PortalEndReason | undefined>(
    code === undefined ? "missing" : undefined,
  );
  const [error, setError] = useState<unknown>();
  const open = useCallback(() => {
    if (code === undefined) return;
    setError(undefined);
    openSession(base, code).then(setSession, (failed: unknown) => {
      if (failed instanceof CodeRejected) setEnded("used");
      else setError(failed);
    });
  }, [base, code]);
  const isBegun = useRef(false);
  useEffect(() => {
    if (isBegun.current) return;
    isBegun.current = true;
    open();
  }, [open]);
  useEffect(() => {
    if (session !== undefined) notifyHost({ type: "opened" });
  }, [session]);
  useEffect(() => {
    if (ended !== undefined) notifyHost({ type: "ended" });
  }, [ended]);
  const end = useCallback(() => {
    queryClient.clear();
    setSession(undefined);
    setEnded("expired");
  }, []);
  const state = useSessionState(session, end);
  return (
    <SessionContext value={state}>
      {children({ session, ended, error, retry: open })}
    </SessionContext>
  );
}

/** Thrown when the server rejects the code of a portal link. A retry would be rejected, too. */
class CodeRejected extends Error {}

async function openSession(base: string, code: string): Promise<Session> {
  const headers = { "Content-Type": "application/json" };
  const body = JSON.stringify({ code });
  const answer = await fetch(`${BASE_URL}${base}/session`, { method: "POST", headers, body });
  if (answer.status === 400 || answer.status === 422) throw new CodeRejected();
  if (!answer.ok) throw new Error(`The code was answered ${answer.status}.`);
  const { token, pages, scope }: OpenedSession = await answer.json();
  const identity = await readIdentity(apiWith(token));
  const isReadOnly = !scope.split(" ").includes("webhooks:write");
  const isOfOperator = identity.impersonation !== undefined;
  return { ...identity, token, portal: { pages, isReadOnly, isOfOperator } };
}

/** Fields of the server's response (src/portal/routes.ts) that a portal session needs. */
interface OpenedSession {
  readonly token: string;
  readonly pages: readonly string[];
  readonly scope: string;
}

const nothing = () => {};

/**
 * Builds the session state of a portal. Its sign-in, sign-out and impersonation do nothing, because a portal
 * session begins with a link and ends when its token expires.
 */
function useSessionState(session: Session | undefined, onEnd: () => void): SessionState {
  const token = session?.token;
  const api = useMemo(
    () => apiWith(token, { onUnauthorized: () => token !== undefined && onEnd() }),
    [token, onEnd],
  );
  return {
    session,
    isRemembered: false,
    ended: undefined,
    ssoCallback: NO_CALLBACK,
    api,
    waiting: undefined,
    asked: undefined,
    signIn: nothing,
    signInWith: async () => true,
    stopWaiting: nothing,
    signInAgain: nothing,
    signOut: nothing,
    actAs: nothing,
    comeBack: nothing,
  };
}
