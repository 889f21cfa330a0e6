import { describe, expect, test } from "bun:test";

import { emailDigest, emailDomain, normaliseEmail } from "../../../src/auth/email.ts";

describe("an email", () => {
  test.each([
    ["  A@B.Test ", "a@b.test"],
    ["a\0@b.test", "a\uFFFD@b.test"],
    ["ÄÖ@Ü.test", "äö@ü.test"],
  ])("%p is looked up as %p", (typed, stored) => {
    expect(normaliseEmail(typed)).toBe(stored);
  });

  test.each([
    ["a@b.test", "b.test"],
    ["a@b.test.", "b.test"],
    [`"a@x"@b.test`, "b.test"],
    ["a@bücher.test", "xn--bcher-kva.test"],
    ["nobody", ""],
    ["a@", ""],
    ["a@b c", ""],
  ])("%p belongs to the domain %p", (email, domain) => {
    expect(emailDomain(email)).toBe(domain);
  });

  test("is kept as a digest of 256 bits", () => {
    expect(emailDigest("a@b.test")).toMatch(/^[0-9a-f]{64}$/);
  });
});
