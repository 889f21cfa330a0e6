import { createHash } from "node:crypto";

import { describe, expect, test } from "bun:test";

import { newChallenge, readCallback } from "../../../src/dashboard/app/session/single-sign-on.ts";

describe("an SSO callback", () => {
  test("is accepted with the flow that this tab started", () => {
    expect(readCallback("?code=abc", kept)).toEqual({ kind: "code", code: "abc", flow });
  });

  test.each([null, "", "null", "[]", "{}", "no json", '{"verifier":1,"email":"a@b"}'])(
    "a code is a stray one where the tab kept %p",
    (nothing) => {
      expect(readCallback("?code=abc", nothing)).toEqual({ kind: "unexpected" });
    },
  );

  test("is rejected if it has an error, even beside a code", () => {
    expect(readCallback("?code=abc&error=sso_failed", kept)).toEqual({ kind: "rejected", flow });
    expect(readCallback("?error=sso_failed", null)).toEqual({ kind: "rejected", flow: undefined });
  });

  test("without code and error is no callback, even with a stored flow", () => {
    expect(readCallback("", kept)).toEqual({ kind: "none" });
    expect(readCallback("?state=active", kept)).toEqual({ kind: "none" });
  });

  test.each([
    "https://evil.example/dashboard",
    "//evil.example",
    "/dashboards",
    "/docs",
    7,
    undefined,
  ])("with the stored path %p leads to the dashboard's start", (path) => {
    const ssoCallback = readCallback("?code=abc", JSON.stringify({ ...flow, path }));
    expect(ssoCallback).toMatchObject({ kind: "code", flow: { path: "/dashboard" } });
  });

  test.each(["/dashboard", "/dashboard/webhooks/7?tab=attempts", "/dashboard?state=held"])(
    "the way on to %p is kept",
    (path) => {
      const ssoCallback = readCallback("?code=abc", JSON.stringify({ ...flow, path }));
      expect(ssoCallback).toMatchObject({ flow: { path } });
    },
  );

  test("a challenge is the S256 of its verifier, and each flow has a new one", async () => {
    const [one, other] = [await newChallenge(), await newChallenge()];
    expect(one.verifier).toMatch(/^[\w-]{43}$/);
    expect(one.verifier).not.toBe(other.verifier);
    expect(one.challenge).toBe(createHash("sha256").update(one.verifier).digest("base64url"));
  });
});

const flow = {
  verifier: "v".repeat(43),
  email: "ada@corp.test",
  remember: true,
  path: "/dashboard/keys",
};

const kept = JSON.stringify(flow);
