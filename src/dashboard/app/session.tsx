import { createContext, use, useCallback, useMemo, useState, type ReactNode } from "react";

import { createApiClient, type ApiClient } from "../../client/api.ts";
import { ApiError } from "../../client/client.ts";
import { queryClient } from "./queries.ts";

export const BASE_URL = `${location.origin}/api/v1`;
/** With remember-me the token outlives a reload of this tab, and nothing more: never localStorage. */
const STORED = "reviewrelay.session";

type Identity = Awaited<ReturnType<typeof readIdentity>>;
const readIdentity = (client: ApiClient) => client.call("GET", "/verify-token", {});

/** Who is signed in, with the look of their company. */
export interface Session extends Identity {
  readonly token: string;
}

/** `user.role`, as the API names them (demo.json). */
export type Role =
  | "super_admin"
  | "partner_owner"
  | "partner_admin"
  | "account_owner"
  | "account_user"
  | "location_user";

interface SessionState {
  readonly session: Session | undefined;
  /** Why the last session ended, where the user did not end it. */
  readonly ended: "expired" | undefined;
  /** Calls the API with the token of the session; a 401 ends the session. */
  readonly api: ApiClient;
  readonly signIn: (session: Session, options?: { readonly remember?: boolean }) => void;
  /** Ends the token at the server, too. */
  readonly signOut: () => Promise<void>;
}

const Context = createContext<SessionState | undefined>(undefined);

export function SessionProvider({ children }: { readonly children: ReactNode }) {
  const [session, setSession] = useState(restore);
  const [ended, setEnded] = useState<"expired">();

  const leave = useCallback((why?: "expired") => {
    sessionStorage.removeItem(STORED);
    queryClient.clear();
    setSession(undefined);
    setEnded(why);
  }, []);
  const token = session?.token;
  const api = useMemo(() => {
    const client = createApiClient({ baseUrl: BASE_URL, token: () => token });
    const call = async (...args: Parameters<ApiClient["call"]>) => {
      try {
        return await client.call(...args);
      } catch (error) {
        if (token !== undefined && error instanceof ApiError && error.status === 401)
          leave("expired");
        throw error;
      }
    };
    // The same operations, with one more thing done about a 401.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return { call } as ApiClient;
  }, [token, leave]);

  const state: SessionState = {
    session,
    ended,
    api,
    signIn(next, { remember = false } = {}) {
      queryClient.clear();
      if (remember) sessionStorage.setItem(STORED, JSON.stringify(next));
      setEnded(undefined);
      setSession(next);
    },
    async signOut() {
      try {
        await api.call("GET", "/logout", {});
      } finally {
        leave();
      }
    },
  };
  return <Context value={state}>{children}</Context>;
}

function restore(): Session | undefined {
  try {
    const stored = sessionStorage.getItem(STORED);
    // Written by signIn; the first call with it ends the session if the token is dead.
    return stored === null ? undefined : JSON.parse(stored);
  } catch {
    return undefined;
  }
}

export function useSessionState(): SessionState {
  const state = use(Context);
  if (state === undefined) throw new Error("There is no SessionProvider above.");
  return state;
}

export const useApi = (): ApiClient => useSessionState().api;

/** Of a page that only people who are signed in see. */
export function useSession(): Session {
  const { session } = useSessionState();
  if (session === undefined) throw new Error("Nobody is signed in.");
  return session;
}
