import { createHmac, timingSafeEqual } from "node:crypto";

/**
 * Checks a signature. `body` contains the raw bytes as received; `signature` is the header X-SVC-Signature, or
 * undefined.
 */
export function isSigned(
  secret: string,
  body: Uint8Array | string,
  signature: string | undefined,
): boolean {
  const expected = `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
  const [given, wanted] = [Buffer.from(signature ?? ""), Buffer.from(expected)];
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}
