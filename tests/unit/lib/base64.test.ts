import { expect, test } from "bun:test";
import { randomBytes } from "node:crypto";

import { isBase64Url } from "../../../src/lib/encodings.ts";

test("accepts the base64url of any bytes, and with no other last character", () => {
  const alphabet = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code));
  for (let length = 1; length <= 300; length++) {
    const bytes = randomBytes(length);
    const text = bytes.toString("base64url");
    expect(isBase64Url(text)).toBe(true);
    const spellings = alphabet
      .map((last) => text.slice(0, -1) + last)
      .filter((one) => Buffer.from(one, "base64url").equals(bytes));
    expect(spellings.filter(isBase64Url)).toEqual([text]);
  }
  expect(isBase64Url("")).toBe(true);
});

test.each(["A", "AAAAA", "AB", "AAB", "AA==", "AAA=", "A A", "AA\n", "+/+/", "AAÄA"])(
  "%p is no base64url",
  (text) => {
    expect(isBase64Url(text)).toBe(false);
  },
);
