import { describe, expect, test } from "bun:test";

import {
  bodyFields,
  eventsLike,
  fieldsOf,
  reachOf,
} from "../../../src/dashboard/app/pages/events/schema-fields.ts";
import { CATALOG_EVENTS } from "../../../src/webhooks/event-model.ts";

describe("the fields of an event", () => {
  const rows = (value: string) =>
    new Map(fieldsOf(eventOf(value).schema).map(({ path, ...row }) => [path, row]));

  test.each(CATALOG_EVENTS.map(({ value }) => value))(
    "of %s are each there once, with a type",
    (value) => {
      const fields = fieldsOf(eventOf(value).schema);
      const paths = fields.map(({ path }) => path);
      expect(paths).toEqual([...new Set(paths)]);
      expect(fields.filter(({ type }) => type === "any")).toEqual([]);
      expect(paths).toEqual(expect.arrayContaining(Object.keys(eventOf(value).example)));
    },
  );

  test("describe their values, and whether they are always present", () => {
    const review = rows("review_updated");
    expect(review.get("review.rate")).toEqual({
      type: "integer, 1 to 5",
      presence: "always",
      meaning: "Rating, 1 to 5 stars.",
    });
    expect(review.get("review.reviewer")?.type).toBe("string or null");
    expect(review.get("occurred_at")?.type).toBe("date and time, ISO 8601");
    expect(review.get("metadata.changed")).toMatchObject({
      type: "list of string",
      presence: "sometimes",
    });
    expect(review.get("metadata.test")).toMatchObject({ type: "true", presence: "sometimes" });
    expect(rows("webhook.test").get("metadata.test")?.presence).toBe("always");
    expect(rows("review_pull_connected").get("axis")?.type).toBe('"pull" or "post"');
  });
});

test.each(CATALOG_EVENTS.map((one) => [one.value, one] as const))(
  "the fields of %s come in the order of its body, and name the event",
  (value, event) => {
    const paths = bodyFields(event).map(({ path }) => path);
    const names = paths.filter((path) => !path.includes("."));
    expect(names).toEqual(Object.keys(event.example));
    expect(paths.indexOf("partner.id")).toBe(paths.indexOf("partner") + 1);
    expect(paths.toSorted()).toEqual(
      fieldsOf(event.schema)
        .map(({ path }) => path)
        .toSorted(),
    );
    expect(bodyFields(event)[0]).toMatchObject({ path: "event", type: `"${value}"` });
  },
);

describe("the search in the catalog", () => {
  const found = (typed: string) => eventsLike(CATALOG_EVENTS, typed).map(({ value }) => value);

  test("finds all events for an empty text, and matches each word in name, description or fields", () => {
    expect(found("")).toHaveLength(CATALOG_EVENTS.length);
    expect(found("review received")).toEqual(["review_received"]);
    expect(found("SITE failed to PUBLISH")).toEqual(["response_post_failed"]);
    expect(found("disconnect_reason pull")).toContain("review_pull_disconnected");
    expect(found("no such words")).toEqual([]);
  });
});

test("the reach of an event depends on the kind and the filter of a subscription", () => {
  const reach = (value: string, delivery_kind: "immediate" | "batch", events: string[] | null) =>
    reachOf(eventOf(value), { delivery_kind, events });
  expect(reach("note_added", "immediate", null)).toContain("sent to this subscription immediately");
  expect(reach("note_added", "immediate", ["note_added"])).toContain(
    "sent to this subscription immediately",
  );
  expect(reach("note_added", "immediate", ["review_received"])).toContain(
    "its event filter excludes",
  );
  expect(reach("note_added", "batch", null)).toContain("in its next batch");
  expect(reach("review_pull_connected", "batch", null)).toContain("not part of batches");
  expect(reach("webhook.test", "immediate", null)).toContain("only when you ask");
});

const eventOf = (value: string) => {
  const event = CATALOG_EVENTS.find((one) => one.value === value);
  if (event === undefined) throw new Error(`There is no ${value}.`);
  return event;
};
