import { describe, expect, test } from "bun:test";

import {
  isOurNetwork,
  isUnreached,
  type PostResult,
  Reach,
} from "../../../../dispatcher/delivery/deliver.ts";

test.each([
  // lasts, hosts, partners, unreached, ours
  [false, 20, 10, 11, true],
  [false, 20, 10, 10, false],
  [false, 19, 10, 19, false],
  [false, 20, 9, 20, false],
  [false, 1_000, 500, 501, true],
  [true, 20, 10, 10, false],
  [true, 20, 10, 11, true],
  [true, 1, 1, 1, true],
  [true, 2, 2, 1, false],
])(
  "lasting %p, %i hosts of %i partners, %i unreached: ours %p",
  (...[lasts, hosts, partners, unreached, ours]) => {
    expect(isOurNetwork(lasts, { hosts, partners, unreached })).toBe(ours);
  },
);

const measured = { durationMs: 1, resent: false };
const failed = (
  errorCode: "dns" | "connect" | "tls" | "timeout" | "reset" | "blocked_address",
  reached: boolean,
): PostResult => ({
  kind: "failed",
  errorCode,
  detail: "",
  reached,
  ...measured,
});

describe("an attempt says something about our network", () => {
  test.each([
    [failed("dns", false), true],
    [failed("connect", false), true],
    [failed("tls", false), true],
    [failed("timeout", false), true],
    // The request was sent, so later timeouts and resets count.
    [failed("timeout", true), false],
    [failed("reset", true), false],
    [failed("tls", true), false],
    [failed("blocked_address", false), false],
    [{ kind: "unsent", detail: "", ...measured } satisfies PostResult, false],
  ])("%o: %p", (outcome, unreached) => {
    expect(isUnreached(outcome)).toBe(unreached);
  });
});

describe("of the last ten seconds", () => {
  const seen = (n: number, atMs: number, unreached = true) =>
    [`h${n}`, { atMs, partnerId: n % 10, unreached }] as const;

  test("the 20th host that cannot be reached makes it ours, and the answers of half of them theirs", () => {
    const reach = new Reach();
    for (let n = 0; n < 19; n++) expect(reach.note(...seen(n, n))).toBe(false);
    expect(reach.note(...seen(19, 19))).toBe(true);
    for (let n = 0; n < 9; n++) expect(reach.note(...seen(n, 20, false))).toBe(true);
    expect(reach.note(...seen(9, 20, false))).toBe(false);
  });

  test("older attempts do not count, but the state lasts until a host is reached", () => {
    const reach = new Reach();
    for (let n = 0; n < 19; n++) reach.note(...seen(n, 0));
    expect(reach.note(...seen(19, 10_000))).toBe(false);
    for (let n = 0; n < 20; n++) reach.note(...seen(n, 10_001));
    expect(reach.isOurs).toBe(true);
    expect(reach.note(...seen(0, 60_000))).toBe(true);
    expect(reach.note(...seen(1, 60_000, false))).toBe(false);
  });

  test("a host that fails again and again counts once", () => {
    const reach = new Reach();
    for (let n = 0; n < 100; n++) reach.note(...seen(n % 19, n));
    expect(reach.isOurs).toBe(false);
  });
});
