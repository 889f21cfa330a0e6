import { describe, expect, test } from "bun:test";

import {
  CODE_LIMITS_WINDOW_MS,
  decideRefresh,
  isOpenCode,
  mayTryCode,
  retryAfterS,
  TRIES_PER_CODE,
} from "../../../src/auth/decide.ts";
import { addMs } from "../../../src/lib/clock.ts";

test.each([
  [1, 1],
  [1000, 1],
  [1001, 2],
  [60_000, 60],
])("with %d ms to go Retry-After is %d s", (ms, seconds) => {
  expect(retryAfterS(addMs(now, ms), now)).toBe(seconds);
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
});

const now = new Date("2026-06-01T12:00:00.000Z");
const before = (ms: number) => addMs(now, -ms);
const times = (count: number, ms: number) => Array.from({ length: count }, () => before(ms));
