import { describe, expect, test } from "bun:test";

import {
  causesOf,
  incidentStepMs,
  openIncidentIds,
  pastIncidents,
  type FailedAttempt,
} from "../../../src/webhooks/incident-model.ts";

test.each([
  [0, 5],
  [119, 5],
  [120, 10],
  [24 * 60 - 1, 60],
  [30 * 24 * 60, 1_805],
])("an incident of %i minutes is counted by steps of %i", (minutes, step) => {
  expect(incidentStepMs(since, after(minutes)) / MINUTE_MS).toBe(step);
});

describe("past incidents", () => {
  const incident = (id: string, openedAt: Date, endedAt: Date | null, endedBy = "recovered") => ({
    disabledAt: null as Date | null,
    id,
    openedAt,
    beganAt: openedAt,
    endedAt,
    endedBy: endedAt === null ? null : (endedBy as "recovered" | "enabled" | "deleted"),
  });
  const shown = (...all: ReturnType<typeof incident>[]) =>
    pastIncidents(all).map(({ id, beganAt, endedAt, endedBy }) => [id, beganAt, endedAt, endedBy]);

  test("are those that have ended, but for that of a delete", () => {
    expect(
      shown(
        incident("c", after(5), null),
        incident("b", after(3), after(4)),
        incident("a", after(1), after(2), "deleted"),
      ),
    ).toEqual([["b", after(3), after(4), "recovered"]]);
  });

  test("go on after an enable until a 2xx, through any number of enables", () => {
    const disabled = { ...incident("a", after(1), after(4), "enabled"), disabledAt: after(3) };
    const again = incident("b", after(3), after(6), "enabled");
    const last = incident("c", after(5), after(8));
    expect(shown(last, again, disabled)).toEqual([["a", after(1), after(8), "recovered"]]);
    expect(pastIncidents([last, again, disabled])[0]?.disabledAt).toEqual(after(3));
    expect(shown(incident("c", after(5), null), again, disabled)).toEqual([]);
  });

  test("have no part in the open incident, which has all alerts since it began, also from before an enable", () => {
    const [recovered, disabled] = [
      incident("a", after(0), after(1)),
      incident("b", after(2), after(4), "enabled"),
    ];
    const open = incident("c", after(3), null);
    expect(openIncidentIds([open, disabled, recovered])).toEqual(["c", "b"]);
    expect(openIncidentIds([open, recovered])).toEqual(["c"]);
    expect(openIncidentIds([disabled, recovered])).toEqual([]);
    expect(openIncidentIds([])).toEqual([]);
  });

  test("are apart if the later one began after the end of the earlier one", () => {
    const first = incident("a", after(1), after(2), "enabled");
    expect(shown(incident("b", after(3), after(4)), first)).toEqual([
      ["b", after(3), after(4), "recovered"],
      ["a", after(1), after(2), "enabled"],
    ]);
  });
});

test("counts each status and each error separately by step, the most frequent first", () => {
  const timeout = { statusCode: null, errorCode: "timeout", tlsReason: null };
  const attempts = [
    attempt(0),
    attempt(4.9),
    attempt(5),
    attempt(1, timeout),
    attempt(11, timeout),
    attempt(12, { statusCode: 500 }),
  ];
  const stepMs = 5 * MINUTE_MS;
  expect(causesOf(attempts, { since, stepMs, now: after(12) })).toEqual([
    {
      statusCode: 503,
      errorCode: "http_status",
      tlsReason: null,
      attempts: 3,
      firstAt: after(0),
      lastAt: after(5),
      counts: [2, 1, 0],
    },
    { ...timeout, attempts: 2, firstAt: after(1), lastAt: after(11), counts: [1, 0, 1] },
    {
      statusCode: 500,
      errorCode: "http_status",
      tlsReason: null,
      attempts: 1,
      firstAt: after(12),
      lastAt: after(12),
      counts: [0, 0, 1],
    },
  ]);
});

test("attempts slightly outside the range are counted in its first or last step", () => {
  const [cause] = causesOf([attempt(-1), attempt(99)], {
    since,
    stepMs: 5 * MINUTE_MS,
    now: after(7),
  });
  expect(cause?.counts).toEqual([1, 1]);
});

test("failures of TLS with different reasons are different causes", () => {
  const tls = { statusCode: null, errorCode: "tls" };
  const causes = causesOf(
    [
      attempt(0, { ...tls, tlsReason: "expired" }),
      attempt(1, { ...tls, tlsReason: "handshake" }),
      attempt(2, { ...tls, tlsReason: "expired" }),
    ],
    { since, stepMs: 5 * MINUTE_MS, now: after(7) },
  );
  expect(causes.map(({ tlsReason, attempts }) => [tlsReason, attempts])).toEqual([
    ["expired", 2],
    ["handshake", 1],
  ]);
});

const MINUTE_MS = 60_000;

const since = new Date("2026-06-01T12:00:00Z");

const after = (minutes: number) => new Date(since.getTime() + minutes * MINUTE_MS);

const attempt = (minutes: number, fields: Partial<FailedAttempt> = {}): FailedAttempt => ({
  eventId: "e",
  startedAt: after(minutes),
  statusCode: 503,
  errorCode: "http_status",
  tlsReason: null,
  ...fields,
});
