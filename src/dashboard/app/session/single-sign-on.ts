/*
 * The browser's part of an SSO flow (authorization code with PKCE). The code in the callback address is
 * accepted only together with the verifier that this tab stored, so that an attacker cannot sign a user in
 * with a foreign code.
 */

/** State of an SSO flow, stored in this tab while the user is at the identity provider. */
interface PendingFlow {
  readonly verifier: string;
  readonly email: string;
  /** The value of the remember-me checkbox when the flow began. */
  readonly remember: boolean;
  /** The path that the user requested before the sign-in. */
  readonly path: string;
}

export type SsoCallback =
  | { readonly kind: "none" }
  | { readonly kind: "code"; readonly code: string; readonly flow: PendingFlow }
  /** A code arrived, but this tab has not started an SSO flow. */
  | { readonly kind: "unexpected" }
  | { readonly kind: "rejected"; readonly flow: PendingFlow | undefined };

/** Parses an SSO callback: the query of the address, and the state that this tab stored as JSON. */
export function readCallback(search: string, stored: string | null): SsoCallback {
  const params = new URLSearchParams(search);
  const flow = readFlow(stored);
  const code = params.get("code");
  if (params.has("error")) return { kind: "rejected", flow };
  if (code === null) return { kind: "none" };
  return flow === undefined ? { kind: "unexpected" } : { kind: "code", code, flow };
}

function readFlow(stored: string | null): PendingFlow | undefined {
  try {
    const { verifier, email, remember, path }: Record<string, unknown> = Object(
      JSON.parse(stored ?? "null"),
    );
    if (typeof verifier !== "string" || typeof email !== "string") return undefined;
    // Only a path of the dashboard is accepted, so that the callback is no open redirect.
    const isOwn = typeof path === "string" && /^\/dashboard(?:$|[/?])/.test(path);
    return { verifier, email, remember: remember === true, path: isOwn ? path : "/dashboard" };
  } catch {
    return undefined;
  }
}

const VERIFIER_BYTES = 32;

/** Creates a PKCE verifier and its challenge (RFC 7636, 4.1 and 4.2). */
export async function newChallenge(): Promise<{ verifier: string; challenge: string }> {
  const verifier = base64url(crypto.getRandomValues(new Uint8Array(VERIFIER_BYTES)));
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
  return { verifier, challenge: base64url(new Uint8Array(digest)) };
}

function base64url(bytes: Uint8Array): string {
  const text = btoa(String.fromCharCode(...bytes));
  return text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
