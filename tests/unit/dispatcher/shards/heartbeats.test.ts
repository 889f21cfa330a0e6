import { beforeEach, expect, test } from "bun:test";

import { LEASE_TTL_MS } from "../../../../dispatcher/shards/leases.ts";
import { Heartbeats } from "../../../../dispatcher/shards/undertaker.ts";

let heartbeats: Heartbeats;
let nowMs: number;
beforeEach(() => {
  heartbeats = new Heartbeats();
  nowMs = 0;
});

/** Looks after so many ms at dispatchers that were renewed at these times, by whatever clock; answers the dead. */
function look(afterMs: number, renewed: Record<string, number>, tookMs = 0): string[] {
  nowMs += afterMs;
  const rows = Object.entries(renewed).map(([id, ms]) => ({ id, renewedAt: new Date(ms) }));
  const askedMs = nowMs;
  nowMs += tookMs;
  return heartbeats.look(rows, { askedMs, answeredMs: nowMs }).map(({ id }) => id);
}

test("who does not move for the TTL is dead, and not a moment earlier", () => {
  look(0, { A: 1, B: 1 });
  for (let ms = 1_000; ms < LEASE_TTL_MS; ms += 1_000)
    expect(look(1_000, { A: 1, B: ms })).toEqual([]);
  expect(look(499, { A: 1, B: 9 })).toEqual([]);
  expect(look(1, { A: 1, B: 10 })).toEqual(["A"]);
});

test("a step of the clock of Postgres ends no lease, in either direction", () => {
  for (const at of [0, 1_000, 3_602_000, 3_603_000, 4_000, 5_000, 6_000, 7_000])
    expect(look(1_000, { A: at, B: at + 1 })).toEqual([]);
});

test("a look that comes late begins anew, because nobody may have reached Postgres meanwhile", () => {
  look(0, { A: 1 });
  look(1_000, { A: 1 });
  expect(look(8_000, { A: 1 })).toEqual([]);
  expect(look(2_000, { A: 1 })).toEqual([]);
  expect(look(2_000, { A: 1 })).toEqual(["A"]);
});

test("the time counts from the first answer to the last question", () => {
  look(0, { A: 1 }, 1_500);
  look(500, { A: 1 });
  look(1_500, { A: 1 });
  expect(look(1_499, { A: 1 })).toEqual([]);
  expect(look(1, { A: 1 })).toEqual(["A"]);
});
