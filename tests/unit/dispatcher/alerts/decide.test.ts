import { describe, expect, test } from "bun:test";

import {
  decideAlerts,
  type Condition,
  type OpenIncident,
} from "../../../../dispatcher/alerts/decide.ts";

describe("without an incident", () => {
  test.each([
    [{}, []],
    [{ failures: 4 }, []],
    [{ failures: 5 }, ["failures_5"]],
    [{ failures: 9 }, ["failures_5"]],
    [{ failures: 10 }, ["failures_5", "failures_10"]],
    [{ failures: 17 }, ["failures_5", "failures_10"]],
    [{ failures: 18 }, ["failures_5", "failures_10", "failures_18"]],
    [{ isRetrying: true }, ["head_retrying"]],
    [{ oldestAt: ago(15) }, ["oldest_waiting"]],
    [{ oldestAt: ago(14.9) }, []],
    [
      { state: "disabled", failures: 20, disabledAt: at, oldestAt: ago(60) },
      ["failures_5", "failures_10", "failures_18", "disabled"],
    ],
  ] as const)("%j raises %j", (now, raised) => {
    expect(decide(now)).toEqual({
      ...(raised.length > 0 && { begins: { since: at, follows: false } }),
      raised: [...raised],
    });
  });

  test("disabling by hand raises nothing that was not reached before", () => {
    const byHand = { state: "disabled", disabledAt: null } as const;
    expect(decide(byHand)).toEqual({ raised: [] });
    expect(decide({ ...byHand, failures: 5 }).raised).toEqual(["failures_5"]);
    expect(decide({ ...byHand, oldestAt: ago(60) }, {})).toEqual({ raised: [] });
  });

  test("a deleted subscription raises no alert", () => {
    expect(decide({ state: "deleted", failures: 20, disabledAt: at })).toEqual({ raised: [] });
  });
});

describe("in an incident", () => {
  test("each kind is raised once", () => {
    const kinds = ["head_retrying", "failures_5"] as const;
    expect(decide({ failures: 9, isRetrying: true }, { failures: 5, kinds })).toEqual({
      raised: [],
    });
    expect(decide({ failures: 10, isRetrying: true }, { failures: 9, kinds })).toEqual({
      raised: ["failures_10"],
    });
  });

  test("a 2xx that came since ends it, and one before does not", () => {
    const open = { kinds: ["head_retrying"] } as const;
    expect(decide({ lastSuccessAt: ago(29) }, open)).toEqual({ ended: "recovered", raised: [] });
    expect(decide({ lastSuccessAt: ago(31) }, open)).toEqual({ raised: [] });
    expect(decide({ lastSuccessAt: ago(1), failures: 1 }, open)).toEqual({ raised: [] });
  });

  test("its recovery is reported if the incident was", () => {
    const closing = ["recovered"] as const;
    const told = { failures: 12, isTold: true, kinds: ["failures_5"] } as const;
    expect(decide({ lastSuccessAt: ago(1) }, { isTold: true })).toEqual({
      ended: "recovered",
      closing,
      raised: [],
    });
    expect(decide({ failures: 6, lastSuccessAt: ago(1) }, told)).toMatchObject({ closing });
    expect(decide({ failures: 6 }, told)).toMatchObject({ ended: "enabled" });
    expect(decide({ failures: 6 }, told).closing).toBeUndefined();
  });

  test("a run of failures that ended and began again is reported again", () => {
    const open = { failures: 12, kinds: ["failures_5", "failures_10"] } as const;
    expect(decide({ failures: 3, lastSuccessAt: ago(1) }, open)).toEqual({
      ended: "recovered",
      raised: [],
    });
    expect(decide({ failures: 6, lastSuccessAt: ago(1) }, open)).toEqual({
      ended: "recovered",
      begins: { since: at, follows: false },
      raised: ["failures_5"],
    });
  });

  test("other reviews that are delivered beside a head that waits end nothing", () => {
    const open = { failures: 1, kinds: ["head_retrying"] } as const;
    expect(decide({ isRetrying: true, lastSuccessAt: ago(1) }, open)).toEqual({ raised: [] });
  });

  test("an enable begins another one, which only a 2xx after the disabling ends", () => {
    const open = { failures: 20, disabledAt: ago(20), kinds: ["disabled"] } as const;
    expect(decide({ lastSuccessAt: ago(40) }, open)).toEqual({
      ended: "enabled",
      begins: { since: ago(20), follows: true },
      raised: [],
    });
    expect(decide({ lastSuccessAt: ago(40) }, { openedAt: ago(20) })).toEqual({ raised: [] });
    expect(decide({ lastSuccessAt: ago(5) }, { openedAt: ago(20) })).toEqual({
      ended: "recovered",
      raised: [],
    });
  });

  test("a disabling that was undone before any check is reported with its own incident", () => {
    const open = { failures: 20, disabledAt: ago(1), kinds: ["failures_5"] } as const;
    expect(decide({}, open)).toEqual({
      ended: "enabled",
      closing: ["disabled"],
      begins: { since: ago(1), follows: true },
      raised: [],
    });
  });

  test("a second disabling is reported although no check ran in between", () => {
    const open = { failures: 20, disabledAt: ago(20), kinds: ["failures_5", "disabled"] } as const;
    expect(decide({ state: "disabled", failures: 20, disabledAt: ago(1) }, open)).toMatchObject({
      ended: "enabled",
      raised: expect.arrayContaining(["disabled"]),
    });
  });

  test("a delete ends it without a word", () => {
    expect(decide({ state: "deleted" }, {})).toEqual({ ended: "deleted", raised: [] });
  });
});

const at = new Date("2026-06-01T12:00:00Z");
const ago = (minutes: number) => new Date(at.getTime() - minutes * 60_000);

const RULES = { at, oldestWaitingMinutes: 15 };

const condition = (fields: Partial<Condition> = {}): Condition => ({
  state: "active",
  failures: 0,
  disabledAt: null,
  isRetrying: false,
  oldestAt: null,
  lastSuccessAt: null,
  ...fields,
});

const incident = (fields: Partial<OpenIncident> = {}): OpenIncident => ({
  id: "01JWNB9PR0ZV8X2D3F4G5H6J00",
  openedAt: ago(30),
  beganAt: null,
  disabledAt: null,
  failures: 0,
  isTold: false,
  kinds: [],
  ...fields,
});

const decide = (now: Partial<Condition>, open?: Partial<OpenIncident>) =>
  decideAlerts(condition(now), open && incident(open), RULES);
