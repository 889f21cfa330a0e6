import { describe, expect, test } from "bun:test";

import { keepsEntry, mayLeave, obstacleTo } from "../../../../dispatcher/delivery/sender.ts";
import { start, subscription } from "../../../support/actor.ts";

// An erasure that the actor has learnt of after the entry of a send was read (contract 10.8).
describe.each([
  ["the same number of erasures", { ...subscription }, false],
  ["one more erasure", { ...subscription, erasures: 1 }, true],
])("a send whose actor has settings with %s", (_, known, isErased) => {
  const actor = { stopping: false, subscription: known };

  test("begins or not", () => {
    const obstacle = obstacleTo({ readAt: start, subscription }, actor, {
      isSafe: true,
      now: start,
    });
    expect(obstacle).toBe(isErased ? "stopped" : undefined);
  });

  test("writes its first byte or not", () => {
    const holdings = { id: "D", safe: true };
    expect(mayLeave("D", { actor, holdings, subscription })).toBe(!isErased);
  });
});

test.each([
  [{}, true],
  [{ webhookUrl: "https://receiver.example/other", secret: "another" }, true],
  [{ ordering: "review" }, false],
  [{ pendingTestEventId: "T" }, false],
  [{ erasures: 1 }, false],
  // Its events that come before the entry were held when the entry was read.
  [{ inactiveAccounts: "{7}" }, false],
  // The entry was read without its number.
  [{ settledLimit: 3 }, false],
] as const)("a send that waited keeps its entry after the change %j: %p", (change, keeps) => {
  expect(keepsEntry(subscription, { ...subscription, ...change })).toBe(keeps);
  expect(keepsEntry({ ...subscription, ...change }, subscription)).toBe(keeps);
});

test("a send that has begun goes on when its subscription is disabled", () => {
  const actor = { stopping: false, subscription: undefined };
  expect(mayLeave("D", { actor, holdings: { id: "D", safe: true }, subscription })).toBe(true);
});
