import { hmacSha256Hex } from "../../src/lib/hmac.ts";

/**
 * The hex digits in `X-SVC-Signature` (contract 7.1). The key is the UTF-8 of the secret as it was
 * shown, not the bytes that its hex digits stand for (contract 6.6).
 */
export function signBody(secret: string, body: string | Uint8Array): string {
  return hmacSha256Hex(secret, body);
}
