import { createHmac, timingSafeEqual } from "node:crypto";

/**
 * Checks whether one of the signatures is valid. `body` contains the raw bytes as received; `signatures` are the
 * headers X-SVC-Signature and X-SVC-Signature-Previous, or undefined.
 */
export function isSigned(
  secret: string,
  body: Uint8Array | string,
  ...signatures: readonly (string | undefined)[]
): boolean {
  const digest = createHmac("sha256", secret).update(body).digest("hex");
  const expected = Buffer.from(`sha256=${digest}`);
  return signatures.some((one) => {
    const given = Buffer.from(one ?? "");
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}
