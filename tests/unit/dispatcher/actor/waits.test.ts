import { beforeEach, describe, expect, test } from "bun:test";

import type { Decision } from "../../../../dispatcher/actor/decide.ts";
import { MAX_TESTS } from "../../../../dispatcher/actor/state.ts";
import { DrivenActor, entry, kinds, later, load, sent, start } from "../../../support/actor.ts";

describe("the wake that an actor plans", () => {
  test.each([
    ["the first lane waits the shortest", [waiting(1, 60), waiting(2, 90), busy(3)]],
    ["the last lane waits the shortest", [waiting(1, 90), waiting(2, 60), busy(3)]],
  ])("is for the end of the shortest wait when %s", (_, entries) => {
    const effects = driven.loaded({ entries, settings: byReview });
    expect(effects).toContainEqual({ kind: "sleep", until: later(60) });
  });

  test("is planned once, and again only for an earlier instant", () => {
    driven.loaded({ entries: [busy(1), busy(2), waiting(3, 60)], settings: byReview });
    expect(driven.answer("review:1", retry(60))).toEqual([]);
    expect(driven.commit("review:1", retry(60))).toEqual([]);
    driven.answer("review:2", retry(30));
    expect(driven.commit("review:2", retry(30))).toContainEqual({
      kind: "sleep",
      until: later(30),
    });
  });

  test("is for the batch if that is due before every retry", () => {
    const settings = { ...byReview, nextBatchAt: later(30) };
    const effects = driven.loaded({ entries: [waiting(1, 60)], settings });
    expect(effects).toEqual([{ kind: "sleep", until: later(30) }, { kind: "drop" }]);
  });

  test.each([
    ["planned for a retry that is not due yet", 999, ["sleep", "drop"]],
    ["needless for a retry that is due already", 1_000, ["drop"]],
  ] as const)("is, when the last record of a stopped actor comes, %s", (_, ms, expected) => {
    driven.loaded({ entries: [entry(1)] });
    driven.tell({ kind: "stopped" });
    driven.answer("main", retry(1_000));
    driven.now = later(ms);
    expect(kinds(driven.commit("main", retry(1_000)))).toEqual([...expected]);
  });
});

describe("a lane that failed", () => {
  test.each([failed, retry(60)])(
    "stays halted, and does not wait yet, when the delivery before it is recorded: %o",
    (decision) => {
      driven.loaded({ entries: [entry(1), entry(2), entry(3)] });
      driven.answer("main");
      driven.answer("main", decision);
      expect(driven.commit("main")).toEqual([]);
    },
  );

  test("repeats an interrupted attempt, before the entries behind it", () => {
    driven.loaded({ entries: [entry(1), entry(2)] });
    const again = driven.end("main", { kind: "interrupted" });
    expect(sent(again)).toEqual([]);
    const request = load(again);
    expect(request.after).toBe(0);
    expect(sent(driven.show(request, { entries: [entry(1), entry(2)] }))).toEqual([1]);
  });

  test("repeats a send that was never begun, before the entries behind it", () => {
    driven.loaded({ entries: [entry(1), entry(2)] });
    const unsent = driven.tell({ kind: "unsent", lane: "main", isEnded: false });
    expect(sent(unsent)).toEqual([]);
    expect(sent(driven.show(load(unsent), { entries: [entry(1), entry(2)] }))).toEqual([1]);
  });

  test("sends nothing until a load shows that the subscription is active", () => {
    driven.loaded({ entries: [busy(1), entry(2)], settings: byReview });
    const ended = driven.tell({ kind: "unsent", lane: "review:1", isEnded: true });
    expect(driven.actor.subscription).toBeUndefined();
    expect(sent(ended)).toEqual([]);
    expect(sent(driven.show(load(ended), { entries: [busy(1)], settings: byReview }))).toEqual([1]);
  });

  test("is read again only after its earlier deliveries are recorded", () => {
    driven.loaded({ entries: [entry(1), entry(2)] });
    driven.answer("main");
    const effects = driven.tell({ kind: "unsent", lane: "main", isEnded: false });
    expect(kinds(effects)).toEqual(["recheck"]);
    expect(load(driven.commit("main")).after).toBe(0);
  });
});

describe("an endpoint is down", () => {
  test.each([
    ["when 256 reviews wait for a retry", 256, ["sleep"]],
    ["but not when 255 do", 255, ["load", "sleep"]],
  ] as const)("%s, whatever else is under way", (_, count, expected) => {
    const waits = Array.from({ length: count }, (__, n) => waiting(n + 2, 60_000));
    const effects = driven.loaded({ entries: [busy(1), ...waits], settings: byReview });
    expect(kinds(effects)).toEqual(["send", ...expected]);
  });
});

describe("a test event that waits", () => {
  test("is sent again when its wait is over", () => {
    driven.loaded({ entries: [entry(1)], tests: [probe(2)] });
    driven.end("test:2", retry(100));
    driven.now = later(100);
    expect(sent(driven.loaded({ tests: [probe(2, later(100))] }))).toEqual([2]);
  });

  test("does not void a load of the main lane that is under way", () => {
    driven.loaded({ entries: [entry(1)], tests: [probe(2)] });
    const request = load(driven.wake());
    driven.end("test:2", retry(100));
    driven.show(request, { entries: [entry(3)] });
    expect(sent(driven.answer("main"))).toEqual([3]);
  });

  test.each([
    ["makes room for others if it was due at once", null, 1],
    ["makes room for others if its wait was just over", start, 1],
    ["shows that there are no others if it still waits", later(1), 0],
  ])("%s, when another one is recorded", (_, dueAt, loads) => {
    const tests = Array.from({ length: MAX_TESTS - 1 }, (__, n) => probe(n + 1));
    driven.loaded({ tests: [...tests, probe(MAX_TESTS, dueAt)] });
    const effects = driven.end("test:1");
    expect(kinds(effects).filter((kind) => kind === "load")).toHaveLength(loads);
  });

  test("is not looked for when an entry of the main lane is recorded", () => {
    const tests = Array.from({ length: MAX_TESTS }, (_, n) => probe(n + 2));
    driven.loaded({ entries: [entry(1)], tests });
    expect(kinds(driven.end("main"))).not.toContain("load");
  });
});

const failed: Decision = { kind: "failed" };
const retry = (delayMs: number): Decision => ({ kind: "retry", delayMs });

const waiting = (sequence: number, ms: number) =>
  entry(sequence, { reviewId: sequence, attempt: 2, dueAt: later(ms) });

const busy = (sequence: number) => entry(sequence, { reviewId: sequence });

const byReview = { ordering: "review" } as const;

const probe = (sequence: number, dueAt: Date | null = null) =>
  entry(sequence, { isTest: true, dueAt });

let driven: DrivenActor;

beforeEach(() => {
  driven = new DrivenActor();
});
