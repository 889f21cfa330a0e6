import { hmacSha256Hex } from "../../src/lib/hmac.ts";

/**
 * The value of `X-SVC-Signature` (`interface.md` 6.1). The key is the UTF-8 of the secret as it was
 * shown, not the bytes that its hex digits stand for (`decisions.md` 3).
 */
export function signBody(secret: string, body: string | Uint8Array): string {
  return `sha256=${hmacSha256Hex(secret, body)}`;
}
