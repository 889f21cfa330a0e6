import { BASE_URL } from "../api/connect.ts";
import { tabStorage } from "./identity.ts";
import { type Arrival, newChallenge, readArrival } from "./single-sign-on.ts";

export const HOME = "/dashboard";
const SSO_KEY = "reviewrelay.sso";

/** An arrival counts for the first sign-in after it, and not for one that follows a session. */
export const NO_ARRIVAL: Arrival = { kind: "none" };

/**
 * Prepares a trip to the identity provider, with a challenge whose verifier stays in this tab. Answers the address to
 * go to; undefined where the browser stores nothing, or hashes nothing because the page is not secure.
 */
export async function startTrip({ email, remember }: { email: string; remember: boolean }) {
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

/** Takes the code out of the address before anything else happens: it must not be kept, copied or sent anywhere. */
export function takeArrival(): Arrival {
  const arrival = readArrival(location.search, tabStorage.read(SSO_KEY));
  if (arrival.kind === "none") return arrival;
  tabStorage.remove(SSO_KEY);
  const path = "trip" in arrival ? arrival.trip?.path : undefined;
  history.replaceState(null, "", path ?? HOME);
  return arrival;
}

/** What the link of an invitation carries; the email only tells the password manager whose password it is. */
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

/** Takes the code out of the address before anything else happens: it must not be kept, copied or sent anywhere. */
export function takeInvitation(): Invitation | undefined {
  const invitation = readInvitation(location.pathname, location.hash);
  if (invitation !== undefined) history.replaceState(null, "", HOME);
  return invitation;
}

/** What the link to a portal carries. */
export interface PortalLink {
  /** Below it are the portal's pages. */
  readonly base: string;
  /** Absent after a reload: a code is good once, and nothing is kept. */
  readonly code: string | undefined;
  readonly theme: "light" | "dark" | undefined;
}

const PORTAL = /^\/embed\/[^/]+/;

/** A frame that is sent to another link of the same portal is loaded anew, which a new fragment alone does not do. */
export function followNewLinks(): void {
  addEventListener("hashchange", () => {
    if (location.hash.startsWith("#code=")) location.reload();
  });
}

/**
 * Answers the link where the page is a portal. Takes the code out of the address before anything else happens: it must
 * not be kept, copied or sent anywhere.
 */
export function takePortalLink(): PortalLink | undefined {
  const base = PORTAL.exec(location.pathname)?.[0];
  if (base === undefined) return undefined;
  const code = new URLSearchParams(location.hash.replace(/^#/, "")).get("code") ?? undefined;
  if (location.hash !== "") history.replaceState(null, "", location.pathname + location.search);
  const theme = new URLSearchParams(location.search).get("theme");
  return { base, code, theme: theme === "light" || theme === "dark" ? theme : undefined };
}
