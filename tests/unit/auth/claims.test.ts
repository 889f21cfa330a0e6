import { describe, expect, test } from "bun:test";

import { claimsMatch, claimsOf, readClaims } from "../../../src/auth/keys/key-ring.ts";

describe("the claims of a token", () => {
  test("contain the user, the service's own client, the scope and the expiry in whole seconds", () => {
    expect(claimsOf(row, "j")).toEqual({
      sub: "7",
      jti: "j",
      exp: nowS + 86_400,
      client_id: "reviewrelay",
      scope: "*",
      act: undefined,
    });
  });

  test("contain the OAuth client and the impersonator if there are any", () => {
    const clientId = "0b6c7f0e-1f3b-4a57-9c55-6d1f0d6a1a11";
    const claims = claimsOf({ ...row, clientId, impersonatorId: 3 }, "j");
    expect(claims).toMatchObject({ client_id: clientId, act: { sub: "3" } });
  });

  test("contain no expiry if the row has none", () => {
    expect(claimsOf({ ...row, expiresAt: null }, "j").exp).toBeUndefined();
  });
});

describe("reading a payload", () => {
  test("accepts the claims that the service signs", () => {
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
  ])("rejects a payload %s", (_, change) => {
    expect(readClaims({ ...payload, ...change }, now)).toBeUndefined();
  });

  test("accepts an iat that is 300 s ahead, because clocks differ", () => {
    expect(readClaims({ ...payload, iat: nowS + 300 }, now)).toBeDefined();
  });
});

describe("claims and the token's row", () => {
  const claims = claimsOf({ ...row, impersonatorId: 3 }, "j");

  test("match if every claim equals the row's", () => {
    expect(claimsMatch(claims, { ...row, impersonatorId: 3 })).toBe(true);
  });

  test.each([
    ["user", { userId: 8 }],
    ["client", { clientId: "0b6c7f0e-1f3b-4a57-9c55-6d1f0d6a1a11" }],
    ["scope", { scope: "reviews:read" }],
    ["impersonator", { impersonatorId: 4 }],
    ["end, by one second,", { expiresAt: new Date("2026-06-02T12:00:01.700Z") }],
    ["end, which the row lacks,", { expiresAt: null }],
  ])("do not match if the %s differs", (_, change) => {
    expect(claimsMatch(claims, { ...row, impersonatorId: 3, ...change })).toBe(false);
  });

  test("do not match if only one of them has an impersonator", () => {
    expect(claimsMatch(claims, row)).toBe(false);
    expect(claimsMatch(claimsOf(row, "j"), { ...row, impersonatorId: 3 })).toBe(false);
  });
});

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
