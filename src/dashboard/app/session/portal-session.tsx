import {
  type ReactNode,
  type RefObject,
  useCallback,
  useEffect,
  useMemo,
  useRef,
  useState,
} from "react";

import { apiWith } from "../api/connect.ts";
import { readIdentity, type Session } from "./identity.ts";
import type { PortalLink } from "./links.ts";
import { queryClient } from "./query-client.ts";
import { SessionContext, type SessionState } from "./session.tsx";
import { NO_ARRIVAL } from "./links.ts";

/*
 * What the page around the portal is told (guide "embedding"): never more than that it is there, how high it is and that
 * it has ended, and nobody but the origins that may frame it.
 */

type Told =
  | { readonly type: "opened" }
  | { readonly type: "height"; readonly height: number }
  | { readonly type: "ended" };

const SOURCE = "reviewrelay-portal";
/** A dialog needs room, also over a short page. */
const LEAST_HEIGHT = 400;
/** Beyond it the frame scrolls: lists load what is in view, and in a frame without an end that would be all. */
const MOST_HEIGHT = 1_600;

/** The server has written them into the document, as into its policy. */
function listedOrigins(): readonly string[] {
  const meta = document.querySelector<HTMLMetaElement>('meta[name="framed-by"]');
  return (meta?.content ?? "").split(" ").filter((one) => one !== "");
}

/** Where the browser says who is around, it alone is told; elsewhere the browser drops what is for another origin. */
function hostOrigins(): readonly string[] {
  const listed = listedOrigins();
  const around = location.ancestorOrigins?.[0];
  return around === undefined ? listed : listed.filter((one) => one === around);
}

const isFramed = () => window.parent !== window;

function tellHost(told: Told): void {
  if (!isFramed()) return;
  for (const origin of hostOrigins())
    window.parent.postMessage({ source: SOURCE, ...told }, origin);
}

/** Tells the host how high the content is, whenever it changes. */
export function useToldHeight(content: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const { current } = content;
    if (current === null || !isFramed()) return undefined;
    let last = 0;
    const observer = new ResizeObserver(() => {
      const full = Math.ceil(current.getBoundingClientRect().height);
      const height = Math.min(Math.max(full, LEAST_HEIGHT), MOST_HEIGHT);
      if (height === last) return;
      last = height;
      tellHost({ type: "height", height });
    });
    observer.observe(current);
    return () => observer.disconnect();
  }, [content]);
}

/** Whether some page is around this one that could open it again. */
export function useHasHost(): boolean {
  return useState(isFramed)[0];
}

/** `used` stands for every code that is not good; `missing` is the page after a reload. */
type PortalEnding = "used" | "missing" | "expired";

export interface PortalState {
  readonly session: Session | undefined;
  readonly ended: PortalEnding | undefined;
  /** Why the code could not be sent; it may still be good. */
  readonly error: unknown;
  readonly retry: () => void;
}

interface PortalSessionProps {
  readonly link: PortalLink;
  readonly children: (state: PortalState) => ReactNode;
}

/** Redeems the code of the link. The session is in the memory of this page alone, and ends with it. */
export function PortalSession({ link: { base, code }, children }: PortalSessionProps) {
  const [session, setSession] = useState<Session>();
  const [ended, setEnded] = useState<PortalEnding | undefined>(
    code === undefined ? "missing" : undefined,
  );
  const [error, setError] = useState<unknown>();
  const open = useCallback(() => {
    if (code === undefined) return;
    setError(undefined);
    openSession(base, code).then(setSession, (failed: unknown) => {
      if (failed instanceof Refused) setEnded("used");
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
    if (session !== undefined) tellHost({ type: "opened" });
  }, [session]);
  useEffect(() => {
    if (ended !== undefined) tellHost({ type: "ended" });
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

/** A refusal of the code; it will be the same the next time. */
class Refused extends Error {}

async function openSession(base: string, code: string): Promise<Session> {
  const headers = { "Content-Type": "application/json" };
  const body = JSON.stringify({ code });
  const answer = await fetch(`${base}/session`, { method: "POST", headers, body });
  if (answer.status === 400 || answer.status === 422) throw new Refused();
  if (!answer.ok) throw new Error(`The code was answered ${answer.status}.`);
  const { token, pages, scope }: OpenedSession = await answer.json();
  const identity = await readIdentity(apiWith(token));
  const isReadOnly = !scope.split(" ").includes("webhooks:write");
  return { ...identity, token, portal: { pages, isReadOnly } };
}

/** Of what the server answers (`src/portal`), what is needed here. */
interface OpenedSession {
  readonly token: string;
  readonly pages: readonly string[];
  readonly scope: string;
}

const nothing = () => {};

/** Nobody signs in or out here, and nobody acts as another: a session begins with a link and ends by itself. */
function useSessionState(session: Session | undefined, onEnd: () => void): SessionState {
  const token = session?.token;
  const api = useMemo(() => apiWith(token, () => token !== undefined && onEnd()), [token, onEnd]);
  return {
    session,
    isRemembered: false,
    ended: undefined,
    arrival: NO_ARRIVAL,
    api,
    signIn: nothing,
    signOut: nothing,
    actAs: nothing,
    comeBack: nothing,
  };
}
