import { expect, test } from "bun:test";

import { fairShare } from "../../../../dispatcher/shards/lease-queries.ts";
import { SHARDS } from "../../../../src/outbox/schedule.ts";

test("the shares of any number of dispatchers add up to all shards and differ by one at the most", () => {
  for (let count = 1; count <= SHARDS + 3; count++) {
    const ids = Array.from({ length: count }, (_, i) => `D${i}`);
    const shares = ids.map((id) => fairShare(ids, id));
    expect(shares.reduce((sum, share) => sum + share, 0)).toBe(SHARDS);
    expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1);
  }
});

test("a dispatcher without a lease has no share", () => {
  expect(fairShare(["A"], "B")).toBe(0);
});
