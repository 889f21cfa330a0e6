import { describe, expect, test } from "bun:test";

import { isOurs, LONGEST_OUTAGE_MS, Reach } from "../../../../dispatcher/delivery/reach.ts";
import type { OwnPart } from "../../../../dispatcher/http/failure.ts";

test.each([
  // part, proved, lasts, hosts, partners, ours
  ["machine", true, false, 0, 0, true],
  ["proxy", true, false, 0, 0, true],
  ["policy", true, false, 9, 9, false],
  ["policy", false, false, 1, 1, true],
  ["policy", false, false, 0, 0, false],
  ["policy", false, true, 0, 0, true],
  ["names", false, false, 2, 2, false],
  ["names", false, false, 3, 3, true],
  ["names", true, false, 100, 100, false],
  ["network", false, false, 100, 2, false],
  ["network", false, false, 2, 100, false],
  ["network", false, false, 3, 3, true],
  ["network", false, true, 1, 1, true],
  ["network", true, true, 100, 100, false],
] as const)(
  "%s, proved %p, lasting %p, %i hosts of %i partners: ours %p",
  (...[part, isProved, lasts, hosts, partners, ours]) => {
    const seen = { beganInOutage: false, isProved, lasts, hosts, partners };
    expect(isOurs(part, seen)).toBe(ours);
    expect(isOurs(part, { ...seen, beganInOutage: true })).toBe(true);
  },
);

const measured = { durationMs: 1, resent: false };
const now = new Date(0);
const clock = { now: () => now };

/** Attempts at destinations of a partner each; `took` is the time of the attempt in ms. */
function attempts() {
  const reach = new Reach();
  const at = (n: number, endedMs: number, took = 0) => ({
    host: `h${n}`,
    partnerId: n,
    startedMs: endedMs - took,
    endedMs,
  });
  return {
    reach,
    fails(n: number, ms: number, fault: OwnPart = "network", took = 0) {
      const failed = { kind: "failed", errorCode: "connect", detail: "", fault } as const;
      return reach.note({ ...failed, ...measured }, at(n, ms, took), clock);
    },
    /** An attempt that fails by a look-up that was made at `rememberedMs`. */
    remembers(n: number, ms: number, rememberedMs: number, isAnswered = false) {
      const dns = { kind: "failed", errorCode: "dns", detail: "", rememberedMs } as const;
      const evidence = isAnswered ? { works: ["names"] as const } : { fault: "names" as const };
      return reach.note({ ...dns, ...evidence, ...measured }, at(n, ms), clock);
    },
    works(n: number, ms: number, works: readonly OwnPart[] = ["network"]) {
      const refused = { kind: "failed", errorCode: "connect", detail: "", works } as const;
      return reach.note({ ...refused, ...measured }, at(n, ms), clock);
    },
  };
}

describe("whose failure it is", () => {
  test("a destination that refuses proves the network for all others", () => {
    const { fails, works } = attempts();
    for (let n = 0; n < 100; n++) {
      works(1_000, n * 100);
      expect(fails(n, n * 100 + 50)).toBeUndefined();
    }
  });

  test("what fails for everything from the start is ours from the third destination on, until one is reached", () => {
    const { fails, works } = attempts();
    expect([fails(1, 0), fails(2, 1)]).toEqual([undefined, undefined]);
    for (let n = 3; n < 100; n++) expect(fails(n, n)).toBe("network");
    expect(fails(1, 3_600_000)).toBe("network");
    works(5, 3_600_001);
    expect(fails(1, 3_600_002)).toBeUndefined();
  });

  test("a failure of DNS that is remembered from an outage is still ours after it has ended", () => {
    const { fails, works, remembers } = attempts();
    for (let n = 1; n <= 4; n++) fails(n, 1_000, "names");
    works(5, 2_000, ["names"]);
    expect(remembers(4, 2_001, 1_000)).toBe("names");
    expect(remembers(4, 2_001, 2_000)).toBeUndefined();
    expect(fails(4, 2_001, "names")).toBeUndefined();
  });

  test("an answer of DNS that is remembered from before an outage does not end it", () => {
    const { fails, remembers } = attempts();
    for (let n = 1; n <= 4; n++) fails(n, 3_000, "names");
    remembers(5, 3_001, 2_999, true);
    expect(fails(4, 3_002, "names")).toBe("names");
    remembers(5, 3_003, 3_001, true);
    expect(fails(4, 3_004, "names")).toBeUndefined();
  });

  test("one destination or one partner alone fails by itself, however often", () => {
    const { fails, reach } = attempts();
    for (let n = 0; n < 100; n++) expect(fails(n % 2, n * 60_000)).toBeUndefined();
    for (let n = 0; n < 100; n++) {
      const failed = {
        kind: "failed",
        errorCode: "connect",
        detail: "",
        fault: "network",
      } as const;
      const made = { host: `own${n}`, partnerId: 0, startedMs: 0, endedMs: 6_000_000 };
      expect(reach.note({ ...failed, ...measured }, made, clock)).toBeUndefined();
    }
  });

  test("a proof counts for a second, and for a longer attempt from its start on", () => {
    const { fails, works } = attempts();
    works(0, 10_000);
    for (let n = 1; n < 9; n++) expect(fails(n, 11_000)).toBeUndefined();
    expect(fails(9, 25_000, "network", 15_000)).toBeUndefined();
    expect(fails(9, 25_001, "network", 15_000)).toBe("network");
  });

  test("an attempt that began in an outage and fails after its end is ours, and begins no other outage", () => {
    const { fails, works } = attempts();
    for (let n = 0; n < 4; n++) fails(n, n);
    works(9, 10_000);
    expect(fails(4, 20_000, "network", 10_001)).toBe("network");
    expect(fails(4, 20_000, "network", 10_000)).toBeUndefined();
    expect(fails(1, 24_000, "network", 15_000)).toBe("network");
    expect(fails(1, 40_000)).toBeUndefined();
    // A second outage lasts although an attempt of the first one fails meanwhile.
    for (let n = 5; n < 9; n++) fails(n, 41_000);
    expect(fails(10, 41_001, "network", 40_000)).toBe("network");
    expect(fails(11, 41_002)).toBe("network");
  });

  test("half the destinations in silence fail by themselves while the others answer now and then", () => {
    const { fails, works } = attempts();
    let ours = 0;
    for (let minute = 1; minute < 60; minute++) {
      works(1_000, minute * 60_000);
      for (let n = 0; n < 100; n++)
        if (fails(n, minute * 60_000 + 30_000, "network", 15_000)) ours += 1;
    }
    // At first nothing tells them apart from an outage; from the next proof on they are known to be down.
    expect(ours).toBe(98);
  });

  test("names that DNS does not answer beside others are their own failure, and a proof of the network says nothing about them", () => {
    const { fails, works } = attempts();
    works(0, 0, ["names"]);
    expect([1, 2, 3, 4].map((n) => fails(n, 500, "names"))).toEqual(
      [1, 2, 3, 4].map(() => undefined),
    );
    works(0, 10_000);
    expect([5, 6, 7].map((n) => fails(n, 10_000, "names")).at(-1)).toBe("names");
    works(0, 10_001, ["names"]);
    expect(fails(5, 20_000, "names")).toBeUndefined();
  });

  test("a proxy that refuses is ours, until it has let another destination pass", () => {
    const { fails, works } = attempts();
    expect(fails(1, 0, "policy")).toBe("policy");
    expect(fails(1, 60_000, "policy")).toBe("policy");
    works(2, 61_000, ["policy"]);
    expect(fails(1, 120_000, "policy")).toBeUndefined();
    expect(fails(2, 121_000, "policy")).toBe("policy");
    works(1, 122_000, ["policy"]);
    expect(fails(1, 190_000, "policy")).toBe("policy");
  });

  test.each([
    ["network", 3],
    ["names", 3],
    ["policy", 1],
  ] as const)(
    "of %s without any proof for a day, the destinations count from then on",
    (part, hosts) => {
      const { fails, works } = attempts();
      const all = (ms: number) =>
        Array.from({ length: hosts }, (_, n) => fails(n, ms, part)).filter(Boolean).length;
      for (let n = 1; n < hosts; n++) expect(fails(n, 0, part)).toBeUndefined();
      expect(all(1)).toBe(hosts);
      expect(all(LONGEST_OUTAGE_MS)).toBe(hosts);
      expect([all(LONGEST_OUTAGE_MS + 1), all(LONGEST_OUTAGE_MS * 9)]).toEqual([0, 0]);
      // Another outage is one again, once the part has worked for them.
      const laterMs = LONGEST_OUTAGE_MS * 10;
      for (let n = 0; n < hosts; n++) works(n, laterMs, [part]);
      for (let n = 1; n < hosts; n++) fails(n, laterMs + 60_000, part);
      expect(fails(0, laterMs + 60_000, part)).toBe(part);
    },
  );

  test.each(["machine", "proxy"] as const)("a failure of %s is never theirs", (part) => {
    const { fails, works } = attempts();
    for (let n = 0; n < 9; n++) {
      works(1, n, [part, "network"]);
      expect(fails(1, n, part)).toBe(part);
    }
  });
});

test("an outage lasts for a minute after the last failure of ours, and keeps its beginning", () => {
  const { fails, reach } = attempts();
  expect(reach.outage).toBeUndefined();
  fails(1, 0, "machine");
  reach.note(
    { kind: "unsent", detail: "", fault: "proxy", ...measured },
    { host: "h", partnerId: 1, startedMs: 0, endedMs: 50_000 },
    { now: () => new Date(50_000) },
  );
  expect(reach.outage).toEqual({ part: "proxy", since: now });
  expect(reach.settle(109_999)).toBe(false);
  expect(reach.settle(110_000)).toBe(true);
  expect([reach.outage, reach.settle(110_001)]).toEqual([undefined, false]);
});
