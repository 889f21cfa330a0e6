import { randomBytes } from "node:crypto";

import { HostCookie } from "../http/cookie.ts";
import type { Clock } from "../lib/clock.ts";
import type { Config } from "../lib/config.ts";
import type { SecretBox } from "../lib/secrets.ts";

/**
 * The state that a page of the authorization flow contains in its form: the authorization request and, if the user has
 * signed in, the sign-in. The ticket is encrypted for one browser. So it also serves as the CSRF token: another site
 * cannot create a ticket for the user's browser.
 */
export interface Ticket {
  /** Query string of the authorization request. */
  readonly query: string;
  /** The sign-in of a user who is asked for consent; null before the user has signed in. */
  readonly signedIn: { readonly secret: string; readonly email: string } | null;
  /** The sign-in that waits for a second factor (contract 4.27); absent without one. */
  readonly waiting?: WaitingUser;
  /**
   * The PKCE verifier of a single sign-on; absent without one. The one-time code of the single sign-on is valid only
   * with this verifier, and so only with this ticket.
   */
  readonly verifier?: string;
  readonly expiresAtMs: number;
}

/** A user who has typed the right password, and the id of the challenge token of this sign-in. */
export interface WaitingUser {
  readonly userId: number;
  readonly jti: string;
  readonly email: string;
}

interface TicketDeps {
  readonly box: SecretBox;
  readonly clock: Clock;
}

const ticketContext = (browser: string): string => `oauth-authorize:${browser}`;

export function sealTicket(
  { box, clock }: TicketDeps,
  browser: string,
  { ttlMs, ...ticket }: Omit<Ticket, "expiresAtMs"> & { ttlMs: number },
): string {
  const expiresAtMs = clock.now().getTime() + ttlMs;
  return box.seal(JSON.stringify({ ...ticket, expiresAtMs }), ticketContext(browser));
}

/**
 * Decrypts a ticket. An expired ticket is returned too, with `isExpired`, because the page can be shown again from it.
 * Returns undefined for a text that was not encrypted for this browser.
 */
export function openTicket(
  { box, clock }: TicketDeps,
  browser: string,
  sealed: string,
): { readonly ticket: Ticket; readonly isExpired: boolean } | undefined {
  try {
    // The cast is safe, because only texts that `sealTicket` encrypted can be decrypted here.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    const ticket = JSON.parse(box.open(sealed, ticketContext(browser))) as Ticket;
    return { ticket, isExpired: ticket.expiresAtMs <= clock.now().getTime() };
  } catch {
    return undefined;
  }
}

const BROWSER_BYTES = 32;
const BROWSER_PATTERN = /^[A-Za-z0-9_-]{43}$/;

/** Creates the cookie that identifies a browser during the authorization flow. */
export function authorizeCookie(config: Pick<Config, "serverRoot">): HostCookie {
  return new HostCookie(config, { name: "authorize", maxAgeS: 3_600, format: BROWSER_PATTERN });
}

export function newBrowser(): string {
  return randomBytes(BROWSER_BYTES).toString("base64url");
}
