import { describe, expect, test } from "bun:test";

import { codeMail, passwordChangedMail } from "../../../src/auth/passwords/mails.ts";

describe("the mail with a code", () => {
  test("has the code on a separate line, as its only six digits, and not in the subject", () => {
    const mail = codeMail(code, null);
    expect(mail.subject).toBe("ReviewRelay: Your code to choose a new password");
    expect(mail.text.split("\n")).toContain("    012345");
    expect(`${mail.subject}${mail.text}`.match(/\d{6}/g)).toEqual(["012345"]);
    expect(mail.html).toBeUndefined();
    expect(mail).toMatchObject({ kind: "otp", to: "a@b.test", expiresAt: code.expiresAt });
  });

  test.each([
    ["forgot_password", "choose a new password"],
    ["change_password", "change your password"],
    ["signup", "confirm your email address"],
  ] as const)("of type %s names its purpose: to %s", (type, purpose) => {
    expect(codeMail({ ...code, type }, null).text).toContain(`Enter this code to ${purpose}.`);
  });

  test.each([
    [1, "1 minute"],
    [89, "1 minute"],
    [90, "2 minutes"],
    [600, "10 minutes"],
  ])("of a code that lives %d s says %p", (ttlS, minutes) => {
    expect(codeMail({ ...code, ttlS }, null).text).toContain(`expires in ${minutes}.`);
  });
});

describe("the tenant's name", () => {
  test("is the sender's", () => {
    const mail = passwordChangedMail("a@b.test", `A & <b>"Z"</b>`);
    expect(mail.subject).toBe(`A & <b>"Z"</b>: Your password was changed`);
    expect(mail.text).toEndWith(`A & <b>"Z"</b>\n`);
  });
});

const code = {
  to: "a@b.test",
  type: "forgot_password",
  code: "012345",
  expiresAt: new Date("2026-06-01T12:10:00Z"),
  ttlS: 600,
} as const;
