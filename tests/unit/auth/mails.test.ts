import { describe, expect, test } from "bun:test";

import { alertMail } from "../../../dispatcher/alerts/mail.ts";
import {
  codeMail,
  invitationMail,
  passwordChangedMail,
} from "../../../src/auth/passwords/mails.ts";
import { flagStatusMail, homeownerNotice } from "../../../src/intake/notices.ts";
import type { NewMail } from "../../../src/outbox/mail.ts";

const branding = {
  brand: "Stellar Reviews",
  primaryColor: "#112233",
  logoUrl: "https://partner.example/logo.png",
};
const ada = { name: "Ada", company: "Northwind", role: "partner_admin", branding } as const;

describe("the mail with a code", () => {
  test("has the code on a separate line and in its link, as its only six digits, and not in the subject", () => {
    const mail = codeMail(code, ada);
    expect(mail.subject).toBe("Your code to choose a new password");
    expect(mail.text.split("\n")).toContain("    012345");
    expect(mail.text).toContain(
      "Choose a new password:\n    https://reviews.example/dashboard/reset-password#email=a%40b.test&code=012345\n",
    );
    const numbers = `${mail.subject}${mail.text}${mail.html}`.match(/\d{6}/g);
    expect(new Set(numbers)).toEqual(new Set(["012345"]));
    expect(mail).toMatchObject({ kind: "otp", to: "a@b.test", expiresAt: code.expiresAt });
  });

  test.each([
    ["forgot_password", "choose a new password"],
    ["change_password", "change your password"],
    ["signup", "confirm your email address"],
  ] as const)("of type %s names its purpose: to %s", (type, purpose) => {
    expect(codeMail({ ...code, type }, undefined).text).toMatch(
      new RegExp(`Enter this code to ${purpose}[.,]`),
    );
  });

  test("that an operator sends names the support and not the user as its cause", () => {
    const mail = codeMail({ ...code, isByOperator: true }, ada);
    expect(mail.subject).toBe("Stellar Reviews support sent you a password reset");
    expect(mail.text).toContain("Stellar Reviews support sent you this email so that you can");
    expect(mail.text).not.toContain("was requested");
    expect(mail.html?.match(/<a /g)).toHaveLength(1);
  });

  test.each([
    [1, "1 minute"],
    [89, "1 minute"],
    [90, "2 minutes"],
    [600, "10 minutes"],
  ])("of a code that lives %d s says %p", (ttlS, minutes) => {
    expect(codeMail({ ...code, ttlS }, ada).text).toContain(`expires in ${minutes}.`);
  });
});

const changedPassword = (isSignedIn: boolean) =>
  passwordChangedMail(
    {
      to: "a@b.test",
      isSignedIn,
      requestContext: {
        requestId: "one",
        ip: "192.0.2.1",
        userAgent: "Firefox/120.0 Linux",
        headers: new Headers(),
      },
      serverRoot: "https://reviews.example",
      now: new Date("2026-06-01T12:00:00Z"),
    },
    ada,
  );

test.each([
  [true, "which is now signed in. All other sessions"],
  [false, "All your sessions and access tokens were ended"],
])("both parts of the mail about a password say where it was changed: %p", (isSignedIn, words) => {
  const { text, html } = changedPassword(isSignedIn);
  for (const part of [text, html])
    for (const fact of [words, "Firefox on Linux", "192.0.2.1", "2026-06-01 12:00:00 UTC"])
      expect(part).toContain(fact);
  expect(text).toContain("https://reviews.example/dashboard/reset-password#email=a%40b.test\n");
});

describe("the invitation", () => {
  const inviter = { name: "Pat Owner", email: "pat@northwind.example" };
  const link = "https://reviews.example/dashboard/welcome#invitation=abc";
  const expiresAt = new Date("2026-06-08T12:00:00Z");

  test("says who invites whom to what, and has one button", () => {
    const { subject, text, html } = invitationMail(
      { to: "a@b.test", inviter, link, expiresAt },
      ada,
    );
    expect(subject).toBe("Pat Owner invited you to Northwind on Stellar Reviews");
    expect(text).toStartWith(
      "Hello Ada,\n\nPat Owner (pat@northwind.example) invited you to join Northwind on Stellar Reviews as an admin.\n",
    );
    expect(text).toContain(`Accept the invitation:\n    ${link}\n`);
    expect(html?.match(/<a /g)).toHaveLength(1);
    for (const part of [text, html])
      expect(part).toContain("The link works once, until 2026-06-08 12:00:00 UTC.");
  });

  test("by an operator names the support of the brand", () => {
    const { subject, text } = invitationMail({ to: "a@b.test", inviter: undefined, link }, ada);
    expect(subject).toBe("Stellar Reviews support invited you to Northwind");
    expect(text).toContain("Stellar Reviews support invited you to join Northwind on Stellar");
  });

  test("names a company that has the name of its brand once", () => {
    const own = { ...ada, company: "Stellar Reviews" };
    const { subject, text } = invitationMail({ to: "a@b.test", inviter: undefined, link }, own);
    expect(subject).toBe("You are invited to Stellar Reviews");
    expect(text).toContain("You have been invited to join Stellar Reviews as an admin.");
    expect(text).toContain(`Sign in:\n    ${link}\n`);
  });

  test("makes no link of a name", () => {
    const name = "Win at https://evil.example\nnow";
    const mail = invitationMail({ to: "a@b.test", inviter: { ...inviter, name }, link }, ada);
    expect(mail.subject).toBe(
      "Win at https evil.example now invited you to Northwind on Stellar Reviews",
    );
    expect(mail.text).not.toContain("https://evil");
  });
});

const review = {
  reviewId: 42,
  storeName: "Alder East",
  accountName: "Alder Plumbing",
  siteName: "Google",
  rate: 2,
  reviewer: "Ada",
  responseBody: null,
  ...branding,
};
const config = { serverRoot: "https://reviews.example" };
const owner = { email: "a@b.test", name: "Ada", company: "Northwind", ...branding };
const mails: Readonly<Record<string, () => NewMail>> = {
  code: () => codeMail(code, ada),
  invitation: () =>
    invitationMail({ to: "a@b.test", inviter: undefined, link: config.serverRoot }, ada),
  "changed password": () => changedPassword(true),
  alert: () =>
    alertMail(
      [
        {
          kind: "disabled",
          subscriptionId: "one",
          label: "Production",
          webhookUrl: "https://partner.example/hook",
          raisedAt: code.expiresAt,
          cause: {},
        },
      ],
      owner,
      config,
    ),
  "notice to a reviewer": () => homeownerNotice("a@b.test", review),
  flag: () => flagStatusMail({ owner, status: "accepted" }, review, config),
};

test.each(Object.keys(mails))(
  "the mail of a white-labelled company has its name and its logo, and ours nowhere: %s",
  (name) => {
    const mail = mails[name]?.();
    expect(JSON.stringify(mail)).not.toMatch(/review ?relay/i);
    expect(mail?.sender).toBe("Stellar Reviews");
    expect(mail?.text).toContain("You get this email because");
    expect(mail?.text).toEndWith("\n\nStellar Reviews\n");
    expect(mail?.html).toContain(">Stellar Reviews<");
    // The logo is the only image, and no address in the mail tells who reads it.
    expect(mail?.html?.match(/<img [^>]*src="[^"]*"/g)).toEqual([
      expect.stringContaining('src="https://partner.example/logo.png"'),
    ]);
  },
);

const code = {
  to: "a@b.test",
  type: "forgot_password",
  code: "012345",
  expiresAt: new Date("2026-06-01T12:10:00Z"),
  ttlS: 600,
  isByOperator: false,
  serverRoot: "https://reviews.example",
} as const;
