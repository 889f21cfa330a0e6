import {
  createContext,
  use,
  useCallback,
  useEffect,
  useMemo,
  useRef,
  useState,
  type ReactNode,
} from "react";

import { createApiClient, type ApiClient } from "../../client/api.ts";
import { kept } from "./kept.ts";
import { queryClient } from "./queries.ts";
import { readArrival, type Arrival } from "./single-sign-on.ts";
import { problemOf } from "./ui/explain.ts";
import { notify } from "./ui/notify.ts";

export const BASE_URL = `${location.origin}/api/v1`;
export const HOME = "/dashboard";
/** With remember-me the token outlives a reload of this tab, and nothing more: never localStorage. */
const SESSION = "reviewrelay.session";
const TRIP = "reviewrelay.sso";

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

/** `expired`: not by the user. `unconfirmed`: by the user, but the server could not be told. */
type Ending = "expired" | "signed_out" | "unconfirmed";

interface SessionState {
  readonly session: Session | undefined;
  readonly isRemembered: boolean;
  /** How the last session of this tab ended. */
  readonly ended: Ending | undefined;
  /** What a single sign-on brought back when the page was loaded. */
  readonly arrival: Arrival;
  /** Calls the API with the token of the session; a 401 ends the session. */
  readonly api: ApiClient;
  readonly signIn: (session: Session, options: { readonly remember: boolean }) => void;
  /** Ends the token at the server, too. */
  readonly signOut: () => void;
}

const Context = createContext<SessionState | undefined>(undefined);

export function SessionProvider({ children }: { readonly children: ReactNode }) {
  const [arrival, setArrival] = useState(takeArrival);
  const [session, setSession] = useState(restore);
  const [ended, setEnded] = useState<Ending>();
  const token = session?.token;
  const live = useRef(token);

  const enter = useCallback((next: Session, { remember }: { remember: boolean }) => {
    queryClient.clear();
    if (remember) kept.write(SESSION, next);
    else kept.forget(SESSION);
    live.current = next.token;
    setArrival(NO_ARRIVAL);
    setEnded(undefined);
    setSession(next);
  }, []);
  const leave = useCallback((of: string, why?: Ending) => {
    // A late answer to an earlier session says nothing of the present one.
    if (live.current !== of) return;
    live.current = undefined;
    kept.forget(SESSION);
    notify.clear();
    queryClient.clear();
    setArrival(NO_ARRIVAL);
    setSession(undefined);
    setEnded(why);
  }, []);
  const api = useMemo(() => {
    const client = createApiClient({ baseUrl: BASE_URL, token: () => token });
    const call = async (...args: Parameters<ApiClient["call"]>) => {
      try {
        return await client.call(...args);
      } catch (error) {
        if (token !== undefined && problemOf(error)?.status === 401) leave(token, "expired");
        throw error;
      }
    };
    // The same operations, with one more thing done about a 401.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return { call } as ApiClient;
  }, [token, leave]);
  const renew = useCallback((next: Session) => {
    if (live.current !== next.token) return;
    kept.write(SESSION, next);
    setSession(next);
  }, []);
  useFreshIdentity(api, token, renew);

  const signOut = () => {
    if (token === undefined) return;
    // Whoever signs in next begins at their own start.
    history.replaceState(null, "", HOME);
    leave(token);
    void endAtServer(token).then((why) => {
      if (live.current === undefined) setEnded(why);
    });
  };
  const isRemembered = kept.read(SESSION) !== null;
  const state = { session, isRemembered, ended, arrival, api, signIn: enter, signOut };
  return <Context value={state}>{children}</Context>;
}

/** What came with the page counts for the first sign-in after it, and for none that follows a session. */
const NO_ARRIVAL: Arrival = { kind: "none" };

/** The code leaves the address before anything else happens: it must not be kept, copied or sent anywhere. */
function takeArrival(): Arrival {
  const arrival = readArrival(location.search, kept.read(TRIP));
  if (arrival.kind === "none") return arrival;
  kept.forget(TRIP);
  const path = "trip" in arrival ? arrival.trip?.path : undefined;
  history.replaceState(null, "", path ?? HOME);
  return arrival;
}

function restore(): Session | undefined {
  try {
    const stored: unknown = JSON.parse(kept.read(SESSION) ?? "null");
    const { token, user }: Partial<Session> = Object(stored);
    // Written by signIn; the first call with it ends the session if the token is dead.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return token === undefined || user === undefined ? undefined : (stored as Session);
  } catch {
    return undefined;
  }
}

/** What was kept over a reload may be out of date: the role, the name, the look. */
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

async function endAtServer(token: string): Promise<Ending> {
  try {
    await createApiClient({ baseUrl: BASE_URL, token: () => token }).call("GET", "/logout", {});
    return "signed_out";
  } catch (error) {
    return problemOf(error)?.status === 401 ? "signed_out" : "unconfirmed";
  }
}

/** With a token that is good for one step only: a 401 of it ends nothing. */
export function clientWith(token: string): ApiClient {
  return createApiClient({ baseUrl: BASE_URL, token: () => token });
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
