import { BASE_URL } from "../api/connect.ts";
import { tabStorage } from "./identity.ts";
import { type SsoCallback, newChallenge, readCallback } from "./single-sign-on.ts";

export const HOME = "/dashboard";
const SSO_KEY = "reviewrelay.sso";

/**
 * The callback result of a page load without an SSO callback. It also replaces a result that was used: a
 * result applies to one sign-in only.
 */
export const NO_CALLBACK: SsoCallback = { kind: "none" };

/**
 * Starts an SSO flow with PKCE: stores the verifier in this tab and returns the address to navigate to.
 * Returns undefined if the browser blocks storage, or has no WebCrypto because the page is not served over
 * HTTPS.
 */
export async function startSsoFlow({ email, remember }: { email: string; remember: boolean }) {
  try {
    const { verifier, challenge } = await newChallenge();
    const path = location.pathname + location.search;
    if (!tabStorage.write(SSO_KEY, { verifier, email, remember, path })) return undefined;
    const query = new URLSearchParams({
      email,
      code_challenge: challenge,
      code_challenge_method: "S256",
    });
    return `${BASE_URL}/auth/sso/redirect?${query.toString()}`;
  } catch {
    return undefined;
  }
}

/**
 * Reads the result of an SSO callback, and removes the one-time code from the address first, so that it is
 * not kept in the history, copied or sent as a referrer.
 */
export function takeSsoCallback(): SsoCallback {
  const ssoCallback = readCallback(location.search, tabStorage.read(SSO_KEY));
  if (ssoCallback.kind === "none") return ssoCallback;
  tabStorage.remove(SSO_KEY);
  const path = "flow" in ssoCallback ? ssoCallback.flow?.path : undefined;
  history.replaceState(null, "", path ?? HOME);
  return ssoCallback;
}

/**
 * The parameters of an invitation link. The email is only for the password manager, which stores the password
 * under it.
 */
export interface Invitation {
  readonly code: string;
  readonly email: string;
}

const PATH = `${HOME}/welcome`;

function readInvitation(path: string, fragment: string): Invitation | undefined {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const code = given.get("invitation") ?? "";
  if (path !== PATH || code === "") return undefined;
  return { code, email: given.get("email") ?? "" };
}

/**
 * Reads an invitation link, and removes the one-time code from the address first, so that it is not kept in
 * the history, copied or sent as a referrer.
 */
export function takeInvitation(): Invitation | undefined {
  const invitation = readInvitation(location.pathname, location.hash);
  if (invitation !== undefined) history.replaceState(null, "", HOME);
  return invitation;
}

/** The parameters of a portal link. */
export interface PortalLink {
  /** The path below which the portal's pages are. */
  readonly base: string;
  /** The one-time code. It is absent after a reload, because it was removed from the address. */
  readonly code: string | undefined;
  readonly theme: "light" | "dark" | undefined;
}

const PORTAL = /^\/embed\/[^/]+/;

/**
 * Reloads the page when the host sets a new portal link in the frame. Links of one portal differ only in the
 * fragment, and a new fragment alone does not load a page.
 */
export function followNewLinks(): void {
  addEventListener("hashchange", () => {
    if (location.hash.startsWith("#code=")) location.reload();
  });
}

/**
 * Reads a portal link; returns undefined if the page is not a portal. Removes the one-time code from the
 * address first, so that it is not kept in the history, copied or sent as a referrer.
 */
export function takePortalLink(): PortalLink | undefined {
  const base = PORTAL.exec(location.pathname)?.[0];
  if (base === undefined) return undefined;
  const code = new URLSearchParams(location.hash.replace(/^#/, "")).get("code") ?? undefined;
  if (location.hash !== "") history.replaceState(null, "", location.pathname + location.search);
  const theme = new URLSearchParams(location.search).get("theme");
  return { base, code, theme: theme === "light" || theme === "dark" ? theme : undefined };
}
