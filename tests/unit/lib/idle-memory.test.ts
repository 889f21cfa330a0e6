import { expect, test } from "bun:test";

import { systemClock } from "../../../src/lib/clock.ts";
import { collectWhenCrowded, collectWhenIdle } from "../../../src/lib/idle-memory.ts";

test("an idle process collects once after a burst", async () => {
  const looks = [
    { resident: 100, idle: true },
    { resident: 300, idle: false },
    { resident: 300, idle: true },
    { resident: 110, idle: true },
    { resident: 110, idle: true },
  ];
  expect(await collections(looks)).toEqual([2]);
});

test("an idle process collects only after growth of more than a quarter", async () => {
  const grownTo = (resident: number) => [
    { resident: 100, idle: true },
    { resident, idle: true },
  ];
  expect(await collections(grownTo(125))).toEqual([]);
  expect(await collections(grownTo(126))).toEqual([1]);
});

test("the memory after a collection is the new baseline", async () => {
  const looks = [
    { resident: 100, idle: true },
    { resident: 200, idle: true },
    { resident: 180, idle: true },
    { resident: 220, idle: true },
    { resident: 230, idle: true },
  ];
  expect(await collections(looks)).toEqual([1, 4]);
});

const MIB = 2 ** 20;

test("a crowded process collects once it exceeds 200 MB and has grown by a tenth", async () => {
  const stop = new AbortController();
  const looks = [
    { resident: 60, crowded: true },
    { resident: 120, crowded: true },
    { resident: 250, crowded: true },
    { resident: 200, crowded: true },
    { resident: 210, crowded: true },
    { resident: 225, crowded: true },
    { resident: 400, crowded: false },
    { resident: 300, crowded: true },
  ];
  const collected: number[] = [];
  let at = -1;
  const sleep = async () => {
    at += 1;
    if (at === looks.length) stop.abort();
  };
  await collectWhenCrowded(
    {
      clock: { ...systemClock, sleep },
      memory: {
        residentBytes: () => (looks[at]?.resident ?? 0) * MIB,
        collect: () => void collected.push(at),
      },
      isCrowded: () => looks[at]?.crowded ?? false,
    },
    stop.signal,
  );
  expect(collected).toEqual([2, 5, 7]);
});

/**
 * Resident memory at the start and at each check after it, and whether the process is idle then. A collection leaves
 * 100.
 */
async function collections(
  looks: readonly { resident: number; idle: boolean }[],
): Promise<number[]> {
  const stop = new AbortController();
  const collected: number[] = [];
  let at = 0;
  await collectWhenIdle(
    {
      clock: {
        ...systemClock,
        sleep: async () => {
          at += 1;
          if (at === looks.length) stop.abort();
        },
      },
      memory: {
        residentBytes: () => looks[at]?.resident ?? 0,
        collect: () => void collected.push(at),
      },
      isIdle: () => looks[at]?.idle ?? false,
    },
    stop.signal,
  );
  return collected;
}
