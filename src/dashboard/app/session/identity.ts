import { apiErrorOf } from "../api/api-error.ts";
import { answerOf, type ApiClient } from "../api/api-client.ts";
import { apiWith } from "../api/connect.ts";
import { tabStorage } from "./tab-storage.ts";

type Identity = Awaited<ReturnType<typeof readIdentity>>;

/** Who is signed in, with the look of their company. */
export interface Session extends Identity {
  readonly token: string;
  /** Of somebody who acts as the owner of an account: the own session, to which it goes back. */
  readonly origin?: Session;
  /** Of a portal link: what it opens. */
  readonly portal?: Portal;
}

/** What somebody sees who came by a portal link. */
export interface Portal {
  /** `webhooks`, or `webhooks/{id}` for each subscription. */
  readonly pages: readonly string[];
  readonly isReadOnly: boolean;
}

export function readIdentity(api: ApiClient) {
  return answerOf(api["verify-token"].get());
}

/** Ends the token at the server; answers whether it is certain that it has ended. */
export async function endToken(token: string): Promise<boolean> {
  try {
    await answerOf(apiWith(token).logout.get());
    return true;
  } catch (error) {
    return apiErrorOf(error)?.status === 401;
  }
}

/**
 * With remember-me the token outlives the reloads of this tab, and new tabs may have it: never localStorage. Without it
 * the token outlives those reloads that we ask for ourselves, because then nobody meant to sign out.
 */
const KEY = "reviewrelay.session";
const ONCE = "reviewrelay.reload";

export const storedSession = {
  /** Answers the session of before the reload; one that was stored for that reload alone is forgotten here. */
  read(): Session | undefined {
    const isForOnce = tabStorage.read(ONCE) !== null;
    const session = stored();
    tabStorage.remove(ONCE);
    if (isForOnce) tabStorage.remove(KEY);
    return session;
  },
  write: (session: Session) => tabStorage.write(KEY, session),
  remove: () => tabStorage.remove(KEY),
  exists: () => tabStorage.read(KEY) !== null,
  /** Answers the session that is to be kept, which one stored for a single reload is not. */
  kept: () => (tabStorage.read(ONCE) === null ? stored() : undefined),
};

function stored(): Session | undefined {
  try {
    const found: unknown = JSON.parse(tabStorage.read(KEY) ?? "null");
    const { token, user }: Partial<Session> = Object(found);
    // `write` has stored it; the first call with it ends the session if the token is dead.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return token === undefined || user === undefined ? undefined : (found as Session);
  } catch {
    return undefined;
  }
}

let present: Session | undefined;

/** Is told of every change of the session, for `reloadSignedIn`. */
export function followSession(session: Session | undefined): void {
  present = session;
}

/** Loads the dashboard anew, in its present version, and stays signed in. */
export function reloadSignedIn(): void {
  if (present !== undefined && !storedSession.exists()) {
    storedSession.write(present);
    tabStorage.write(ONCE, true);
  }
  location.reload();
}
