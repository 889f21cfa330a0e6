import { describe, expect, test } from "bun:test";

import { conditionOf, type StepCounts } from "../../../src/webhooks/stats.ts";

const NOW = new Date("2026-06-01T12:00:00Z");
const ago = (minutes: number) => new Date(NOW.getTime() - minutes * 60_000);
const QUIET = {
  quarantined: [],
  outageSince: null,
  consecutiveFailureCount: 0,
  blockedAttempts: 0,
  blockedSince: null,
  lastSuccessStartedAt: ago(1),
  steps: [],
};

/** Steps of 1,000 attempts with these percentages of successes. */
const steps = (...rates: number[]): StepCounts[] =>
  rates.map((rate) => ({ successes: rate * 10, failures: 1_000 - rate * 10 }));
const none = { successes: 0, failures: 0 };

describe("the condition by rates", () => {
  test.each([
    ["without attempts", [], "healthy"],
    ["at 95 %", steps(95, 95, 95), "healthy"],
    ["below 95 %", steps(94.9), "degraded"],
    ["with fewer than five failures", [{ successes: 0, failures: 4 }], "healthy"],
    ["with five failures", [{ successes: 5, failures: 5 }], "degraded"],
    ["at 50 %", steps(50), "degraded"],
    ["below 50 %", steps(49.9), "failing"],
    ["after a failing window below 75 %", steps(0, 0, 0, 74, 74, 74), "failing"],
    ["after a failing window at 75 %", steps(0, 0, 0, 75, 75, 75), "degraded"],
    ["after a failing window at 98 %", steps(0, 0, 0, 98, 98, 98), "healthy"],
    ["after a degraded window below 98 %", steps(90, 97.9, 97.9, 97.9), "degraded"],
    ["after a degraded window at 98 %", steps(90, 98, 98, 98), "healthy"],
    ["around 95 % after it was degraded once", steps(94, 94, 94, 96, 96, 96, 95), "degraded"],
    ["after a pause", [...steps(0), none, none, none], "failing"],
    ["with the failures of 15 minutes", [...steps(100, 0, 0), ...steps(100, 100)], "failing"],
  ] as const)("%s, while an event fails", (_, seen, condition) =>
    expect(conditionOf({ ...QUIET, consecutiveFailureCount: 1, steps: seen }, NOW)).toBe(condition),
  );

  test.each([
    [{}, "degraded"],
    [{ lastSuccessStartedAt: ago(16) }, "failing"],
    [{ consecutiveFailureCount: 1 }, "failing"],
    [{ blockedAttempts: 1, blockedSince: ago(2) }, "failing"],
  ] as const)("below 50 %% and with %p", (figures, condition) =>
    expect(conditionOf({ ...QUIET, ...figures, steps: steps(0) }, NOW)).toBe(condition),
  );
});

describe("the condition by events", () => {
  test.each([
    [{ consecutiveFailureCount: 5 }, "failing"],
    [{ consecutiveFailureCount: 4 }, "healthy"],
    [{ consecutiveFailureCount: 1, lastSuccessStartedAt: ago(15) }, "healthy"],
    [{ consecutiveFailureCount: 1, lastSuccessStartedAt: ago(15.1) }, "failing"],
    [{ consecutiveFailureCount: 1, lastSuccessStartedAt: null }, "failing"],
    [{ consecutiveFailureCount: 0, lastSuccessStartedAt: null }, "healthy"],
    [{ quarantined: [{}] }, "degraded"],
    [{ outageSince: ago(1) }, "degraded"],
    [{ outageSince: ago(1), consecutiveFailureCount: 5 }, "failing"],
    [{ quarantined: [{}], consecutiveFailureCount: 5 }, "failing"],
    [{ blockedAttempts: 1, blockedSince: ago(0.5) }, "healthy"],
    [{ blockedAttempts: 2, blockedSince: ago(0.5) }, "failing"],
    [{ blockedAttempts: 2, blockedSince: ago(1) }, "failing"],
    [{ blockedAttempts: 2, blockedSince: ago(1.1) }, "healthy"],
    [{ blockedAttempts: 2, blockedSince: ago(9), lastSuccessStartedAt: null }, "failing"],
  ] as const)("%p", (figures, condition) =>
    expect(conditionOf({ ...QUIET, ...figures }, NOW)).toBe(condition),
  );
});
