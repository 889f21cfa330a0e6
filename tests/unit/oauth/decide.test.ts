import { describe, expect, test } from "bun:test";

import { decideRedemption, needsConsent } from "../../../src/oauth/decide.ts";
import type { AuthorizationCode } from "../../../src/oauth/model.ts";

describe("a redemption of an authorization code", () => {
  const rows: [what: string, Partial<AuthorizationCode>, Partial<typeof asked>, string][] = [
    ["that is right", {}, {}, "redeem"],
    ["without PKCE on both sides", { codeChallenge: null }, { challenge: undefined }, "redeem"],
    ["of a code that was used", { state: "redeemed" }, {}, "replayed"],
    ["of a used code, late", { state: "redeemed", expiresAt: now }, {}, "replayed"],
    ["of a used code by a stranger", { state: "redeemed" }, { clientId: "other" }, "refused"],
    ["of what is no code yet", { state: "consent" }, {}, "refused"],
    ["in the instant of the end", { expiresAt: now }, {}, "refused"],
    ["by another client", {}, { clientId: "other" }, "refused"],
    ["for another place", {}, { redirectUri: "https://app.example/CB" }, "refused"],
    ["with another verifier", {}, { challenge: "other" }, "refused"],
    ["without the verifier", {}, { challenge: undefined }, "refused"],
    ["with a verifier too many", { codeChallenge: null }, {}, "refused"],
  ];
  test.each(rows)("%s", (_, row, change, decision) => {
    const made = decideRedemption({ ...code, ...row }, { ...asked, ...change }, now);
    expect(made).toBe(decision as typeof made);
  });
});

test.each([
  ["confidential", "first-party", "http://127.0.0.1/cb", false],
  ["confidential", "first-party", "https://app.example/cb", false],
  ["public", "first-party", "https://app.example/cb", false],
  ["public", "first-party", "http://127.0.0.1/cb", true],
  ["public", "first-party", "com.example.app:/cb", true],
  ["confidential", "third-party", "https://app.example/cb", true],
])("a %s %s client at %s needs consent: %p", (secrecy, party, uri, needed) => {
  const client = { confidential: secrecy === "confidential", firstParty: party === "first-party" };
  expect(needsConsent(client, uri)).toBe(needed);
});

const now = new Date("2026-06-01T12:00:00Z");

const later = new Date("2026-06-01T12:01:00Z");

const code: AuthorizationCode = {
  secretHash: "hash",
  state: "issued",
  clientId: "client",
  userId: 1,
  redirectUri: "https://app.example/cb",
  codeChallenge: "challenge",
  scope: "*",
  issuedAt: now,
  expiresAt: later,
  familyId: null,
};

const asked = {
  clientId: "client",
  redirectUri: "https://app.example/cb",
  challenge: "challenge" as string | undefined,
};
