import { describe, expect, test } from "bun:test";

import {
  CODE_LIMITS_WINDOW_MS,
  CODES_PER_DAY,
  decideRefresh,
  hasCodesLeft,
  isCoolingDown,
  isOpenCode,
  mayTryCode,
  TRIES_PER_CODE,
  coversScopes,
} from "../../../src/auth/decide.ts";
import { addMs } from "../../../src/lib/clock.ts";

describe("the number of codes a day", () => {
  test.each([
    [CODES_PER_DAY - 1, 0, true],
    [CODES_PER_DAY, 0, false],
    [CODES_PER_DAY, CODE_LIMITS_WINDOW_MS - 1, false],
    [CODES_PER_DAY, CODE_LIMITS_WINDOW_MS, true],
  ])("after %d codes %d ms ago allows another one: %p", (count, ms, left) => {
    expect(hasCodesLeft({ ...none, issuedAt: times(count, ms) }, now)).toBe(left);
  });
});

describe("the cooldown", () => {
  test.each([
    [undefined, false],
    [0, true],
    [59_999, true],
    [60_000, false],
  ])("after a code that was issued %p ms ago still runs: %p", (ms, holds) => {
    const issuedAt = ms === undefined ? [] : [before(ms)];
    expect(isCoolingDown({ ...none, issuedAt }, now, 60)).toBe(holds);
  });

  test("of 0 s never runs", () => {
    expect(isCoolingDown({ ...none, issuedAt: [now] }, now, 0)).toBe(false);
  });
});

describe("a code", () => {
  const code = { tries: 0, issuedAt: now, expiresAt: addMs(now, 1), consumedAt: null };

  test.each([
    ["fresh", {}, {}, true],
    ["expired this moment", { expiresAt: now }, {}, false],
    ["consumed", { consumedAt: now }, {}, false],
    ["tried four times", { tries: TRIES_PER_CODE - 1 }, {}, true],
    ["tried five times", { tries: TRIES_PER_CODE }, {}, false],
    ["after 19 wrong ones from here", {}, { wrongHereAt: times(19, 0) }, true],
    ["after 20 wrong ones from here", {}, { wrongHereAt: times(20, 0) }, false],
    ["after 49 wrong ones", {}, { wrongAt: times(49, 0) }, true],
    ["after 50 wrong ones", {}, { wrongAt: times(50, 0) }, false],
    ["after 50 at a known address", {}, { wrongAt: times(50, 0), isKnownAddress: true }, true],
    ["after 20 at a known address", {}, { wrongHereAt: times(20, 0), isKnownAddress: true }, false],
    [
      "after 50 wrong ones a day ago",
      {},
      {
        wrongAt: times(50, CODE_LIMITS_WINDOW_MS),
        wrongHereAt: times(20, CODE_LIMITS_WINDOW_MS),
      },
      true,
    ],
  ] as const)("(%s) may be tried: %p", (_, over, tried, may) => {
    const tries = { wrongAt: [], wrongHereAt: [], isKnownAddress: false, ...tried };
    expect(mayTryCode(tries, { ...code, ...over }, now)).toBe(may);
  });

  test("that does not exist is not open", () => {
    expect(isOpenCode(undefined, now)).toBe(false);
  });
});

describe("a refresh", () => {
  const token = {
    clientId: "c",
    scope: "reviews:read webhooks:read",
    expiresAt: addMs(now, 1),
    redeemedAt: null,
    signedInAt: new Date(0),
  };
  const asked = { clientId: "c", scopes: undefined };

  test.each([
    ["as it was", {}, {}, { kind: "redeem", scope: "reviews:read webhooks:read" }],
    ["by another client", {}, { clientId: "d" }, { kind: "refused" }],
    ["by no client", {}, { clientId: null }, { kind: "refused" }],
    ["expired this moment", { expiresAt: now }, {}, { kind: "refused" }],
    ["used this moment", { redeemedAt: now }, {}, { kind: "refused" }],
    ["used 10 s ago", { redeemedAt: before(10_000) }, {}, { kind: "refused" }],
    ["used more than 10 s ago", { redeemedAt: before(10_001) }, {}, { kind: "replayed" }],
    [
      "used by another client",
      { redeemedAt: before(10_001) },
      { clientId: "d" },
      { kind: "refused" },
    ],
    ["narrowed", {}, { scopes: ["reviews:read"] }, { kind: "redeem", scope: "reviews:read" }],
    ["widened", {}, { scopes: ["reviews:write"] }, { kind: "too_wide" }],
    ["widened to all", {}, { scopes: ["*"] }, { kind: "too_wide" }],
  ] as const)("(%s) gets the expected decision", (_, over, ask, decision) => {
    const decided = decideRefresh(
      { ...token, ...over },
      { ...asked, ...ask },
      { now, leewayS: 10, maxDays: null },
    );
    expect(decided).toEqual(decision);
  });

  test.each([
    [DAY_MS - 1, "redeem"],
    [DAY_MS, "refused"],
  ] as const)("%d ms after the sign-in with one day at most: %s", (ms, kind) => {
    const decided = decideRefresh({ ...token, signedInAt: before(ms) }, asked, {
      now,
      leewayS: 10,
      maxDays: 1,
    });
    expect(decided.kind).toBe(kind);
  });
});

describe("scopes", () => {
  test("coverRange the scopes that they contain, and * covers all of them", () => {
    expect(coversScopes(new Set(["reviews:read"]), ["reviews:read"])).toBe(true);
    expect(coversScopes(new Set(["reviews:read"]), ["reviews:write"])).toBe(false);
    expect(coversScopes(new Set(["*"]), ["reviews:write", "*"])).toBe(true);
    expect(coversScopes(new Set(["reviews:read"]), ["*"])).toBe(false);
  });
});

const DAY_MS = 86_400_000;
const now = new Date("2026-06-01T12:00:00.000Z");
const before = (ms: number) => addMs(now, -ms);
const times = (count: number, ms: number) => Array.from({ length: count }, () => before(ms));

const none = { issuedAt: [], wrongAt: [] };
