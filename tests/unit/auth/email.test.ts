import { describe, expect, test } from "bun:test";

import { emailDigest } from "../../../src/auth/email.ts";
import { emailDomain, normalEmail, spellingOf } from "../../../src/lib/email.ts";

describe("an email", () => {
  test.each([
    ["  A@B.Test ", "a@b.test"],
    ["a\0@b.test", "a\uFFFD@b.test"],
    ["ÄÖ@Ü.test", "äö@ü.test"],
  ])("%p is stored as %p", (typed, stored) => {
    expect(spellingOf(typed)).toBe(stored);
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

  test.each([
    ["Ada@ＥＸＡＭＰＬＥ。Test", "ada@example.test"],
    ["a@BÜCHER.test", "a@xn--bcher-kva.test"],
    ["a@xn--bcher-kva.test", "a@xn--bcher-kva.test"],
    ["e\u0301@b.test", "\u00e9@b.test"],
    ["a@b.test", "a@b.test"],
    ["a@ex%41mple.test", "a@ex%41mple.test"],
    ["a@bücher.test/b.test", "a@bücher.test/b.test"],
    ["nobody", "nobody"],
  ])("%p has the normal form %p, which has itself", (typed, normal) => {
    expect(normalEmail(typed)).toBe(normal);
    expect(normalEmail(normal)).toBe(normal);
    expect(emailDigest(typed)).toBe(emailDigest(normal));
  });
});
