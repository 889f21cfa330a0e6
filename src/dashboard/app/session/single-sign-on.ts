/*
 * The browser's part of a single sign-on. The code that comes back in the address counts only together with the verifier
 * that this tab stored: a code that somebody else slipped in signs nobody in.
 */

/** What waits in this tab while the person is at the identity provider. */
interface PendingTrip {
  readonly verifier: string;
  readonly email: string;
  /** Whether remember-me was ticked before the trip. */
  readonly remember: boolean;
  /** The path to which the person wanted to go. */
  readonly path: string;
}

export type Arrival =
  | { readonly kind: "none" }
  | { readonly kind: "code"; readonly code: string; readonly trip: PendingTrip }
  /** The code has no trip that began in this tab. */
  | { readonly kind: "stray" }
  | { readonly kind: "refused"; readonly trip: PendingTrip | undefined };

/** Reads the address together with the trip that this tab stored as JSON. */
export function readArrival(search: string, stored: string | null): Arrival {
  const params = new URLSearchParams(search);
  const trip = readTrip(stored);
  const code = params.get("code");
  if (params.has("error")) return { kind: "refused", trip };
  if (code === null) return { kind: "none" };
  return trip === undefined ? { kind: "stray" } : { kind: "code", code, trip };
}

function readTrip(stored: string | null): PendingTrip | undefined {
  try {
    const { verifier, email, remember, path }: Record<string, unknown> = Object(
      JSON.parse(stored ?? "null"),
    );
    if (typeof verifier !== "string" || typeof email !== "string") return undefined;
    // It must be a path of the dashboard: a sign-in must not lead anywhere else.
    const isOwn = typeof path === "string" && /^\/dashboard(?:$|[/?])/.test(path);
    return { verifier, email, remember: remember === true, path: isOwn ? path : "/dashboard" };
  } catch {
    return undefined;
  }
}

const VERIFIER_BYTES = 32;

/** Makes a verifier and its challenge as RFC 7636, 4.1 and 4.2 say. */
export async function newChallenge(): Promise<{ verifier: string; challenge: string }> {
  const verifier = base64url(crypto.getRandomValues(new Uint8Array(VERIFIER_BYTES)));
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
  return { verifier, challenge: base64url(new Uint8Array(digest)) };
}

function base64url(bytes: Uint8Array): string {
  const text = btoa(String.fromCharCode(...bytes));
  return text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
