import {
  createContext,
  type ReactNode,
  use,
  useEffect,
  useMemo,
  useRef,
  useState,
  useSyncExternalStore,
} from "react";

import type { ApiClient } from "../api/client.ts";
import { apiWith } from "../api/connect.ts";
import { type AskedProof, useAskedProof } from "./asked-proof.ts";
import { CurrentSession } from "./current-session.ts";
import { readIdentity, type Session, storedSession } from "./identity.ts";
import { useOtherTabs } from "./other-tabs.ts";
import { brandOf, rememberBrand, rememberedBrand, type ShownBrand } from "./shown-brand.ts";

type Snapshot = ReturnType<CurrentSession["snapshot"]>;
type Operations = Pick<
  CurrentSession,
  "signIn" | "signInWith" | "stopWaiting" | "signInAgain" | "signOut" | "actAs" | "comeBack"
>;

export interface SessionState extends Snapshot, Operations {
  readonly isRemembered: boolean;
  /** Brand of a page without a session: that of an invitation, or of a portal's session that has ended. */
  readonly ownBrand?: ShownBrand | undefined;
  readonly showBrand?: (brand: ShownBrand | undefined) => void;
  /**
   * API client that sends the token of the session. A response of 401 ends the session. A request for which the
   * API demands a second factor waits until the user has proved it, and is then repeated.
   */
  readonly api: ApiClient;
  /** Proof of a second factor that a request of this session waits for. */
  readonly asked: AskedProof | undefined;
}

/**
 * Context that contains the session. The dashboard and the portal set it in separate components, because a portal
 * session begins with a link and not with a sign-in (portal.tsx).
 */
export const SessionContext = createContext<SessionState | undefined>(undefined);

export function SessionProvider({ children }: { readonly children: ReactNode }) {
  const [current] = useState(() => new CurrentSession());
  const snapshot = useSyncExternalStore(current.subscribe, current.snapshot);
  const [ownBrand, showBrand] = useState<ShownBrand>();
  useEffect(() => current.keepDrafts(), [current]);
  const token = snapshot.session?.token;
  const { asked, ask } = useAskedProof(token);
  const api = useMemo(() => {
    if (token === undefined) return apiWith(token);
    const onUnauthorized = () => current.drop(token, "expired");
    return apiWith(token, { onUnauthorized, askForProof: ask });
  }, [token, current, ask]);
  useFreshIdentity(api, token, current);
  const { session } = snapshot;
  useEffect(() => {
    // Leaves out impersonation, because its brand is that of another company.
    if (session !== undefined && session.origin === undefined) rememberBrand(brandOf(session));
  }, [session]);
  const isAsking = useOtherTabs({
    hasNoSession: token === undefined && snapshot.ssoCallback.kind === "none",
    // Starts the session that another tab handed over, unless a user has signed in to this tab while it waited for
    // the answer.
    onSession: (handed) => token === undefined && current.signIn(handed, { remember: true }),
    onEnded: (ofToken) => current.close(ofToken, "signed_out"),
  });
  const { signIn, signInWith, stopWaiting, signInAgain, signOut, actAs, comeBack } = current;
  const state = { ...snapshot, isRemembered: storedSession.exists(), api, asked, ownBrand };
  const operations = {
    signIn,
    signInWith,
    stopWaiting,
    signInAgain,
    signOut,
    actAs,
    comeBack,
    showBrand,
  };
  return (
    <SessionContext value={{ ...state, ...operations }}>{!isAsking && children}</SessionContext>
  );
}

/** Reads the signed-in user again after a reload, because the stored role, name or theme may be outdated. */
function useFreshIdentity(
  api: ApiClient,
  token: string | undefined,
  current: CurrentSession,
): void {
  const restored = useRef(token);
  useEffect(() => {
    if (token === undefined || token !== restored.current) return;
    restored.current = undefined;
    readIdentity(api).then(
      (identity) => current.renew({ ...identity, token }),
      // Ignores errors: a 401 has already ended the session, and after any other error the page keeps the
      // stored user data.
      () => undefined,
    );
  }, [api, token, current]);
}

export function useSessionState(): SessionState {
  const state = use(SessionContext);
  if (state === undefined) throw new Error("useSession must be used below a SessionProvider.");
  return state;
}

/**
 * Returns the brand of the page if it has its own, else that of the session. Without a session, returns that of the last
 * one in this browser, if any.
 */
export function useBrand(): ShownBrand | undefined {
  const { session, ownBrand } = useSessionState();
  return useMemo(() => {
    if (ownBrand !== undefined) return ownBrand;
    return session === undefined ? rememberedBrand() : brandOf(session);
  }, [session, ownBrand]);
}

export const useApi = (): ApiClient => useSessionState().api;

/** Returns the session. Throws without a session, so only pages that require a signed-in user may call it. */
export function useSession(): Session {
  const { session } = useSessionState();
  if (session === undefined) throw new Error("Nobody is signed in.");
  return session;
}
