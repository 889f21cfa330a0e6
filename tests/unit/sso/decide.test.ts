import { describe, expect, test } from "bun:test";

import {
  candidateError,
  codeError,
  newcomerError,
  stateError,
  userError,
  consumesState,
} from "../../../src/sso/decide.ts";

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
  const newcomer = { email: "a@corp.test", emailVerified: true, domain: "corp.test" };
  test.each([
    [newcomer, undefined],
    [{ ...newcomer, email: null }, "no_email"],
    [{ ...newcomer, emailVerified: false }, "unverified_email"],
    [{ ...newcomer, domain: "other.test" }, "foreign_domain"],
    [{ ...newcomer, domain: "" }, "foreign_domain"],
  ] as const)("with the provider's statements %p ends with %p", (one, error) => {
    expect(newcomerError(one, one.domain === "corp.test")).toBe(error);
  });

  const user = { companyId: 1, isSuperAdmin: false, isCompanyActive: true, isLinked: false };
  test.each([
    [user, undefined],
    [undefined, "unknown_user"],
    [{ ...user, isSuperAdmin: true }, "super_admin"],
    [{ ...user, companyId: 2 }, "foreign_user"],
    [{ ...user, isCompanyActive: false }, "inactive_user"],
    [{ ...user, isLinked: true }, "other_subject"],
  ] as const)("with the user %p ends with %p", (one, error) => {
    expect(candidateError(one, 1)).toBe(error);
    // A linked user is checked by the same rules, except for the link.
    if (one !== undefined && !one.isLinked) expect(userError(one, 1)).toBe(error);
  });
});

const now = new Date("2026-06-01T12:00:00.000Z");
const later = new Date("2026-06-01T12:00:00.001Z");
