import { createHmac, timingSafeEqual } from "node:crypto";

/** `body` is the body exactly as received; `signature` is the header X-SVC-Signature, or undefined. */
export function isSigned(secret, body, signature) {
  const expected = `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
  const [given, wanted] = [Buffer.from(signature ?? ""), Buffer.from(expected)];
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}
