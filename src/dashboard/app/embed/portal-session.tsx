import { useCallback, useEffect, useMemo, useRef, useState, type ReactNode } from "react";

import { apiWith } from "../api/connect.ts";
import { readIdentity, type Session } from "../session/identity.ts";
import type { PortalLink } from "../session/portal-link.ts";
import { queryClient } from "../session/query-client.ts";
import { SessionContext, type SessionState } from "../session/session.tsx";
import { NO_ARRIVAL } from "../session/trip.ts";
import { tellHost } from "./host.ts";

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
