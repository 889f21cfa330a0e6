import { answerOf, type ApiClient, apiErrorOf } from "../api/client.ts";
import { apiWith } from "../api/connect.ts";

/*
 * Storage for state that must survive a reload. sessionStorage is used because other tabs cannot read it and
 * closing the tab deletes it. If the browser blocks storage, the state is lost at the next reload.
 */

type Key = "reviewrelay.session" | "reviewrelay.reload" | "reviewrelay.sso" | "reviewrelay.drafts";

export const tabStorage = {
  read(key: Key): string | null {
    try {
      return sessionStorage.getItem(key);
    } catch {
      return null;
    }
  },
  /** Stores the value as JSON. Returns false if the browser blocks storage. */
  write(key: Key, value: unknown): boolean {
    try {
      sessionStorage.setItem(key, JSON.stringify(value));
      return true;
    } catch {
      return false;
    }
  },
  remove(key: Key): void {
    try {
      sessionStorage.removeItem(key);
    } catch {
      // Ignores the error: if the browser blocks storage, no value was ever stored.
    }
  },
};

type Identity = Awaited<ReturnType<typeof readIdentity>>;

/** Signed-in user with access token, and the theme of the user's company. */
export interface Session extends Identity {
  readonly token: string;
  /** Session of the impersonator, set only during impersonation. `comeBack` returns to this session. */
  readonly origin?: Session;
  /** Access of a portal link; set only if a portal link opened the session. */
  readonly portal?: Portal;
}

/** Access that a portal link grants to its visitor. */
export interface Portal {
  /** Paths of the pages that the visitor may open: `webhooks`, or `webhooks/{id}` for each subscription. */
  readonly pages: readonly string[];
  readonly isReadOnly: boolean;
  /**
   * True if an operator created the link. The session then sees no secret, and creates and rotates none (contract
   * 6.20).
   */
  readonly isOfOperator: boolean;
}

export function readIdentity(api: ApiClient) {
  return answerOf(api["verify-token"].get());
}

/**
 * Revokes the token on the server. Returns true if the token is certainly revoked (also after a 401), false if
 * the server did not confirm the revocation.
 */
export async function endToken(token: string): Promise<boolean> {
  try {
    await answerOf(apiWith(token).logout.get());
    return true;
  } catch (error) {
    return apiErrorOf(error)?.status === 401;
  }
}

/**
 * Key of the session in sessionStorage. A remembered session (remember-me) stays there, and new tabs may take it
 * over; localStorage never contains a session. Without remember-me, a session is stored only for a reload that the
 * dashboard itself starts, so that the reload does not sign the user out. `RELOAD_KEY` marks such a session.
 */
const SESSION_KEY = "reviewrelay.session";
const RELOAD_KEY = "reviewrelay.reload";

export const storedSession = {
  /**
   * Returns the session that was stored before this page load. Removes it from the storage if it was stored for a
   * single reload.
   */
  read(): Session | undefined {
    const isForOnce = tabStorage.read(RELOAD_KEY) !== null;
    const session = storedValue();
    tabStorage.remove(RELOAD_KEY);
    if (isForOnce) tabStorage.remove(SESSION_KEY);
    return session;
  },
  write: (session: Session) => tabStorage.write(SESSION_KEY, session),
  remove: () => tabStorage.remove(SESSION_KEY),
  exists: () => tabStorage.read(SESSION_KEY) !== null,
  /**
   * Returns the stored session if the user chose remember-me. Returns undefined if the session was stored for a
   * single reload.
   */
  kept: () => (tabStorage.read(RELOAD_KEY) === null ? storedValue() : undefined),
};

function storedValue(): Session | undefined {
  try {
    // Trusts the value, because only `write` stores it. If its token is no longer valid, the first request with it
    // ends the session.
    const found: Session | null = JSON.parse(tabStorage.read(SESSION_KEY) ?? "null");
    return found?.token === undefined || found.user === undefined ? undefined : found;
  } catch {
    return undefined;
  }
}

let present: Session | undefined;

/** Remembers the current session for `reloadSignedIn`. Must be called whenever the session changes. */
export function followSession(session: Session | undefined): void {
  present = session;
}

/** Reloads the page to load the currently deployed version of the dashboard, and keeps the user signed in. */
export function reloadSignedIn(): void {
  if (present !== undefined && !storedSession.exists()) {
    storedSession.write(present);
    tabStorage.write(RELOAD_KEY, true);
  }
  location.reload();
}
