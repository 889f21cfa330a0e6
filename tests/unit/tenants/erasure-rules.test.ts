import { expect, test } from "bun:test";

import { fieldsOf } from "../../../src/lib/fields.ts";
import { METADATA } from "../../../src/reviews/events.ts";
import {
  isChanged,
  namesAddress,
  withoutActor,
  withoutReviewer,
} from "../../../src/tenants/erasure-rules.ts";

const PERSON = "Ada Ünal";
const review = { id: 7, external_review_id: "r", rate: 4, reviewer: PERSON };
const actor = { type: "user", id: 3, name: PERSON };

/** Fields of metadata that hold no free text. */
const KEPT = ["from", "to", "native_email", "user_id", "changed", "reviewed_at", "restored"];

test.each(Object.entries(METADATA))(
  "the metadata of %s keep no text of a reviewer",
  (_, { properties }) => {
    const metadata = Object.fromEntries(Object.keys(properties).map((name) => [name, PERSON]));
    const erased = withoutReviewer({ actor: null, review, metadata });
    const left = Object.entries(fieldsOf(erased.metadata)).filter(([, value]) => value === PERSON);
    expect(left.map(([name]) => name).filter((name) => !KEPT.includes(name))).toEqual([]);
    expect(Object.keys(erased.metadata ?? {})).toEqual(Object.keys(metadata));
  },
);

test("the review of an event loses the name only, and keeps the order of its fields", () => {
  const erased = withoutReviewer({ actor, review, metadata: {} });
  expect(JSON.stringify(erased.review)).toBe(
    '{"id":7,"external_review_id":"r","rate":4,"reviewer":null}',
  );
  expect(erased.actor).toEqual(actor);
});

test("an event about a site has no reviewer, so nothing of it changes", () => {
  const event = { actor, review: null, metadata: { error_code: "E-002" } };
  expect(isChanged(event, withoutReviewer(event))).toBe(false);
});

test("the actor of an event keeps its id and loses the name", () => {
  const event = { actor, review, metadata: {} };
  const erased = withoutActor(event);
  expect(JSON.stringify(erased.actor)).toBe('{"type":"user","id":3,"name":"Erased"}');
  expect(isChanged(event, erased)).toBe(true);
  expect(isChanged(erased, withoutActor(erased))).toBe(false);
});

test.each([
  ["Joe (ann@x.example) invited you", true],
  ["Write to ann@x.example.", true],
  ["ann@x.example", true],
  ["Joe (joann@x.example) invited you", false],
  ["jo+ann@x.example", false],
  ["ann@x.example.com", false],
  ["ann@x.examples", false],
  ["joann@x.example, then ann@x.example", true],
])("%p names ann@x.example: %p", (text, isNamed) => {
  expect(namesAddress(text, "ann@x.example")).toBe(isNamed);
});
