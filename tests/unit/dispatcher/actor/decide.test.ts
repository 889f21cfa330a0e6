import { describe, expect, test } from "bun:test";

import {
  decideNext,
  nextBatchAt,
  type PostResultKind,
  postponeMs,
} from "../../../../dispatcher/actor/decide.ts";

describe("an attempt", () => {
  for (const [ending, row] of Object.entries(TABLE) as [PostResultKind, readonly unknown[]][])
    row.forEach((expected, i) =>
      test(`number ${i + 1} that is ${ending} means ${JSON.stringify(expected)}`, () => {
        expect<unknown>(decideNext(ending, { attempt: i + 1, retryDelaysMs })).toEqual(expected);
      }),
    );
});

test("the fourth failure is permanent, however many delays there are", () => {
  const delays = [1, 2, 3, 4];
  expect(decideNext("failed", { attempt: 4, retryDelaysMs: delays })).toEqual(failed);
});

describe("the next batch", () => {
  const dueAt = new Date("2026-06-01T12:00:00.000Z");
  const hour = 3_600_000;
  const at = (ms: number) => new Date(dueAt.getTime() + ms);
  const table: [title: string, nowMs: number, expectedMs: number][] = [
    ["is one interval after a dispatch on time", 0, hour],
    ["stays on the grid after a late dispatch", hour - 1, hour],
    ["merges missed ticks into one", 5 * hour, 6 * hour],
    ["is in the future when the clock went back", -10 * hour, hour],
  ];
  for (const [title, nowMs, expectedMs] of table)
    test(title, () => expect(nextBatchAt(dueAt, hour, at(nowMs))).toEqual(at(expectedMs)));
});

test("a failure of our own is followed by a wait of 1 s, twice as long each time, and never over 30 s", () => {
  expect([0, 1, 2, 3, 4, 5, 6, 2_000].map(postponeMs)).toEqual([
    1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000,
  ]);
});

const after = (delayMs: number) => ({ kind: "retry", delayMs }) as const;
const delivered = { kind: "delivered" } as const;
const failed = { kind: "failed" } as const;
const interrupted = { kind: "interrupted" } as const;

/** The decisions after attempts 1, 2, 3 and 4, by result (contract 7.7). */
const TABLE: Record<PostResultKind, readonly unknown[]> = {
  accepted: [delivered, delivered, delivered, delivered],
  rejected: [after(60_000), after(300_000), after(1_800_000), failed],
  failed: [after(60_000), after(300_000), after(1_800_000), failed],
  gone: [failed, failed, failed, failed],
  aborted: [interrupted, interrupted, interrupted, interrupted],
};

const retryDelaysMs = [60_000, 300_000, 1_800_000];
