import { createHmac, timingSafeEqual } from "node:crypto";

/** `body` is the body exactly as received; give it the headers X-SVC-Signature and X-SVC-Signature-Previous. */
export function isSigned(secret, body, ...signatures) {
  const digest = createHmac("sha256", secret).update(body).digest("hex");
  const expected = Buffer.from(`sha256=${digest}`);
  return signatures.some((one) => {
    const given = Buffer.from(one ?? "");
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}
