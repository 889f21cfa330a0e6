import { describe, expect, test } from "bun:test";

import {
  eventsFault,
  firstBatchAt,
  intervalFault,
  settingsOf,
} from "../../../src/webhooks/decide.ts";
import type { NewSubscriptionInput } from "../../../src/webhooks/model.ts";

const base = { label: "L", webhook_url: "https://partner.example/hook" };

describe("the batch interval", () => {
  test.each([
    ["immediate", undefined, undefined],
    ["immediate", null, undefined],
    ["immediate", 12, "is for batch only"],
    ["immediate", 0, "is for batch only"],
    ["batch", 12, undefined],
    ["batch", undefined, "is required for batch: one of 1, 2, 4, 6, 8, 12, 24"],
    ["batch", null, "is required for batch: one of 1, 2, 4, 6, 8, 12, 24"],
    // The kind itself is refused by the schema.
    ["weekly", undefined, undefined],
  ])("with %s and %p is answered %p", (delivery_kind, batch_interval_hours, fault) => {
    expect(intervalFault({ delivery_kind, batch_interval_hours })).toBe(fault);
  });
});

describe("the events filter", () => {
  test.each([
    [undefined, undefined],
    [null, undefined],
    [["a"], undefined],
    [["b", "a"], undefined],
    [[], "must name at least one event; leave it out for all events"],
    [["a", "a"], "names a twice"],
    [["a", "t"], "must not name t: a test is delivered whatever the filter"],
    [["a", "c"], "has an unknown value at index 1; GET /partner/webhooks/events lists all values"],
    [[1], "has an unknown value at index 0; GET /partner/webhooks/events lists all values"],
    // What is no list at all is refused by the schema.
    ["a", undefined],
  ])("%j is answered %p", (events, fault) => {
    expect(eventsFault(events, ["a", "b"], "t")).toBe(fault);
  });
});

describe("the settings", () => {
  test("of immediate have defaults", () => {
    expect(settingsOf({ ...base, delivery_kind: "immediate" })).toEqual({
      label: "L",
      webhookUrl: "https://partner.example/hook",
      deliveryKind: "immediate",
      batchIntervalHours: null,
      events: null,
      payloadMode: "full",
      suppressNativeNotifications: false,
      ordering: "subscription",
    });
  });

  const asked = {
    ...base,
    events: ["review_flagged"],
    payload_mode: "minimal",
    suppress_native_notifications: true,
    ordering: "review",
  } satisfies Partial<NewSubscriptionInput>;

  test("of immediate are those asked for", () => {
    expect(settingsOf({ ...asked, delivery_kind: "immediate" })).toMatchObject({
      events: ["review_flagged"],
      payloadMode: "minimal",
      suppressNativeNotifications: true,
      ordering: "review",
    });
  });

  test("of batch are pinned, its filter kept", () => {
    expect(settingsOf({ ...asked, delivery_kind: "batch", batch_interval_hours: 6 })).toMatchObject(
      {
        batchIntervalHours: 6,
        events: ["review_flagged"],
        payloadMode: "full",
        suppressNativeNotifications: false,
        ordering: "subscription",
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

  test("counts hours as long as the settings say", () => {
    const at = firstBatchAt({ batchIntervalHours: 2 }, createdAt, 1_000);
    expect(at).toEqual(new Date("2026-06-01T12:00:02Z"));
  });

  test("does not exist for immediate", () => {
    expect(firstBatchAt({ batchIntervalHours: null }, createdAt, 1_000)).toBeNull();
  });
});
