import { randomBytes } from "node:crypto";

import type { Clock } from "../lib/clock.ts";
import type { SecretBox } from "../lib/secret-box.ts";

/**
 * What a page carries in its form: the request that it belongs to, and who has signed in. Sealed for one browser, so
 * it is the CSRF token as well: nobody can make one for the browser of another.
 */
export interface Ticket {
  /** The query of the authorization request. */
  readonly query: string;
  /** Set while a user who has signed in is asked for consent. */
  readonly signedIn: { readonly secret: string; readonly email: string } | null;
  /** Set during a single sign-on: it makes the code that comes back good for this ticket alone. */
  readonly verifier?: string;
  readonly expiresAtMs: number;
}

interface TicketDeps {
  readonly box: SecretBox;
  readonly clock: Clock;
}

const context = (browser: string): string => `oauth-authorize:${browser}`;

export function sealTicket(
  { box, clock }: TicketDeps,
  browser: string,
  { ttlMs, ...ticket }: Omit<Ticket, "expiresAtMs"> & { ttlMs: number },
): string {
  const expiresAtMs = clock.now().getTime() + ttlMs;
  return box.seal(JSON.stringify({ ...ticket, expiresAtMs }), context(browser));
}

/** An expired ticket still tells what the page was about. Undefined for a text that was not sealed for this browser. */
export function openTicket(
  { box, clock }: TicketDeps,
  browser: string,
  sealed: string,
): { readonly ticket: Ticket; readonly isExpired: boolean } | undefined {
  try {
    // Only texts of `sealTicket` open here.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    const ticket = JSON.parse(box.open(sealed, context(browser))) as Ticket;
    return { ticket, isExpired: ticket.expiresAtMs <= clock.now().getTime() };
  } catch {
    return undefined;
  }
}

const BROWSER_BYTES = 32;
const BROWSER = /^[A-Za-z0-9_-]{43}$/;
const COOKIE_TTL_S = 3_600;

/** The cookie that tells browsers apart. `__Host-` keeps neighbours on other subdomains from setting it. */
export class BrowserCookie {
  readonly #isSecure: boolean;
  readonly #name: string;

  constructor(serverRoot: string) {
    this.#isSecure = serverRoot.startsWith("https:");
    this.#name = this.#isSecure ? "__Host-authorize" : "authorize";
  }

  read(headers: Headers): string | undefined {
    const pairs = (headers.get("cookie") ?? "").split(/; */);
    const own = pairs.filter((pair) => pair.startsWith(`${this.#name}=`));
    const value = own[0]?.slice(this.#name.length + 1) ?? "";
    return own.length === 1 && BROWSER.test(value) ? value : undefined;
  }

  /** Lax and not Strict, because the cookie has to come along when a client sends its user here once more. */
  write(browser: string): string {
    const secure = this.#isSecure ? "; Secure" : "";
    return `${this.#name}=${browser}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${COOKIE_TTL_S}${secure}`;
  }
}

export function newBrowser(): string {
  return randomBytes(BROWSER_BYTES).toString("base64url");
}
