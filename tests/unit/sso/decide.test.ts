import { describe, expect, test } from "bun:test";

import {
  codeError,
  consumesState,
  newcomerError,
  newUserError,
  stateError,
} from "../../../src/sso/decide.ts";
import {
  domainOf,
  isSilent,
  isVerified,
  type Person,
  withUserinfo,
} from "../../../src/sso/person.ts";

const now = new Date("2026-06-01T12:00:00.000Z");
const later = new Date("2026-06-01T12:00:00.001Z");

describe("a state of an SSO flow", () => {
  const state = { connectionId: "A", browserHash: "b", expiresAt: later, consumedAt: null };
  const check = { connectionId: "A", browserHash: "b", now };

  test.each([
    ["is good", state, check, undefined],
    ["must be known", undefined, check, "unknown_state"],
    ["is good to its last millisecond", { ...state, expiresAt: now }, check, "expired_state"],
    ["counts once", { ...state, consumedAt: now }, check, "replayed_state"],
    ["counts at its own connection", state, { ...check, connectionId: "B" }, "mixed_up_provider"],
    ["needs its browser", state, { ...check, browserHash: "c" }, "foreign_browser"],
    ["needs a cookie", state, { ...check, browserHash: null }, "foreign_browser"],
    [
      "tells a foreign browser nothing of its use",
      { ...state, consumedAt: now },
      { ...check, browserHash: null },
      "foreign_browser",
    ],
  ] as const)("%s", (_, stored, request, error) => {
    expect(stateError(stored, request)).toBe(error);
  });

  test("is consumed by a callback in its own browser, and by no other", () => {
    expect([undefined, "mixed_up_provider"].map((one) => consumesState(one as never))).toEqual([
      true,
      true,
    ]);
    for (const other of ["foreign_browser", "replayed_state", "expired_state"] as const)
      expect(consumesState(other)).toBe(false);
  });
});

describe("a one-time code", () => {
  const code = { expiresAt: later, consumedAt: null, codeChallenge: null };
  test.each([
    ["is good without a challenge", code, null, undefined],
    ["is good with its challenge", { ...code, codeChallenge: "c" }, "c", undefined],
    ["counts once", { ...code, consumedAt: now }, null, "replayed_code"],
    ["is good to its last millisecond", { ...code, expiresAt: now }, null, "expired_code"],
    ["needs the verifier", { ...code, codeChallenge: "c" }, null, "wrong_verifier"],
    ["needs the right verifier", { ...code, codeChallenge: "c" }, "d", "wrong_verifier"],
    ["takes no verifier that was not announced", code, "c", "wrong_verifier"],
  ] as const)("%s", (_, stored, challenge, error) => {
    expect(codeError(stored, { challenge, now })).toBe(error);
  });
});

describe("the first sign-in through a provider", () => {
  const proved = { domain: "corp.test", provedAt: now };
  const domains = [proved, { domain: "unproved.test", provedAt: null }];
  const trusting = { domains, trustEmail: true };
  const careful = { domains, trustEmail: false };
  const email = "a@corp.test";
  test.each([
    [careful, { email: "a@other.test", emailVerified: true }, "foreign_domain"],
    [careful, { email: "a@b@other.test", emailVerified: true }, "foreign_domain"],
    [careful, { email: "corp.test", emailVerified: true }, "foreign_domain"],
    [trusting, { email: "A@CORP.test.", emailVerified: undefined }, undefined],
    [trusting, { email: "a@other.test", emailVerified: undefined }, "unverified_email"],
    [trusting, { email: "a@sub.corp.test", emailVerified: undefined }, "unverified_email"],
    [trusting, { email: "a@corp.test@other.test", emailVerified: undefined }, "unverified_email"],
    [trusting, { email: "a@other.test", emailVerified: true }, "foreign_domain"],
    [careful, { email: "a@sub.corp.test", emailVerified: true }, "foreign_domain"],
    [careful, { email: "a@corp.test, b@other.test", emailVerified: true }, "foreign_domain"],
  ] as const)("at the connection %j with the statements %j ends with %p", (one, said, error) => {
    const judged = newcomerError({
      hasEmail: said.email !== undefined,
      isVerified: isVerified(one, said),
      isOwnDomain: domainOf(one, said.email) !== undefined,
    });
    expect(judged).toBe(error);
  });

  const silent = { email: undefined, emailVerified: undefined, name: undefined };
  const said = { email, emailVerified: true, name: "Ann" };
  test.each([
    ["gives all that the id_token lacks", silent, said, said],
    [
      "verifies it in any spelling, and the id_token's is used",
      { ...silent, email: "A@corp.test", name: "Anna" },
      said,
      { email: "A@corp.test", emailVerified: true, name: "Anna" },
    ],
    [
      "verifies no other address",
      { ...silent, email: "b@corp.test" },
      said,
      { email: "b@corp.test", emailVerified: undefined, name: "Ann" },
    ],
    [
      "says nothing without an address",
      { ...silent, email },
      { ...said, email: undefined },
      { email, emailVerified: undefined, name: "Ann" },
    ],
    [
      "cannot be verified by the id_token",
      { ...silent, emailVerified: true },
      { ...said, emailVerified: undefined },
      { ...said, emailVerified: undefined },
    ],
    [
      "cannot lift a false of the id_token",
      { ...silent, emailVerified: false },
      said,
      { ...said, emailVerified: false },
    ],
    [
      "may say false",
      { ...silent, email },
      { ...said, emailVerified: false },
      { ...said, emailVerified: false },
    ],
  ] as readonly (readonly [string, Person, Person, Person])[])(
    "userinfo %s",
    (_, token, userinfo, whole) => {
      expect(withUserinfo(token, userinfo)).toEqual(whole);
    },
  );

  test.each([
    [said, false],
    [{ ...said, emailVerified: false }, false],
    [{ ...said, emailVerified: undefined }, true],
    [{ ...said, email: undefined }, true],
  ])("an id_token of %j asks userinfo: %p", (one, isAsked) => {
    expect(isSilent(one)).toBe(isAsked);
  });

  const newcomer = { isAddress: true, isName: true, isTaken: false };
  test.each([
    [{}, undefined],
    [{ isAddress: false, isName: false }, "bad_email"],
    [{ isName: false, isTaken: true }, "bad_name"],
    [{ isTaken: true }, "ambiguous_email"],
  ] as const)("a new user with %j ends with %p", (over, error) => {
    expect(newUserError({ ...newcomer, ...over })).toBe(error);
  });
});
