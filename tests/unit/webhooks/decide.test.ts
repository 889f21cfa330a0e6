import { describe, expect, test } from "bun:test";

import {
  changedFields,
  deliveryState,
  eventsError,
  firstBatchAt,
  intervalError,
  nextBatchAfter,
  rescheduledBatchAt,
  settingsOf,
  updatedSettings,
  windowErrors,
} from "../../../src/webhooks/decide.ts";
import type {
  NewSubscriptionInput,
  SubscriptionSettings,
  SubscriptionUpdate,
} from "../../../src/webhooks/model.ts";

describe("the batch interval", () => {
  test.each([
    ["immediate", undefined, undefined],
    ["immediate", null, undefined],
    ["immediate", 12, "is only allowed for batch"],
    ["immediate", 0, "is only allowed for batch"],
    ["batch", 12, undefined],
    ["batch", undefined, "is required for batch: one of 1, 2, 4, 6, 8, 12, 24"],
    ["batch", null, "is required for batch: one of 1, 2, 4, 6, 8, 12, 24"],
    // The schema rejects the kind itself.
    ["weekly", undefined, undefined],
  ])("with %s and %p has the error %p", (delivery_kind, batch_interval_hours, error) => {
    expect(intervalError({ delivery_kind, batch_interval_hours })).toBe(error);
  });
});

describe("the events filter", () => {
  test.each([
    [undefined, undefined],
    [null, undefined],
    [["a"], undefined],
    [["b", "a"], undefined],
    [[], "must have at least one event; omit it for all events"],
    [["a", "a"], "has a twice"],
    [["a", "t"], "must not have t: filters do not apply to tests"],
    [["a", "c"], "has an unknown value at index 1; GET /partner/webhooks/events lists all values"],
    [[1], "has an unknown value at index 0; GET /partner/webhooks/events lists all values"],
    // The schema rejects a value that is not a list.
    ["a", undefined],
  ])("%j has the error %p", (events, error) => {
    expect(eventsError(events, ["a", "b"], "t")).toBe(error);
  });
});

describe("the settings", () => {
  test("of an immediate subscription have defaults", () => {
    expect(settingsOf({ ...base, delivery_kind: "immediate" })).toEqual({
      label: "L",
      webhookUrl: "https://partner.example/hook",
      deliveryKind: "immediate",
      batchIntervalHours: null,
      events: null,
      payloadMode: "full",
      suppressNativeNotifications: false,
      ordering: "subscription",
      standardWebhooks: false,
      sequenceHeaders: false,
      headerNames: [],
    });
  });

  const asked = {
    ...base,
    events: ["review_flagged"],
    payload_mode: "minimal",
    suppress_native_notifications: true,
    ordering: "review",
    standard_webhooks: true,
    sequence_headers: true,
    headers: { "X-Api-Key": "k" },
  } satisfies Partial<NewSubscriptionInput>;

  test("of an immediate subscription are those of the input", () => {
    expect(settingsOf({ ...asked, delivery_kind: "immediate" })).toMatchObject({
      events: ["review_flagged"],
      payloadMode: "minimal",
      suppressNativeNotifications: true,
      ordering: "review",
      standardWebhooks: true,
      sequenceHeaders: true,
      headerNames: ["X-Api-Key"],
    });
  });

  test("of a batch subscription are fixed, except its filter and the headers of Standard Webhooks", () => {
    expect(settingsOf({ ...asked, delivery_kind: "batch", batch_interval_hours: 6 })).toMatchObject(
      {
        batchIntervalHours: 6,
        events: ["review_flagged"],
        payloadMode: "full",
        suppressNativeNotifications: false,
        ordering: "subscription",
        standardWebhooks: true,
        sequenceHeaders: false,
        headerNames: ["X-Api-Key"],
      },
    );
  });
});

describe("the first batch", () => {
  const createdAt = new Date("2026-06-01T12:00:00Z");

  test("is due one interval after creation", () => {
    const at = firstBatchAt({ batchIntervalHours: 24 }, createdAt, 3_600_000);
    expect(at).toEqual(new Date("2026-06-02T12:00:00Z"));
  });

  test("counts hours of the configured length", () => {
    const at = firstBatchAt({ batchIntervalHours: 2 }, createdAt, 1_000);
    expect(at).toEqual(new Date("2026-06-01T12:00:02Z"));
  });

  test("does not exist for an immediate subscription", () => {
    expect(firstBatchAt({ batchIntervalHours: null }, createdAt, 1_000)).toBeNull();
  });
});

describe("an update of the settings", () => {
  const immediate: SubscriptionSettings = {
    label: "L",
    webhookUrl: "https://partner.example/hook",
    deliveryKind: "immediate",
    batchIntervalHours: null,
    events: ["review_flagged"],
    payloadMode: "minimal",
    suppressNativeNotifications: true,
    ordering: "review",
    standardWebhooks: false,
    sequenceHeaders: false,
    headerNames: ["X-Api-Key"],
  };
  const batch: SubscriptionSettings = {
    ...immediate,
    deliveryKind: "batch",
    batchIntervalHours: 6,
    payloadMode: "full",
    suppressNativeNotifications: false,
    ordering: "subscription",
  };

  test("that names nothing changes nothing", () => {
    expect(updatedSettings(immediate, {})).toEqual(immediate);
    expect(changedFields(immediate, immediate, {})).toEqual([]);
  });

  test.each<[SubscriptionUpdate, Partial<SubscriptionSettings>]>([
    [{ label: "M" }, { label: "M" }],
    [{ webhook_url: "https://b.example/" }, { webhookUrl: "https://b.example/" }],
    [{ events: null }, { events: null }],
    [{ events: ["review_removed"] }, { events: ["review_removed"] }],
    [{ payload_mode: "full" }, { payloadMode: "full" }],
    [{ suppress_native_notifications: false }, { suppressNativeNotifications: false }],
    [{ ordering: "subscription" }, { ordering: "subscription" }],
    [{ standard_webhooks: true }, { standardWebhooks: true }],
    [{ sequence_headers: true }, { sequenceHeaders: true }],
    [{ headers: { "X-Tenant": "t" } }, { headerNames: ["X-Tenant"] }],
    [{ headers: { "X-Api-Key": "rotated" } }, {}],
    [{ headers: {} }, { headerNames: [] }],
    [{ headers: null }, { headerNames: [] }],
  ])("%j changes that field alone, and is reported by its name in the API", (update, changed) => {
    const after = updatedSettings(immediate, update);
    expect(after).toEqual({ ...immediate, ...changed });
    expect(changedFields(immediate, after, update)).toEqual(Object.keys(update));
  });

  test.each([{}, null])("that removes the headers (%j) changes nothing without any", (headers) => {
    const none = { ...immediate, headerNames: [] };
    expect(changedFields(none, updatedSettings(none, { headers }), { headers })).toEqual([]);
  });

  test("of a batch subscription changes its interval, and keeps the fixed settings", () => {
    const update = {
      batch_interval_hours: 12,
      payload_mode: "minimal",
      ordering: "review",
    } as const;
    const after = updatedSettings(batch, { ...update, suppress_native_notifications: true });
    expect(after).toEqual({ ...batch, batchIntervalHours: 12 });
    expect(changedFields(batch, after, update)).toEqual(["batch_interval_hours"]);
  });
});

describe("the due time of a batch", () => {
  const HOUR = 1_000;
  const at = (hours: number) => new Date(Date.UTC(2026, 5, 1) + hours * HOUR);
  const rule = { now: at(100), hourMs: HOUR };

  test.each([
    ["a longer interval moves it by the difference", 6, at(103), 12, at(109)],
    ["a shorter one does, too", 12, at(109), 6, at(103)],
    ["a shorter one that ends in the past begins now", 12, at(103), 2, at(102)],
    ["a shorter one that ends now begins now", 12, at(106), 6, at(106)],
    ["the same interval leaves it", 6, at(103), 6, at(103)],
    ["a batch that is due now stays due", 6, at(100), 12, at(100)],
    ["a batch that is overdue stays due", 6, at(99), 12, at(99)],
    ["no interval leaves it", 6, at(103), null, at(103)],
    ["an immediate subscription has none", null, null, 6, null],
  ])("after a change of the interval: %s", (...[, hours, nextBatchAt, changed, expected]) => {
    const times = { batchIntervalHours: hours, nextBatchAt };
    expect(rescheduledBatchAt(times, changed, rule)).toEqual(expected);
  });

  test.each([
    ["one that is to come stays", at(101), at(101)],
    ["one that is due now moves by an interval", at(100), at(106)],
    ["missed ones are left out", at(87), at(105)],
  ])("after an enable that skips: %s", (_, nextBatchAt, expected) => {
    expect(nextBatchAfter({ batchIntervalHours: 6, nextBatchAt }, rule)).toEqual(expected);
  });

  test("after an enable that skips: an immediate subscription has none", () => {
    const times = { batchIntervalHours: null, nextBatchAt: null };
    expect(nextBatchAfter(times, rule)).toBeNull();
  });
});

test.each([
  ["pending", "active", "pending"],
  ["waiting", "active", "waiting"],
  ["pending", "disabled", "held"],
  ["waiting", "disabled", "held"],
  ["delivered", "disabled", "delivered"],
  ["failed", "disabled", "failed"],
  ["skipped", "disabled", "skipped"],
] as const)(
  "a delivery that is stored as %s is, while the subscription is %s, %s",
  (stored, state, shown) => {
    expect(deliveryState(stored, { state })).toBe(shown);
  },
);

describe("the window of a recovery", () => {
  const now = new Date("2026-06-30T12:00:00Z");
  const ago = (ms: number) => new Date(now.getTime() - ms);
  const DAY = 86_400_000;
  const rule = { now, retentionMs: 30 * DAY };
  const OLD = "must be within the last 30 days: older deliveries are deleted";

  test.each([
    ["30 days ago", ago(30 * DAY), undefined],
    ["a millisecond earlier", ago(30 * DAY + 1), OLD],
    ["a millisecond ago", ago(1), undefined],
    ["now", now, "must be in the past"],
    ["absent or unreadable", undefined, undefined],
  ])("with since %s has the error %p", (_, since, error) => {
    expect(windowErrors({ since, until: undefined }, rule)).toEqual({
      since: error,
      until: undefined,
    });
  });

  test.each([
    ["a millisecond after since", ago(DAY - 1), undefined],
    ["the same as since", ago(DAY), "must be later than since"],
    ["before since", ago(DAY + 1), "must be later than since"],
    ["absent", undefined, undefined],
  ])("with until %s has the error %p", (_, until, error) => {
    expect(windowErrors({ since: ago(DAY), until }, rule)).toEqual({
      since: undefined,
      until: error,
    });
  });

  test("with until alone has no error", () => {
    expect(windowErrors({ since: undefined, until: now }, rule)).toEqual({
      since: undefined,
      until: undefined,
    });
  });
});

const base = { label: "L", webhook_url: "https://partner.example/hook" };
