import { BASE_URL } from "../api/connect.ts";
import { tabStorage } from "./identity.ts";
import { type SsoCallback, newChallenge, readCallback } from "./single-sign-on.ts";

export const HOME = "/dashboard";
const SSO_KEY = "reviewrelay.sso";

/**
 * Result of a page load that is no SSO callback. It also replaces the result of a callback after the sign-in, because
 * each result is valid for one sign-in only.
 */
export const NO_CALLBACK: SsoCallback = { kind: "none" };

/**
 * Starts an SSO flow with PKCE: stores the PKCE verifier in this tab and returns the address to navigate to.
 * Returns undefined if the browser blocks storage, or lacks WebCrypto because the page is not served over
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
 * Reads the result of an SSO callback. Removes the one-time code from the address, so that the code is not kept
 * in the browser history, copied, or sent as a referrer.
 */
export function consumeSsoCallback(): SsoCallback {
  const ssoCallback = readCallback(location.search, tabStorage.read(SSO_KEY));
  if (ssoCallback.kind === "none") return ssoCallback;
  tabStorage.remove(SSO_KEY);
  const path = "flow" in ssoCallback ? ssoCallback.flow?.path : undefined;
  history.replaceState(null, "", path ?? HOME);
  return ssoCallback;
}

/**
 * Parameters of an invitation link. The email serves the password manager only, which stores the new password
 * under this email.
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
 * Reads an invitation link. Removes the one-time code from the address, so that the code is not kept in the
 * browser history, copied, or sent as a referrer.
 */
export function consumeInvitation(): Invitation | undefined {
  const invitation = readInvitation(location.pathname, location.hash);
  if (invitation !== undefined) history.replaceState(null, "", HOME);
  return invitation;
}

/**
 * Reads the code of the link in a mail to a recipient of alerts, and removes it from the address. The code is empty if
 * the end of the link is missing.
 */
export function consumeRecipientCode(): string | undefined {
  if (location.pathname !== `${HOME}/alert-recipient`) return undefined;
  const code = new URLSearchParams(location.hash.replace(/^#/, "")).get("code") ?? "";
  history.replaceState(null, "", HOME);
  return code;
}

/** Parameters of a link that begins a password reset, or continues it with the mailed code. */
export interface ResetLink {
  readonly email: string;
  readonly code: string | undefined;
}

/** Reads the link in a mail about a password, and removes it with its code from the address. */
export function consumeResetLink(): ResetLink | undefined {
  if (location.pathname !== `${HOME}/reset-password`) return undefined;
  const given = new URLSearchParams(location.hash.replace(/^#/, ""));
  history.replaceState(null, "", HOME);
  const email = given.get("email");
  return email === null ? undefined : { email, code: given.get("code") ?? undefined };
}

/** Parameters of a portal link. */
export interface PortalLink {
  /** Path prefix of all pages of the portal, such as `/embed/{key}`. */
  readonly base: string;
  /**
   * One-time code of the link. Undefined after a reload, because the first page load removed the code from the
   * address.
   */
  readonly code: string | undefined;
  readonly theme: "light" | "dark" | undefined;
}

const PORTAL_PATH = /^\/embed\/[^/]+/;

/**
 * Reloads the page when the host page sets a new portal link in the frame. Links of one portal differ only in
 * the fragment, and browsers do not load a page when only the fragment changes.
 */
export function followNewLinks(): void {
  addEventListener("hashchange", () => {
    if (location.hash.startsWith("#code=")) location.reload();
  });
}

/**
 * Reads a portal link; returns undefined if the page is not a portal page. Removes the one-time code from the
 * address, so that the code is not kept in the browser history, copied, or sent as a referrer.
 */
export function consumePortalLink(): PortalLink | undefined {
  const base = PORTAL_PATH.exec(location.pathname)?.[0];
  if (base === undefined) return undefined;
  const code = new URLSearchParams(location.hash.replace(/^#/, "")).get("code") ?? undefined;
  if (location.hash !== "") history.replaceState(null, "", location.pathname + location.search);
  const theme = new URLSearchParams(location.search).get("theme");
  return { base, code, theme: theme === "light" || theme === "dark" ? theme : undefined };
}
