import {
  createContext,
  type ReactNode,
  use,
  useCallback,
  useEffect,
  useEffectEvent,
  useMemo,
  useRef,
  useState,
} from "react";

import { type ApiClient, type ApiError, apiErrorOf } from "../api/client.ts";
import { apiWith } from "../api/connect.ts";
import { allDrafts, addDrafts, discardDrafts } from "../ui/drafts.ts";
import {
  endToken,
  followSession,
  readIdentity,
  type Session,
  storedSession,
  tabStorage,
} from "./identity.ts";
import { notifyEnded, useOtherTabs } from "./other-tabs.ts";
import { queryClient } from "./query-client.ts";
import { type AskedProof, useAskedProof } from "./asked-proof.ts";
import { type SsoCallback } from "./single-sign-on.ts";
import { HOME, NO_CALLBACK, takeSsoCallback } from "./links.ts";

/**
 * Reason why the session ended. `expired`: the token became invalid. `signed_out`: the user signed out.
 * `unconfirmed`: the user signed out, but the server did not confirm that the token is revoked. `again`: the
 * user asked to sign in again. `too_late`: the second step of a sign-in ended before the user had finished it.
 */
type EndReason = "expired" | "signed_out" | "unconfirmed" | "again" | "too_late";

/** Sign-in whose password was right, and that waits for a second factor (contract 4.27). */
export interface WaitingSignIn {
  readonly challenge: NonNullable<ApiError["secondFactor"]>;
  readonly remember: boolean;
}

export interface SessionState {
  readonly session: Session | undefined;
  readonly isRemembered: boolean;
  /** Reason why the previous session of this tab ended; undefined if this tab had no session before. */
  readonly ended: EndReason | undefined;
  /** Result of the SSO callback that this page load is; of kind "none" if it is no SSO callback. */
  readonly ssoCallback: SsoCallback;
  /**
   * API client that sends the token of the session. A response of 401 ends the session. A request for which the
   * API demands a second factor waits until the user has proved it, and is then repeated.
   */
  readonly api: ApiClient;
  /** Sign-in that waits for a second factor. */
  readonly waiting: WaitingSignIn | undefined;
  /** Proof of a second factor that a request of this session waits for. */
  readonly asked: AskedProof | undefined;
  readonly signIn: (session: Session, options: { readonly remember: boolean }) => void;
  /**
   * Signs in with the session that the request opens. If the API demands a second factor first, stores the
   * sign-in in `waiting` and resolves to false.
   */
  readonly signInWith: (
    request: Promise<Session>,
    options: { readonly remember: boolean },
  ) => Promise<boolean>;
  /** Returns from the second step to the sign-in form. `too_late` says that the server has ended the sign-in. */
  readonly stopWaiting: (reason?: "too_late") => void;
  /** Ends the session and shows the sign-in, which leads back to this page. */
  readonly signInAgain: () => void;
  /** Ends the session and revokes its token on the server. */
  readonly signOut: () => void;
  /**
   * Starts impersonation: the session continues with a token that acts as another user. `comeBack` ends the
   * impersonation.
   */
  readonly actAs: (session: Session) => void;
  readonly comeBack: () => void;
}

/**
 * Context that provides the session. The dashboard and the portal have separate providers, because a portal
 * session begins with a link and not with a sign-in (portal-session.tsx).
 */
export const SessionContext = createContext<SessionState | undefined>(undefined);

export function SessionProvider({ children }: { readonly children: ReactNode }) {
  const { session, ended, ssoCallback, ...change } = useSessionChanges();
  const { startSession, dropSession, closeSession } = change;
  const token = session?.token;
  const { asked, ask } = useAskedProof(token);
  const api = useMemo(() => {
    if (token === undefined) return apiWith(token);
    const onUnauthorized = () => dropSession(token, "expired");
    return apiWith(token, { onUnauthorized, askForProof: ask });
  }, [token, dropSession, ask]);
  useFreshIdentity(api, token, change.renew);
  const isAsking = useOtherTabs({
    hasNoSession: token === undefined && ssoCallback.kind === "none",
    // Starts the session that another tab handed over, unless a user signed in to this tab meanwhile.
    onSession: (handed) => token === undefined && startSession(handed, { remember: true }),
    onEnded: (ofToken) => closeSession(ofToken, "signed_out"),
  });
  const isRemembered = storedSession.exists();
  const { waiting, signInWith, stopWaiting, signInAgain } = change;
  const actions = {
    signIn: startSession,
    signInWith,
    stopWaiting,
    signInAgain,
    signOut: change.revoke,
    ...impersonationActions(session, startSession),
  };
  const state = { session, isRemembered, ended, ssoCallback, api, waiting, asked };
  return <SessionContext value={{ ...state, ...actions }}>{!isAsking && children}</SessionContext>;
}

/** Holds the session of this tab and returns all operations that change it. */
function useSessionChanges() {
  const [ssoCallback, setSsoCallback] = useState(takeSsoCallback);
  const [session, setSession] = useState(() => storedSession.read());
  const [ended, setEnded] = useState<EndReason>();
  const [waiting, setWaiting] = useState<WaitingSignIn>();
  const token = session?.token;
  const currentToken = useRef(token);
  const origin = useRef(session?.origin);
  const [draftsOwner] = useState(() => restoreDrafts(session?.user.id));
  /** Id of the user who is signed in, or was signed in last. Drafts are discarded when another user signs in. */
  const last = useRef(session?.user.id ?? draftsOwner);
  useEffect(() => followSession(session), [session]);
  useEffect(() => storeDrafts(() => last.current), []);

  const startSession = useCallback((next: Session, { remember }: { remember: boolean }) => {
    queryClient.clear();
    if (last.current !== undefined && last.current !== next.user.id) discardDrafts();
    last.current = next.user.id;
    if (remember) storedSession.write(next);
    else storedSession.remove();
    currentToken.current = next.token;
    origin.current = next.origin;
    setSsoCallback(NO_CALLBACK);
    setEnded(undefined);
    setWaiting(undefined);
    setSession(next);
  }, []);
  const dropSession = useCallback(
    (ofToken: string, reason?: EndReason) => {
      // Ignores a late response to a request of an earlier session.
      if (currentToken.current !== ofToken) return;
      // Returns to the impersonator's own session when the token of an impersonation expires.
      if (origin.current !== undefined && reason === "expired") {
        history.replaceState(null, "", HOME);
        return startSession(origin.current, { remember: storedSession.exists() });
      }
      currentToken.current = undefined;
      storedSession.remove();
      queryClient.clear();
      setSsoCallback(NO_CALLBACK);
      setSession(undefined);
      setEnded(reason);
    },
    [startSession],
  );
  const renew = (next: Session) => {
    if (currentToken.current !== next.token) return;
    const withOrigin = { ...next, ...(origin.current && { origin: origin.current }) };
    if (storedSession.exists()) storedSession.write(withOrigin);
    setSession(withOrigin);
  };
  /** Ends a session that the user signed out, here or in another tab, and discards its drafts. */
  const closeSession = (ofToken: string, reason?: EndReason) => {
    if (currentToken.current !== ofToken) return;
    // Resets the address, so that the next user starts at the first page of their role.
    history.replaceState(null, "", HOME);
    discardDrafts();
    dropSession(ofToken, reason);
  };
  const revoke = () => {
    if (token === undefined) return;
    const tokens = [token, ...(session?.origin === undefined ? [] : [session.origin.token])];
    closeSession(token);
    for (const one of tokens) notifyEnded(one);
    void Promise.all(tokens.map(endToken)).then((areCertain) => {
      const isCertain = areCertain.every(Boolean);
      if (currentToken.current === undefined) setEnded(isCertain ? "signed_out" : "unconfirmed");
    });
  };
  const signInAgain = () => {
    if (token === undefined) return;
    dropSession(token, "again");
    void endToken(token);
  };
  const signInWith: SessionState["signInWith"] = async (request, { remember }) => {
    try {
      startSession(await request, { remember });
      return true;
    } catch (error) {
      const challenge = apiErrorOf(error)?.secondFactor;
      if (challenge === undefined) throw error;
      // A new password has ended the session in which it was set.
      if (token !== undefined) dropSession(token);
      setWaiting({ challenge, remember });
      return false;
    }
  };
  const stopWaiting: SessionState["stopWaiting"] = (reason) => {
    setWaiting(undefined);
    setEnded(reason);
  };
  const changes = { startSession, dropSession, closeSession, renew, revoke };
  const waits = { waiting, signInWith, stopWaiting, signInAgain };
  return { session, ended, ssoCallback, ...changes, ...waits };
}

/**
 * Builds the operations that start and end impersonation. The impersonated session contains the partner's own
 * session (`origin`), so that both survive a reload.
 */
function impersonationActions(session: Session | undefined, startSession: SessionState["signIn"]) {
  const switchTo = (next: Session, path: string) => {
    history.replaceState(null, "", HOME + path);
    startSession(next, { remember: storedSession.exists() });
  };
  return {
    actAs: (next: Session) => session !== undefined && switchTo({ ...next, origin: session }, ""),
    comeBack: () => {
      if (session?.origin === undefined) return;
      void endToken(session.token);
      switchTo(session.origin, "/accounts");
    },
  };
}

/** Reads the signed-in user again after a reload, because the stored role, name or theme may be outdated. */
function useFreshIdentity(
  api: ApiClient,
  token: string | undefined,
  renew: (next: Session) => void,
): void {
  const restored = useRef(token);
  const show = useEffectEvent(renew);
  useEffect(() => {
    if (token === undefined || token !== restored.current) return;
    restored.current = undefined;
    readIdentity(api).then(
      (identity) => show({ ...identity, token }),
      // Ignores errors: a 401 has already ended the session, and after any other error the page keeps the
      // stored user data.
      () => undefined,
    );
  }, [api, token]);
}

export function useSessionState(): SessionState {
  const state = use(SessionContext);
  if (state === undefined) throw new Error("There is no SessionProvider above.");
  return state;
}

export const useApi = (): ApiClient => useSessionState().api;

/** Returns the session. Throws without a session, so only pages that require a signed-in user may call it. */
export function useSession(): Session {
  const { session } = useSessionState();
  if (session === undefined) throw new Error("Nobody is signed in.");
  return session;
}

/*
 * Storage of unsent drafts. A reload, a deploy that requires a reload, or an SSO flow unloads the document and
 * would lose the drafts. They are therefore written to sessionStorage and restored by the next document.
 */

const KEY = "reviewrelay.drafts";

interface StoredDrafts {
  /** Id of the user who typed the drafts. */
  readonly user: number;
  readonly drafts: Readonly<Record<string, object>>;
}

/** Stores the drafts whenever the document is unloaded. Returns a function that removes the event listener. */
function storeDrafts(ownerOf: () => number | undefined): () => void {
  const store = () => {
    const user = ownerOf();
    const drafts = allDrafts();
    if (user === undefined || Object.keys(drafts).length === 0) tabStorage.remove(KEY);
    else tabStorage.write(KEY, { user, drafts } satisfies StoredDrafts);
  };
  window.addEventListener("pagehide", store);
  return () => window.removeEventListener("pagehide", store);
}

/**
 * Restores the drafts that the previous document stored, unless another user is signed in. Returns the id of
 * the user who typed the drafts.
 */
function restoreDrafts(present: number | undefined): number | undefined {
  const left = tabStorage.read(KEY);
  tabStorage.remove(KEY);
  if (left === null) return undefined;
  // The assertion is safe because only `storeDrafts` writes this value.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const { user, drafts } = JSON.parse(left) as StoredDrafts;
  if (present !== undefined && present !== user) return undefined;
  addDrafts(drafts);
  return user;
}
