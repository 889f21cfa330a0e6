import { expect, test } from "bun:test";

import { CHECKS_AT_ONCE, sortChecks } from "../../../../dispatcher/delivery/check.ts";
import { addMs } from "../../../../src/lib/clock.ts";

const NOW = new Date("2026-06-01T12:00:00.000Z");

test("16 checks run at the same time; the oldest pending ones come next", () => {
  const due = (running: number, pending: number) =>
    sortChecks([...open(running, "running"), ...open(pending, "pending")], NOW).due;
  expect(due(0, 20)).toEqual(open(CHECKS_AT_ONCE, "pending").map(({ id }) => id));
  expect(due(CHECKS_AT_ONCE - 1, 3)).toEqual(["pending-0"]);
  expect(due(CHECKS_AT_ONCE, 3)).toEqual([]);
  expect(due(CHECKS_AT_ONCE + 1, 3)).toEqual([]);
});

test("a check is lost after five minutes, and its place is free", () => {
  const begun = (ms: number) => open(CHECKS_AT_ONCE, "running", addMs(NOW, -ms));
  const [first] = open(1, "pending");
  const sorted = (ms: number) => sortChecks([...begun(ms), ...open(1, "pending")], NOW);
  expect(sorted(300_000)).toEqual({ lost: [], due: [] });
  expect(sorted(300_001)).toEqual({
    lost: begun(300_001).map(({ id }) => id),
    due: [String(first?.id)],
  });
});

function open(count: number, state: "pending" | "running", startedAt = NOW) {
  return Array.from({ length: count }, (_, i) => ({
    id: `${state}-${i}`,
    state,
    startedAt: state === "running" ? startedAt : null,
  }));
}
