import {
  createContext,
  type ReactNode,
  type RefObject,
  use,
  useCallback,
  useEffect,
  useMemo,
  useRef,
  useState,
} from "react";

import type { ApiClient } from "../api/client.ts";
import { apiWith } from "../api/connect.ts";
import { allDrafts, bringDrafts, forgetDrafts } from "../ui/kept-drafts.ts";
import {
  endToken,
  followSession,
  readIdentity,
  type Session,
  storedSession,
  tabStorage,
} from "./identity.ts";
import { tellEnded, useOtherTabs } from "./other-tabs.ts";
import { queryClient } from "./query-client.ts";
import { type Arrival } from "./single-sign-on.ts";
import { HOME, NO_ARRIVAL, takeArrival } from "./links.ts";

/**
 * The way the session ended. `expired`: not by the user. `unconfirmed`: the user signed out, but the server
 * did not confirm that the token is revoked.
 */
type Ending = "expired" | "signed_out" | "unconfirmed";

export interface SessionState {
  readonly session: Session | undefined;
  readonly isRemembered: boolean;
  /** The way the previous session of this tab ended. */
  readonly ended: Ending | undefined;
  /** The result of an SSO callback, if this page load is one. */
  readonly arrival: Arrival;
  /** Calls the API with the token of the session. A 401 ends the session. */
  readonly api: ApiClient;
  readonly signIn: (session: Session, options: { readonly remember: boolean }) => void;
  /** Ends the session, and revokes the token on the server. */
  readonly signOut: () => void;
  /** Starts impersonation: continues with a token that acts as another user. `comeBack` ends it. */
  readonly actAs: (session: Session) => void;
  readonly comeBack: () => void;
}

/**
 * The portal has a separate provider (portal-session.tsx), because a portal session begins with a link
 * instead of a sign-in.
 */
export const SessionContext = createContext<SessionState | undefined>(undefined);

export function SessionProvider({ children }: { readonly children: ReactNode }) {
  const { session, ended, arrival, enter, takeOver, leave, follow, renew, end } =
    useSessionChanges();
  const token = session?.token;
  const api = useMemo(
    () => apiWith(token, () => token !== undefined && leave(token, "expired")),
    [token, leave],
  );
  useFreshIdentity(api, token, renew);
  const isAsking = useOtherTabs({
    isAlone: token === undefined && arrival.kind === "none",
    onSession: takeOver,
    onEnded: follow,
  });
  const isRemembered = storedSession.exists();
  const moves = { signIn: enter, signOut: end, ...actingMoves(session, enter) };
  return (
    <SessionContext value={{ session, isRemembered, ended, arrival, api, ...moves }}>
      {!isAsking && children}
    </SessionContext>
  );
}

/** Holds the session of this tab and all operations that change it. */
function useSessionChanges() {
  const [arrival, setArrival] = useState(takeArrival);
  const [session, setSession] = useState(() => storedSession.read());
  const [ended, setEnded] = useState<Ending>();
  const token = session?.token;
  const live = useRef(token);
  const origin = useRef(session?.origin);
  const [typist] = useState(() => takeTyping(session?.user.id));
  /** The id of the user who is signed in, or was last. Drafts are dropped when another user signs in. */
  const last = useRef(session?.user.id ?? typist);
  useEffect(() => followSession(session), [session]);
  useEffect(() => leaveTyping(() => last.current), []);

  const enter = useCallback((next: Session, { remember }: { remember: boolean }) => {
    queryClient.clear();
    if (last.current !== undefined && last.current !== next.user.id) forgetDrafts();
    last.current = next.user.id;
    if (remember) storedSession.write(next);
    else storedSession.remove();
    live.current = next.token;
    origin.current = next.origin;
    setArrival(NO_ARRIVAL);
    setEnded(undefined);
    setSession(next);
  }, []);
  const leave = useCallback(
    (of: string, why?: Ending) => {
      // Ignores a late answer that belongs to an earlier session.
      if (live.current !== of) return;
      // If the token of an impersonation expires, the impersonator's own session continues.
      if (origin.current !== undefined && why === "expired") {
        history.replaceState(null, "", HOME);
        return enter(origin.current, { remember: storedSession.exists() });
      }
      live.current = undefined;
      storedSession.remove();
      queryClient.clear();
      setArrival(NO_ARRIVAL);
      setSession(undefined);
      setEnded(why);
    },
    [enter],
  );
  const renew = useCallback((next: Session) => {
    if (live.current !== next.token) return;
    const renewed = { ...next, ...(origin.current && { origin: origin.current }) };
    if (storedSession.exists()) storedSession.write(renewed);
    setSession(renewed);
  }, []);
  const { close, ...moves } = useOthersMoves(live, enter, leave);
  const end = () => {
    if (token === undefined) return;
    const tokens = [token, ...(session?.origin === undefined ? [] : [session.origin.token])];
    close(token);
    for (const one of tokens) tellEnded(one);
    void Promise.all(tokens.map(endToken)).then((areCertain) => {
      const isCertain = areCertain.every(Boolean);
      if (live.current === undefined) setEnded(isCertain ? "signed_out" : "unconfirmed");
    });
  };
  return { session, ended, arrival, enter, leave, renew, end, ...moves };
}

/**
 * Returns the session changes that other tabs may trigger in this tab, and `close`, which ends a session and
 * discards its drafts.
 */
function useOthersMoves(
  live: RefObject<string | undefined>,
  enter: SessionState["signIn"],
  leave: (of: string, why?: Ending) => void,
) {
  /** Adopts the session that another tab handed over, unless a user signed in to this tab meanwhile. */
  const takeOver = useCallback(
    (handed: Session) => {
      if (live.current === undefined) enter(handed, { remember: true });
    },
    [live, enter],
  );
  const close = useCallback(
    (of: string, why?: Ending) => {
      if (live.current !== of) return;
      // The next user to sign in starts at the first page of their role.
      history.replaceState(null, "", HOME);
      forgetDrafts();
      leave(of, why);
    },
    [live, leave],
  );
  const follow = useCallback((of: string) => close(of, "signed_out"), [close]);
  return { takeOver, close, follow };
}

/**
 * Builds the operations of impersonation. The partner's own session is kept inside the impersonated session
 * (`origin`), so that it survives a reload, too.
 */
function actingMoves(session: Session | undefined, enter: SessionState["signIn"]) {
  const move = (next: Session, path: string) => {
    history.replaceState(null, "", HOME + path);
    enter(next, { remember: storedSession.exists() });
  };
  return {
    actAs: (next: Session) => session !== undefined && move({ ...next, origin: session }, ""),
    comeBack: () => {
      if (session?.origin === undefined) return;
      void endToken(session.token);
      move(session.origin, "/accounts");
    },
  };
}

/** Reads the identity again after a reload, because the stored role, name or theme may be out of date. */
function useFreshIdentity(
  api: ApiClient,
  token: string | undefined,
  renew: (next: Session) => void,
): void {
  const restored = useRef(token);
  useEffect(() => {
    if (token === undefined || token !== restored.current) return;
    restored.current = undefined;
    readIdentity(api).then(
      (identity) => renew({ ...identity, token }),
      // A 401 has ended the session. After any other error the page keeps the stored identity.
      () => undefined,
    );
  }, [api, token, renew]);
}

export function useSessionState(): SessionState {
  const state = use(SessionContext);
  if (state === undefined) throw new Error("There is no SessionProvider above.");
  return state;
}

export const useApi = (): ApiClient => useSessionState().api;

/** Returns the session. Only for pages that require a signed-in user. */
export function useSession(): Session {
  const { session } = useSessionState();
  if (session === undefined) throw new Error("Nobody is signed in.");
  return session;
}

/*
 * Typed but unsent drafts are lost when the document is unloaded: by a reload, a deploy that requires one, or
 * an SSO flow. They are therefore stored in sessionStorage and restored by the next document.
 */

const KEY = "reviewrelay.drafts";

interface Typing {
  /** The id of the user who typed the drafts. */
  readonly user: number;
  readonly drafts: Readonly<Record<string, object>>;
}

/** Stores the drafts when the document is unloaded. Returns a function that stops this. */
function leaveTyping(whose: () => number | undefined): () => void {
  const leave = () => {
    const user = whose();
    const drafts = allDrafts();
    if (user === undefined || Object.keys(drafts).length === 0) tabStorage.remove(KEY);
    else tabStorage.write(KEY, { user, drafts } satisfies Typing);
  };
  window.addEventListener("pagehide", leave);
  return () => window.removeEventListener("pagehide", leave);
}

/**
 * Restores the drafts of the previous document, unless another user is signed in. Returns the id of the user
 * who typed them.
 */
function takeTyping(present: number | undefined): number | undefined {
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
