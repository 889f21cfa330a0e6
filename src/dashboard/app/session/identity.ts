import { answerOf, type ApiClient, apiErrorOf } from "../api/client.ts";
import { apiWith } from "../api/connect.ts";

/*
 * What outlives a reload is in the storage of this tab alone, which no other tab sees and which ends with it. Where a
 * browser forbids even that, things simply do not outlive a reload.
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
  /** Answers whether the value is stored now. */
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
      // Without a storage there is nothing to remove.
    }
  },
};

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

/** Role as the API names it (`user.role`) → its name for people. */
const ROLE_NAMES = {
  super_admin: "Super-admin",
  partner_owner: "Partner owner",
  partner_admin: "Partner admin",
  account_owner: "Account owner",
  account_user: "Account user",
  location_user: "Location user",
} as const;

export type Role = keyof typeof ROLE_NAMES;

// TypeScript gives the keys of the object above as texts.
// oxlint-disable-next-line typescript/no-unsafe-type-assertion
export const ROLES = Object.keys(ROLE_NAMES) as readonly Role[];

/** A role that is newer than this page is shown as it is. */
export function roleName(role: string): string {
  const names: Readonly<Record<string, string>> = ROLE_NAMES;
  return names[role] ?? role;
}
