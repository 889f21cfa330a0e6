import { type ApiError, apiErrorOf } from "../api/client.ts";
import { addDrafts, allDrafts, discardDrafts } from "../ui/drafts.ts";
import { endToken, followSession, type Session, storedSession, tabStorage } from "./identity.ts";
import { consumeSsoCallback, HOME, NO_CALLBACK } from "./links.ts";
import { notifyEnded } from "./other-tabs.ts";
import { queryClient } from "./query-client.ts";
import type { SsoCallback } from "./single-sign-on.ts";

/**
 * Reason why the session ended. `expired`: the token became invalid. `signed_out`: the user signed out.
 * `unconfirmed`: the user signed out, but the server did not confirm that the token is revoked. `again`: the
 * user asked to sign in again. `too_late`: the second step of a sign-in ended before the user had finished it.
 */
type EndReason = "expired" | "signed_out" | "unconfirmed" | "again" | "too_late";

/** Sign-in whose password was right, and that waits for a second factor (contract 4.27). */
interface WaitingSignIn {
  readonly challenge: NonNullable<ApiError["secondFactor"]>;
  readonly remember: boolean;
}

interface SessionSnapshot {
  readonly session: Session | undefined;
  /** Reason why the previous session of this tab ended; undefined if this tab had no session before. */
  readonly ended: EndReason | undefined;
  /** Result of the SSO callback, if this page load is one; otherwise a result of kind "none". */
  readonly ssoCallback: SsoCallback;
  /** Sign-in that waits for a second factor. */
  readonly waiting: WaitingSignIn | undefined;
}

interface Remember {
  readonly remember: boolean;
}

/**
 * Session of this tab and all operations that change it. React reads it with `useSyncExternalStore`. `renew`, `drop`
 * and `close` take a token and do nothing if it is no longer the current one, so that a late response does not end a
 * newer session.
 */
export class CurrentSession {
  #snapshot: SessionSnapshot;
  readonly #listeners = new Set<() => void>();
  /** Id of the user who is signed in, or was signed in last. Drafts are discarded when another user signs in. */
  #lastUser: number | undefined;

  constructor() {
    const ssoCallback = consumeSsoCallback();
    const session = storedSession.read();
    const draftsOwner = restoreDrafts(session?.user.id);
    this.#lastUser = session?.user.id ?? draftsOwner;
    this.#snapshot = { session, ended: undefined, ssoCallback, waiting: undefined };
    followSession(session);
  }

  readonly snapshot = (): SessionSnapshot => this.#snapshot;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Stores the drafts when the document is unloaded. Returns a function that removes the event listener. */
  readonly keepDrafts = (): (() => void) => {
    const store = () => storeDrafts(this.#lastUser);
    window.addEventListener("pagehide", store);
    return () => window.removeEventListener("pagehide", store);
  };

  readonly signIn = (session: Session, { remember }: Remember): void => {
    queryClient.clear();
    if (this.#lastUser !== undefined && this.#lastUser !== session.user.id) discardDrafts();
    this.#lastUser = session.user.id;
    if (remember) storedSession.write(session);
    else storedSession.remove();
    this.#change({ session, ended: undefined, ssoCallback: NO_CALLBACK, waiting: undefined });
  };

  /**
   * Signs in with the session that the request opens. If the API demands a second factor first, stores the
   * sign-in in `waiting` and resolves to false.
   */
  readonly signInWith = async (
    request: Promise<Session>,
    { remember }: Remember,
  ): Promise<boolean> => {
    const token = this.#token;
    try {
      this.signIn(await request, { remember });
      return true;
    } catch (error) {
      const challenge = apiErrorOf(error)?.secondFactor;
      if (challenge === undefined) throw error;
      // Drops the session of this tab, because the request set a new password, which ends the session in which it is
      // set.
      if (token !== undefined) this.drop(token);
      this.#change({ waiting: { challenge, remember } });
      return false;
    }
  };

  /**
   * Returns from the second step of a sign-in to the sign-in form. `too_late` says that the server has ended the
   * sign-in.
   */
  readonly stopWaiting = (ended?: "too_late"): void => this.#change({ waiting: undefined, ended });

  /** Replaces the data of the signed-in user, which may be outdated after a reload. */
  readonly renew = (next: Session): void => {
    const { session } = this.#snapshot;
    if (session?.token !== next.token) return;
    const renewed = { ...next, ...(session.origin && { origin: session.origin }) };
    if (storedSession.exists()) storedSession.write(renewed);
    this.#change({ session: renewed });
  };

  /** Ends the session with this token. */
  readonly drop = (token: string, ended?: EndReason): void => {
    if (this.#token !== token) return;
    const origin = this.#snapshot.session?.origin;
    // Returns to the impersonator's own session when the token of an impersonation expires.
    if (origin !== undefined && ended === "expired") return this.#switchTo(origin, "");
    storedSession.remove();
    queryClient.clear();
    this.#change({ session: undefined, ended, ssoCallback: NO_CALLBACK });
  };

  /** Ends a session that the user signed out, here or in another tab, and discards its drafts. */
  readonly close = (token: string, ended?: EndReason): void => {
    if (this.#token !== token) return;
    // Resets the address, so that the next user starts at the first page of their role.
    history.replaceState(null, "", HOME);
    discardDrafts();
    this.drop(token, ended);
  };

  /** Ends the session and revokes its token on the server. */
  readonly signOut = (): void => {
    const { session } = this.#snapshot;
    if (session === undefined) return;
    const tokens = [session.token, ...(session.origin ? [session.origin.token] : [])];
    this.close(session.token);
    for (const token of tokens) notifyEnded(token);
    void Promise.all(tokens.map(endToken)).then((areCertain) => {
      const ended = areCertain.every(Boolean) ? "signed_out" : "unconfirmed";
      if (this.#token === undefined) this.#change({ ended });
    });
  };

  /** Ends the session and shows the sign-in, which leads back to this page. */
  readonly signInAgain = (): void => {
    const token = this.#token;
    if (token === undefined) return;
    this.drop(token, "again");
    void endToken(token);
  };

  /**
   * Starts impersonation: the new session has a token that acts as another user. It contains the partner's own
   * session (`origin`), so that both survive a reload. `comeBack` ends the impersonation.
   */
  readonly actAs = (next: Session): void => {
    const origin = this.#snapshot.session;
    if (origin !== undefined) this.#switchTo({ ...next, origin }, "");
  };

  readonly comeBack = (): void => {
    const { session } = this.#snapshot;
    if (session?.origin === undefined) return;
    void endToken(session.token);
    this.#switchTo(session.origin, "/accounts");
  };

  get #token(): string | undefined {
    return this.#snapshot.session?.token;
  }

  #switchTo(session: Session, path: string): void {
    history.replaceState(null, "", HOME + path);
    this.signIn(session, { remember: storedSession.exists() });
  }

  #change(change: Partial<SessionSnapshot>): void {
    this.#snapshot = { ...this.#snapshot, ...change };
    followSession(this.#snapshot.session);
    for (const listener of this.#listeners) listener();
  }
}

/*
 * Storage of unsent drafts. A reload, a deploy that requires a reload, or an SSO flow unloads the document and
 * would lose the drafts. They are therefore written to sessionStorage and restored by the next document.
 */

const DRAFTS_KEY = "reviewrelay.drafts";

interface StoredDrafts {
  /** Id of the user who typed the drafts. */
  readonly user: number;
  readonly drafts: Readonly<Record<string, object>>;
}

function storeDrafts(user: number | undefined): void {
  const drafts = allDrafts();
  if (user === undefined || Object.keys(drafts).length === 0) tabStorage.remove(DRAFTS_KEY);
  else tabStorage.write(DRAFTS_KEY, { user, drafts } satisfies StoredDrafts);
}

/**
 * Restores the drafts that the previous document stored, unless another user is signed in. Returns the id of the user
 * who typed the restored drafts.
 */
function restoreDrafts(present: number | undefined): number | undefined {
  const left = tabStorage.read(DRAFTS_KEY);
  tabStorage.remove(DRAFTS_KEY);
  if (left === null) return undefined;
  // The assertion is safe because only `storeDrafts` writes this value.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const { user, drafts } = JSON.parse(left) as StoredDrafts;
  if (present !== undefined && present !== user) return undefined;
  addDrafts(drafts);
  return user;
}
