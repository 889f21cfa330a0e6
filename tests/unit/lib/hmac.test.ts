import { expect, test } from "bun:test";
import { createHmac } from "node:crypto";

import { hmacSha256Hex } from "../../../src/lib/secrets.ts";

test("equals the HMAC of node:crypto for keys of any length and any text or bytes", () => {
  const keys = ["k", "Zoë 🦊", "x".repeat(64), "x".repeat(65), "ü".repeat(40)];
  const texts = ["", "plain", "Zoë 🦊", "\ud800", "\0", "日本".repeat(5_000)];
  for (const key of keys)
    for (const text of texts) {
      const expected = createHmac("sha256", key).update(text).digest("hex");
      expect(hmacSha256Hex(key, text)).toBe(expected);
      expect(hmacSha256Hex(key, new TextEncoder().encode(text))).toBe(expected);
    }
});
