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

/** A session is `expired` if the user did not end it, and `unconfirmed` if the server could not be told of its end. */
type Ending = "expired" | "signed_out" | "unconfirmed";

export interface SessionState {
  readonly session: Session | undefined;
  readonly isRemembered: boolean;
  /** It says how the last session of this tab ended. */
  readonly ended: Ending | undefined;
  /** It says what a single sign-on brought back when the page was loaded. */
  readonly arrival: Arrival;
  /** It calls the API with the token of the session; a 401 ends the session. */
  readonly api: ApiClient;
  readonly signIn: (session: Session, options: { readonly remember: boolean }) => void;
  /** Ends the token at the server, too. */
  readonly signOut: () => void;
  /** Goes on with a token that acts as somebody else, until `comeBack`, which ends it. */
  readonly actAs: (session: Session) => void;
  readonly comeBack: () => void;
}

/** The portal, which is entered by links alone, has a separate provider (portal-session.tsx). */
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

/** Holds the session of this tab, and has everything that changes it. */
function useSessionChanges() {
  const [arrival, setArrival] = useState(takeArrival);
  const [session, setSession] = useState(() => storedSession.read());
  const [ended, setEnded] = useState<Ending>();
  const token = session?.token;
  const live = useRef(token);
  const origin = useRef(session?.origin);
  const [typist] = useState(() => takeTyping(session?.user.id));
  /** Who is or was signed in here last. */
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
      // A late answer to an earlier session says nothing of the present one.
      if (live.current !== of) return;
      // What ends by itself while somebody acts as another is that alone.
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

/** Answers what other tabs may have this one do, and how a session of this one is closed. */
function useOthersMoves(
  live: RefObject<string | undefined>,
  enter: SessionState["signIn"],
  leave: (of: string, why?: Ending) => void,
) {
  /** Goes on with what another tab handed over, unless somebody signed in here meanwhile. */
  const takeOver = useCallback(
    (handed: Session) => {
      if (live.current === undefined) enter(handed, { remember: true });
    },
    [live, enter],
  );
  const close = useCallback(
    (of: string, why?: Ending) => {
      if (live.current !== of) return;
      // Whoever signs in next begins at their own start.
      history.replaceState(null, "", HOME);
      forgetDrafts();
      leave(of, why);
    },
    [live, leave],
  );
  const follow = useCallback((of: string) => close(of, "signed_out"), [close]);
  return { takeOver, close, follow };
}

/** A partner's own session waits in that of the account's owner, and is found there again after a reload, too. */
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

/** What was stored over a reload may be out of date: the role, the name, the look. */
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
      // A 401 has ended the session; without an answer the page goes on with what it has.
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

/** Answers the session, on a page that only people who are signed in see. */
export function useSession(): Session {
  const { session } = useSessionState();
  if (session === undefined) throw new Error("Nobody is signed in.");
  return session;
}

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

/** Brings back what the document before has left, unless this is somebody else; answers who typed it. */
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
