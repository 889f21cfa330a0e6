import { describe, expect, test } from "bun:test";

import { claimsMatch, claimsOf, readClaims } from "../../../src/auth/claims.ts";

const now = new Date("2026-06-01T12:00:00.700Z");
const nowS = Math.floor(now.getTime() / 1000);
const row = {
  userId: 7,
  clientId: null,
  scope: "*",
  impersonatorId: null,
  expiresAt: new Date("2026-06-02T12:00:00.700Z"),
};
const payload = {
  sub: "7",
  jti: "j",
  iat: nowS,
  exp: nowS + 86_400,
  client_id: "reviewrelay",
  scope: "*",
};

describe("the claims of a token", () => {
  test("name the user, the service's own client, the scope and the end in whole seconds", () => {
    expect(claimsOf(row, "j")).toEqual({
      sub: "7",
      jti: "j",
      exp: nowS + 86_400,
      client_id: "reviewrelay",
      scope: "*",
      act: undefined,
    });
  });

  test("name the OAuth client and the impersonator where there are any", () => {
    const clientId = "0b6c7f0e-1f3b-4a57-9c55-6d1f0d6a1a11";
    const claims = claimsOf({ ...row, clientId, impersonatorId: 3 }, "j");
    expect(claims).toMatchObject({ client_id: clientId, act: { sub: "3" } });
  });

  test("have no end where the row has none", () => {
    expect(claimsOf({ ...row, expiresAt: null }, "j").exp).toBeUndefined();
  });
});

describe("reading a payload", () => {
  test("takes what the service signs", () => {
    expect(readClaims(payload, now)).toEqual(claimsOf(row, "j"));
  });

  test.each([
    ["without sub", { sub: undefined }],
    ["with a number as sub", { sub: 7 }],
    ["without jti", { jti: undefined }],
    ["with a NUL in jti", { jti: "a\0b" }],
    ["without iat", { iat: undefined }],
    ["without client_id", { client_id: undefined }],
    ["without scope", { scope: undefined }],
    ["with a list as scope", { scope: ["*"] }],
    ["with a text as exp", { exp: "soon" }],
    ["with a text as act", { act: "3" }],
    ["with null as act", { act: null }],
    ["with an act that names nobody", { act: {} }],
    ["that is 301 s ahead", { iat: nowS + 301 }],
  ])("refuses one %s", (_, change) => {
    expect(readClaims({ ...payload, ...change }, now)).toBeUndefined();
  });

  test("takes one that is 300 s ahead: clocks differ", () => {
    expect(readClaims({ ...payload, iat: nowS + 300 }, now)).toBeDefined();
  });
});

describe("claims and their row", () => {
  const claims = claimsOf({ ...row, impersonatorId: 3 }, "j");

  test("agree when every one is the row's", () => {
    expect(claimsMatch(claims, { ...row, impersonatorId: 3 })).toBe(true);
  });

  test.each([
    ["user", { userId: 8 }],
    ["client", { clientId: "0b6c7f0e-1f3b-4a57-9c55-6d1f0d6a1a11" }],
    ["scope", { scope: "reviews:read" }],
    ["impersonator", { impersonatorId: 4 }],
    ["end, by one second,", { expiresAt: new Date("2026-06-02T12:00:01.700Z") }],
    ["end, which the row lacks,", { expiresAt: null }],
  ])("disagree when the %s is another", (_, change) => {
    expect(claimsMatch(claims, { ...row, impersonatorId: 3, ...change })).toBe(false);
  });

  test("disagree when only one of them acts for somebody else", () => {
    expect(claimsMatch(claims, row)).toBe(false);
    expect(claimsMatch(claimsOf(row, "j"), { ...row, impersonatorId: 3 })).toBe(false);
  });
});
