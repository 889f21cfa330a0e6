import { answerOf, type ApiClient, apiErrorOf } from "../api/client.ts";
import { apiWith } from "../api/connect.ts";

/*
 * State that survives a reload is stored in sessionStorage, which other tabs cannot read and which ends with
 * the tab. If the browser blocks storage, the state is lost at the next reload.
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
  /** Returns whether the value could be stored. */
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
      // Nothing was stored, so there is nothing to remove.
    }
  },
};

type Identity = Awaited<ReturnType<typeof readIdentity>>;

/** The signed-in user and token, with the theme of the user's company. */
export interface Session extends Identity {
  readonly token: string;
  /** The impersonator's own session, set during impersonation. `comeBack` continues with it. */
  readonly origin?: Session;
  /** Set for a session that a portal link opened. */
  readonly portal?: Portal;
}

/** The access that a portal link grants. */
export interface Portal {
  /** Paths of the pages that may be opened: `webhooks`, or `webhooks/{id}` for each subscription. */
  readonly pages: readonly string[];
  readonly isReadOnly: boolean;
}

export function readIdentity(api: ApiClient) {
  return answerOf(api["verify-token"].get());
}

/**
 * Revokes the token on the server. Returns true if the token is certainly revoked, false if the server could
 * not confirm it.
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
 * A remembered session keeps its token in sessionStorage, and new tabs may take it over; it is never in
 * localStorage. Without remember-me the token survives only a reload that the dashboard itself starts, marked
 * by `ONCE`, because the user did not mean to sign out.
 */
const KEY = "reviewrelay.session";
const ONCE = "reviewrelay.reload";

export const storedSession = {
  /** Returns the session from before the reload. A session that was stored for this one reload is removed. */
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
  /** Returns the stored session if it is kept by remember-me; undefined if it was stored for a single reload. */
  kept: () => (tabStorage.read(ONCE) === null ? stored() : undefined),
};

function stored(): Session | undefined {
  try {
    const found: unknown = JSON.parse(tabStorage.read(KEY) ?? "null");
    const { token, user }: Partial<Session> = Object(found);
    // Only `write` stores this value. If the token is dead, the first request with it ends the session.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return token === undefined || user === undefined ? undefined : (found as Session);
  } catch {
    return undefined;
  }
}

let present: Session | undefined;

/** Records the current session for `reloadSignedIn`. Called at every change. */
export function followSession(session: Session | undefined): void {
  present = session;
}

/** Reloads the page to get the deployed version of the dashboard, and keeps the user signed in. */
export function reloadSignedIn(): void {
  if (present !== undefined && !storedSession.exists()) {
    storedSession.write(present);
    tabStorage.write(ONCE, true);
  }
  location.reload();
}

/** Role in the API (`user.role`) → its display name. */
const ROLE_NAMES = {
  super_admin: "Super-admin",
  partner_owner: "Partner owner",
  partner_admin: "Partner admin",
  account_owner: "Account owner",
  account_user: "Account user",
  location_user: "Location user",
} as const;

export type Role = keyof typeof ROLE_NAMES;

// Object.keys has the type string[].
// oxlint-disable-next-line typescript/no-unsafe-type-assertion
export const ROLES = Object.keys(ROLE_NAMES) as readonly Role[];

/** Returns the display name of a role. A role that this version does not know is shown as it is. */
export function roleName(role: string): string {
  const names: Readonly<Record<string, string>> = ROLE_NAMES;
  return names[role] ?? role;
}
