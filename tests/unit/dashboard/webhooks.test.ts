import { describe, expect, test } from "bun:test";

import { diagnosisOf } from "../../../src/dashboard/app/pages/webhooks/deliveries/attempt-words.ts";
import {
  isMatch,
  type AttemptRow,
} from "../../../src/dashboard/app/pages/webhooks/data/filters.ts";
import {
  areComplete,
  changesOf,
  createBody,
  draftOf,
  duplicateOf,
  hasMoved,
  labelFor,
  movedHeaders,
  newDraft,
  type OwnHeader,
  urlHint,
} from "../../../src/dashboard/app/pages/webhooks/data/draft.ts";
import type { Subscription } from "../../../src/dashboard/app/pages/webhooks/data/reads.ts";
import {
  periodOf,
  spanOf,
  statsQuery,
} from "../../../src/dashboard/app/pages/webhooks/data/stats-range.ts";
import {
  chartSeries,
  eventSeries,
  outcomeSeries,
  withPresent,
} from "../../../src/dashboard/app/pages/webhooks/stats/stats-series.ts";
import {
  conditionOf,
  disabledBecause,
  eventsWait,
  hasRecovered,
  isRetryShown,
  MAX_COUNTED,
  problemOf,
  wayOut,
} from "../../../src/dashboard/app/pages/webhooks/data/subscription-words.ts";
import type { ChartSeries } from "../../../src/dashboard/app/ui/chart/chart-series.ts";
import { inWords, percent } from "../../../src/dashboard/app/ui/format.ts";

describe("the hint about a URL", () => {
  test.each([
    ["example.com/hook", "whole address"],
    ["ftp://example.com/", "whole address"],
    ["https://", "whole address"],
    ["https://a b.example/", "Remove the spaces"],
    ["https://user@example.com/", "user name"],
    ["https://example.com/#part", "after #"],
    [`https://example.com/${"x".repeat(2_048)}`, "at most"],
  ])("rejects %p", (url, words) => {
    expect(urlHint(url)).toMatchObject({ kind: "error" });
    expect(urlHint(url)?.text).toContain(words);
  });

  test.each([
    "http://example.com/",
    "https://localhost:3000/",
    "https://10.1.2.3/",
    "https://[::1]/",
  ])("leaves %p to the server, with a warning", (url) =>
    expect(urlHint(url)).toMatchObject({ kind: "advice" }),
  );

  test.each(["", "https://example.com/hook?x=1", "https://172.32.0.1/"])(
    "has nothing to say about %p",
    (url) => expect(urlHint(url)).toBeUndefined(),
  );

  test("names a subscription by the host, where there is one", () => {
    expect(labelFor("https://hooks.example.com:8443/x")).toBe("hooks.example.com");
    expect(labelFor("nonsense")).toBe("");
  });
});

describe("a draft", () => {
  test("of a batch sends its interval, and none of the fields that a batch fixes", () => {
    const draft = { ...newDraft("batch"), webhook_url: " https://example.com ", label: " B " };
    expect(createBody(draft)).toEqual({
      delivery_kind: "batch",
      label: "B",
      webhook_url: "https://example.com",
      batch_interval_hours: 4,
      standard_webhooks: false,
    });
  });

  test("that is unedited changes nothing, in any order of its events", () => {
    const draft = draftOf(subscription);
    expect(changesOf(draft, subscription)).toEqual({});
    const turned = { ...draft, events: ["review_received", "note_added"] };
    expect(changesOf(turned, subscription)).toEqual({});
  });

  test("changes only the fields that differ; null events are a value", () => {
    const draft = { ...draftOf(subscription), label: "Two", events: null };
    expect(changesOf(draft, subscription)).toEqual({ label: "Two", events: null });
  });
});

describe("the headers of a draft", () => {
  const sent = (headers: readonly OwnHeader[] | undefined) =>
    changesOf({ ...draftOf(subscription), headers }, subscription);

  test("are sent as an object, without empty rows; no row removes them, and undefined keeps them", () => {
    const rows = [
      { name: " X-Api-Key ", value: "k" },
      { name: "", value: "" },
    ];
    expect(sent(rows)).toEqual({ headers: { "X-Api-Key": "k" } });
    expect(sent([])).toEqual({ headers: null });
    expect(sent(undefined)).toEqual({});
  });

  test("need a name of their own and a value", () => {
    const row = (name: string, value: string) => ({ name, value });
    expect(areComplete([row("A", "1"), row("", "")])).toBe(true);
    expect(areComplete([row("A", "")])).toBe(false);
    expect(areComplete([row("", "1")])).toBe(false);
    const twice = [row("A", "1"), row("a ", "2")];
    expect(areComplete(twice)).toBe(false);
    expect(twice.map((_, i) => duplicateOf(twice, i) !== undefined)).toEqual([false, true]);
  });

  test("are entered again, by their names, for another URL", () => {
    const current = { ...subscription, header_names: ["A"] };
    const draft = { ...draftOf(current), webhook_url: "https://other.example/" };
    expect([hasMoved(draftOf(current), current), hasMoved(draft, current)]).toEqual([false, true]);
    expect(movedHeaders(draft, current)).toEqual([{ name: "A", value: "" }]);
  });
});

describe("the filter of the address", () => {
  test.each([
    [{}, true],
    [{ event: "review_received" }, true],
    [{ event: "note_added" }, false],
    [{ event_id: ID.toLowerCase() }, true],
    [{ outcome: "failed" }, false],
    [{ since: "2026-06-01T12:00:00Z" }, true],
    [{ since: "2026-06-01T12:00:01Z" }, false],
    [{ until: "2026-06-01T12:00:00Z" }, false],
    [{ until: "2026-06-01T12:00:01Z" }, true],
  ])("%p matches a new attempt: %p", (filter, isTaken) =>
    expect(isMatch(row, filter)).toBe(isTaken),
  );
});

describe("an attempt in words", () => {
  const finding = (status: number | null, code: string | null, reason: string | null = null) =>
    diagnosisOf({ outcome: "retry", status_code: status, error_code: code, tls_reason: reason });

  test.each(["timeout", "dns", "connect", "tls", "blocked_address", "proxy", "reset", "protocol"])(
    "knows what to do about %s",
    (code) => {
      const { title, advice } = finding(null, code);
      expect(title).not.toContain(`(${code})`);
      expect(advice.length).toBeGreaterThan(40);
    },
  );

  test.each([
    ["chain_incomplete", "The certificate chain is incomplete", "fullchain"],
    ["of_a_newer_version", "No secure connection", "Check that the certificate is valid"],
    ["constructor", "No secure connection", "Check that the certificate is valid"],
  ])("tells what to do about TLS for the reason %s", (reason, title, advice) => {
    const found = finding(null, "tls", reason);
    expect(found.title).toBe(title);
    expect(found.advice).toContain(advice);
  });

  test.each([
    [301, "Redirects are not followed"],
    [418, "Only a 2xx status counts"],
    [503, "Check its logs"],
  ])("explains the status %d", (status, words) => {
    const { title, advice } = finding(status, "http_status");
    expect(title).toBe(`HTTP ${status}`);
    expect(advice).toContain(words);
  });

  test("names a code that it does not know", () =>
    expect(finding(null, "strange").title).toBe("Not delivered (strange)"));

  test("does not blame the endpoint for an interruption", () => {
    const one = diagnosisOf({
      outcome: "interrupted",
      status_code: null,
      error_code: null,
      tls_reason: null,
    });
    expect(one.advice).toContain("does not count as a failure");
  });

  test("explains why a subscription is disabled", () => {
    const words = (reason: string | null) =>
      disabledBecause({ disabled_reason: reason, consecutive_failure_count: 20 });
    expect(words("consecutive_failures")).toBe("because 20 events in a row could not be delivered");
    expect(words("operator")).toBe("by the platform");
    expect(words("by_operator")).toBe("(by operator)");
    expect(words("manual")).toBe("by hand");
  });
});

describe("the state of a subscription", () => {
  const success = "2026-11-27T06:00:00.000Z";
  test.each([
    ["active", true, undefined],
    ["active", true, { condition: "healthy", last_success_at: null, blocked_attempts: 0 }],
    ["healthy", true, { condition: "healthy", last_success_at: success, blocked_attempts: 0 }],
    ["retrying", true, { condition: "healthy", last_success_at: success, blocked_attempts: 1 }],
    ["retrying", true, { condition: "healthy", last_success_at: null, blocked_attempts: 1 }],
    ["degraded", true, { condition: "degraded", last_success_at: success, blocked_attempts: 0 }],
    ["retrying", true, { condition: "degraded", last_success_at: success, blocked_attempts: 1 }],
    ["failing", true, { condition: "failing", last_success_at: null, blocked_attempts: 2 }],
    ["disabled", false, { condition: null, last_success_at: null, blocked_attempts: 0 }],
  ] as const)("is %s", (shown, isActive, health) =>
    expect(conditionOf({ is_active: isActive, ordering: "subscription" }, health)).toBe(shown),
  );

  test("stays degraded while only one review waits", () => {
    const health = {
      condition: "degraded",
      last_success_at: success,
      blocked_attempts: 2,
    } as const;
    expect(conditionOf({ is_active: true, ordering: "review" }, health)).toBe("degraded");
  });

  test.each([
    ["subscription", 0, false],
    ["subscription", 1, true],
    ["review", 1, false],
    ["review", 2, true],
  ] as const)(
    "with order by %s and %i failed attempts tells of the retry: %p",
    (ordering, failed, isShown) => {
      expect(isRetryShown({ ordering }, { blocked_attempts: failed })).toBe(isShown);
    },
  );
});

const recovering = {
  last_success_at: "2026-11-30T21:15:00.000Z",
  blocked_attempts: 0,
  quarantined: [],
  outage_since: null,
};

test.each([
  ["nothing failed for minutes", {}, true],
  ["an event waits for a retry", { health: { ...recovering, blocked_attempts: 1 } }, false],
  ["the last failure is new", { now: Date.parse("2026-11-30T21:14:00.000Z") }, false],
  ["nothing was delivered since", { causes: [{ last_at: "2026-11-30T21:16:00.000Z" }] }, false],
  ["nothing failed at all", { causes: [] }, false],
])("a degraded subscription of which %s: %o has recovered: %p", (_, given, isOver) => {
  const causes = [{ last_at: "2026-11-30T21:13:00.000Z" }];
  const now = Date.parse("2026-11-30T21:22:00.000Z");
  expect(hasRecovered({ health: recovering, causes, now, ...given })).toBe(isOver);
});

test.each([
  [0, "No events wait"],
  [1, "1 event waits"],
  [9_999, "9,999 events wait"],
  [MAX_COUNTED, "10,000 or more events wait"],
])("tells that %i events wait", (count, words) => expect(eventsWait(count)).toBe(words));

describe("the problem of a subscription", () => {
  const now = Date.parse("2026-06-01T12:00:00Z");
  const success_rate_1h = 0.947;
  const [recent, old] = ["2026-06-01T11:50:00.000+00:00", "2026-06-01T10:00:00.000+00:00"];
  const cause = {
    status_code: 503,
    error_code: "http_status",
    tls_reason: null,
    attempts: 7,
    first_at: recent,
    last_at: recent,
    counts: [7],
  };
  test.each([
    ["healthy", null, [cause], undefined],
    ["failing", recent, [cause], { since: recent, rate: null }],
    ["disabled", recent, [], { since: recent, rate: null }],
    ["disabled", null, [], undefined],
    ["degraded", null, [cause], { since: null, rate: 0.947 }],
    ["degraded", recent, [cause], { since: null, rate: 0.947 }],
    ["degraded", old, [cause], { since: old, rate: 0.947 }],
    // A lane stands still for a reason on our side.
    ["degraded", null, [], undefined],
  ] as const)("that is %s since %p", (condition, since, causes, problem) => {
    const health = { success_rate_1h, condition: condition === "disabled" ? null : condition };
    expect(problemOf(condition, { since, causes: [...causes] }, { health, now })).toEqual(problem);
  });

  test("that is retrying has no rate, and no causes if it is healthy otherwise", () => {
    const found = { since: old, causes: [cause] };
    const health = (condition: "healthy" | "degraded") => ({ success_rate_1h, condition });
    expect(problemOf("retrying", found, { health: health("healthy"), now })).toBeUndefined();
    expect(problemOf("retrying", found, { health: health("degraded"), now })).toEqual({
      since: old,
      rate: null,
    });
  });
});

test.each([
  ["suspended", true, "It is enabled automatically when the company is activated."],
  ["operator", false, "Only the platform can enable it."],
  ["operator", true, ""],
  ["manual", true, "Fix the endpoint first, then enable it."],
  ["consecutive_failures", false, "Somebody who manages webhooks can enable it."],
])("the way out of %s mentions a button only to those who have it (%p)", (reason, may, words) =>
  expect(wayOut({ disabled_reason: reason }, may)).toBe(words),
);

test.each([
  [0.947, "94.7%"],
  [0.9996, "99.9%"],
  [1, "100%"],
  [0.29, "29%"],
  [2 / 3, "66.7%"],
])("a share of %p is shown as %s, and a share below 1 never as all", (share, words) =>
  expect(percent(share)).toBe(words),
);

test("the last point of a chart has the current length of the queue", () => {
  const point = { at: "", successes: 0, failures: 0, latency_ms: { p50: 1, p95: 1, p99: 1 } };
  const until = "2026-06-01T12:00:00.000+00:00";
  const now = Date.parse(until) - 1;
  const stats = {
    since: "",
    until,
    step: 60,
    points: [2, 3].map((backlog) => ({ ...point, backlog })),
  };
  const backlogs = (pending: number) =>
    withPresent(stats, pending, now).points.map((one) => one.backlog);
  expect(backlogs(150)).toEqual([2, 150]);
  expect(backlogs(0)).toEqual([2, 3]);
  expect(withPresent(stats, 0, now).points.map((one) => one.queued)).toEqual([undefined, 0]);
  expect(withPresent({ ...stats, points: [] }, 5, now).points).toEqual([]);
  expect(withPresent(stats, 150, now + 2)).toEqual(stats);
});

describe("charts", () => {
  const none = { p50: null, p95: null, p99: null };
  const stats = {
    since: "2026-06-01T12:00:00.000+00:00",
    until: "2026-06-01T12:10:00.000+00:00",
    step: 300,
    points: [
      {
        at: "2026-06-01T12:00:00.000+00:00",
        successes: 3,
        failures: 1,
        latency_ms: { p50: 5, p95: 9, p99: 1_500 },
        backlog: 4,
      },
      {
        at: "2026-06-01T12:05:00.000+00:00",
        successes: 0,
        failures: 0,
        latency_ms: none,
        backlog: 7,
      },
    ],
  };
  const shown = (series: readonly ChartSeries[]) =>
    series.map(({ label, values, summary }) => [label, values, summary]);

  test("have one value per point and kind, and gaps where there was no answer", () => {
    const { times, latency, queue } = chartSeries(stats);
    expect(times).toEqual([1_780_315_200, 1_780_315_500]);
    expect(latency.map(({ values }) => values)).toEqual([
      [5, null],
      [9, null],
      [1_500, null],
    ]);
    expect(latency[2]?.summary).toBe("up to 1.5 s");
    expect(queue[0]?.summary).toBe("up to 7");
  });

  test("stack by outcome", () => {
    expect(shown(outcomeSeries(stats))).toEqual([
      ["Failed", [1, 0], "1"],
      ["Delivered", [3, 0], "3"],
    ]);
  });

  test("tell the present length of the queue, and not the longest of the samples, which may have missed the longest", () => {
    const now = Date.parse(stats.until) - 1;
    expect(shown(chartSeries(withPresent(stats, 5, now)).queue)).toEqual([
      ["Events, counted every 5 minutes", [4, 7], "5 now"],
    ]);
  });

  test("stack five events, and combine the rest", () => {
    const events = (counts: Record<string, number>) => ({
      ...stats,
      points: stats.points.map((one, i) => (i === 0 ? { ...one, events: counts } : one)),
    });
    const five = { a: 1, b: 2, c: 3, d: 4, e: 5 };
    expect(shown(eventSeries(events(five)))).toEqual([
      ["a", [1, 0], "1"],
      ["b", [2, 0], "2"],
      ["c", [3, 0], "3"],
      ["d", [4, 0], "4"],
      ["e", [5, 0], "5"],
    ]);
    const seven = eventSeries(events({ ...five, f: 6, g: 7 }));
    expect(shown(seven)[0]).toEqual(["2 other events", [3, 0], "3"]);
    expect(seven).toHaveLength(6);
    expect(shown(eventSeries(events({ ...five, f: 6 })))[0]).toEqual([
      "1 other event",
      [1, 0],
      "1",
    ]);
    expect(eventSeries(stats)).toEqual([]);
  });

  test("distinguish series by more than colour", () => {
    const looks = outcomeSeries(stats).map(({ pattern }) => pattern);
    expect(new Set(looks).size).toBe(2);
  });
});

describe("the span of a chart", () => {
  const now = Date.parse("2026-06-01T12:01:00Z");

  test("has at most 60 steps, of widths that the API counts in", () => {
    const asked = (minutes: number) => {
      const until = new Date(now + minutes * 60_000).toISOString();
      return statsQuery({ since: new Date(now).toISOString(), until }, now).step;
    };
    expect([5, 300, 301, 30 * 24 * 60].map(asked)).toEqual([300, 300, 900, 43_200]);
    expect(statsQuery("1h", now)).toEqual({ since: "2026-06-01T11:01:00.000Z", step: 300 });
  });

  test("is that of the filter, at most 30 days, and undefined for an empty period", () => {
    expect(spanOf({ within: "7d" }, now)).toBe("7d");
    expect(spanOf({}, now)).toBe("30d");
    const [since, until] = ["2026-06-01T10:00:00.000Z", "2026-06-01T11:00:00.000Z"];
    expect(spanOf({ since, until }, now)).toEqual({ since, until });
    expect(spanOf({ since }, now)).toEqual({ since, until: "2026-06-01T12:05:00.000Z" });
    expect(spanOf({ until }, now)).toEqual({ since: "2026-05-02T11:00:00.000Z", until });
    expect(spanOf({ since: until, until: since }, now)).toBeUndefined();
  });

  test("is read from the address only if it is a valid period", () => {
    const of = (query: string) => periodOf(new URLSearchParams(query));
    const [since, until] = ["2026-06-01T10:00:00.000Z", "2026-06-01T11:00:00.000Z"];
    expect(of(`since=${since}&until=${until}`)).toEqual({ since, until });
    for (const query of ["", `since=${since}`, `since=${until}&until=${since}`, "since=x&until=y"])
      expect(of(query)).toBeUndefined();
  });
});

test("a past event is never shown as future, even with a clock that is behind", () => {
  const now = Date.parse("2026-06-01T12:00:00Z");
  expect(inWords(now + 9_000, now, false)).toBe("just now");
  expect(inWords(now - 9_000, now, false)).toBe("9 seconds ago");
  expect(inWords(now + 9_000, now, true)).toBe("in 9 seconds");
});

const ID = "01JWNB9PR0ZV8X2D3F4G5H6J00";

const row: AttemptRow = {
  event_id: ID,
  event: "review_received",
  started_at: "2026-06-01T12:00:00.000+00:00",
  outcome: "delivered",
};

const subscription: Subscription = {
  id: ID,
  label: "One",
  webhook_url: "https://example.com/hook",
  delivery_kind: "immediate",
  batch_interval_hours: null,
  events: ["note_added", "review_received"],
  payload_mode: "full",
  suppress_native_notifications: false,
  ordering: "subscription",
  standard_webhooks: false,
  sequence_headers: false,
  header_names: [],
  is_active: true,
  consecutive_failure_count: 0,
  disabled_at: null,
  disabled_reason: null,
  disabled_note: null,
  last_batch_dispatched_at: null,
  next_batch_at: null,
  secret_fingerprint: "0123456789abcdef",
  previous_secret_expires_at: null,
  created_at: "2026-06-01T12:00:00.000+00:00",
  updated_at: "2026-06-01T12:00:00.000+00:00",
  deleted_at: null,
  pending_test_event_id: null,
};
