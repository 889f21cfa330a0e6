/*
 * Browser part of an SSO flow (authorization code with PKCE). The API accepts the code in the callback address only
 * together with the verifier that this tab stored. Without this check, an attacker could sign a user in with the
 * attacker's code.
 */

/** State of an SSO flow, stored in this tab while the user signs in at the identity provider. */
interface PendingFlow {
  readonly verifier: string;
  readonly email: string;
  /** Value of the remember-me checkbox when the SSO flow started. */
  readonly remember: boolean;
  /** Path that the user requested before the sign-in; the page opens there after the sign-in. */
  readonly path: string;
}

export type SsoCallback =
  | { readonly kind: "none" }
  | { readonly kind: "code"; readonly code: string; readonly flow: PendingFlow }
  /** The callback contains a code, but this tab has not started an SSO flow. */
  | { readonly kind: "unexpected" }
  | { readonly kind: "rejected"; readonly flow: PendingFlow | undefined };

/**
 * Parses an SSO callback from the query of the address and the JSON state that this tab stored when the flow
 * started.
 */
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
    const saved: Partial<Record<keyof PendingFlow, unknown>> | null = JSON.parse(stored ?? "null");
    const { verifier, email, remember, path } = saved ?? {};
    if (typeof verifier !== "string" || typeof email !== "string") return undefined;
    // Accepts only paths of the dashboard, so that the SSO callback cannot serve as an open redirect.
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
