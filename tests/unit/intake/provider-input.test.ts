import { describe, expect, test } from "bun:test";

import { readEvents } from "../../../src/intake/provider-input.ts";
import { MAX_EVENTS } from "../../../src/intake/provider-model.ts";

describe("a valid event", () => {
  test.each([
    [created, REVIEW, report({})],
    [{ ...created, type: "review.updated" }, REVIEW, { ...report({}), creates: false }],
    [
      { ...created, review: { ...review, content: null, reviewer_email: "ada@mail.test" } },
      REVIEW,
      report({ content: "", reviewerEmail: "ada@mail.test" }),
    ],
    [
      { ...common, type: "review.removed", review: { external_review_id: "r" } },
      REVIEW,
      change("review_removed"),
    ],
    [posted, REVIEW, change("response_post_succeeded", { isAnnounced: true })],
    [
      { ...posted, type: "response.failed", error_code: "E-012" },
      REVIEW,
      change("response_post_failed", { errorCode: "E-012", metadata: { error_code: "E-012" } }),
    ],
    [{ ...pull, connected: true }, SITE, change("review_pull_connected")],
    [{ ...post, connected: true, error_code: null }, SITE, change("response_post_connected")],
    [{ ...pull, ...down }, SITE, change("review_pull_disconnected", { errorCode: "E-001" })],
    [{ ...post, ...down }, SITE, change("response_post_disconnected", { errorCode: "E-001" })],
  ])("such as %j is read as a change, with its references", (given, subject, what) => {
    const { changes, references, fieldErrors } = read(given);
    expect<unknown>(changes).toEqual([{ index: 0, id: "e", subject, what, occurredAt: NOW }]);
    expect<unknown>(references).toEqual([
      { index: 0, type: given.type, id: "e", externalReviewId: undefined, ...subject },
    ]);
    expect(fieldErrors).toEqual({});
  });
});

describe("a field error", () => {
  const early = "1969-12-31T23:59:59.999+00:00";
  const first = "1970-01-01T00:00:00.000+00:00";
  const in5Minutes = "2026-06-01T12:05:00.000+00:00";
  const later = "2026-06-01T12:05:00.001+00:00";

  test.each([
    [{ ...created, occurred_at: in5Minutes }, {}],
    [{ ...created, occurred_at: later }, { occurred_at: "is more than 5 minutes in the future" }],
    [{ ...created, occurred_at: first }, {}],
    [{ ...created, occurred_at: early }, { occurred_at: "is before 1970" }],
    [{ ...created, review: { ...review, reviewed_at: first } }, {}],
    [
      { ...created, review: { ...review, reviewed_at: early } },
      { "review.reviewed_at": "is before 1970" },
    ],
    [
      { ...created, review: { ...review, reviewer_email: "no address" } },
      { "review.reviewer_email": "must be null or an email address" },
    ],
    [{ ...pull, connected: false }, { error_code: "is required when the axis is disconnected" }],
    [
      { ...pull, connected: false, error_code: null },
      { error_code: "is required when the axis is disconnected" },
    ],
    [
      { ...pull, connected: true, error_code: "E-001" },
      { error_code: "must be null when the axis is connected" },
    ],
    [
      { ...created, review: { ...review, rate: 6 } },
      { "review.rate": "must be a whole number from 1 to 5" },
    ],
    [
      { ...created, occurred_at: later, review: { ...review, rate: 6 } },
      {
        occurred_at: "is more than 5 minutes in the future",
        "review.rate": "must be a whole number from 1 to 5",
      },
    ],
    [{ ...posted, error_code: null }, {}],
    [
      { ...posted, error_code: "E-001" },
      { error_code: "must be null or absent: the response was posted" },
    ],
    // `connected` is a field of connection.changed only.
    [{ ...created, connected: false }, { connected: "is not a known field" }],
  ])("of %j is reported as %j", (given, named) => {
    const { changes, references, fieldErrors } = read(created, given);
    const expected = Object.entries(named).map(([field, text]) => [`events.1.${field}`, [text]]);
    expect(fieldErrors).toEqual(Object.fromEntries(expected));
    expect(changes.length).toBe(expected.length === 0 ? 2 : 1);
    expect(references.length).toBe(2);
  });

  test.each([null, 1, "text", [[]]])(
    "is reported for an event that is not an object: %j",
    (given) => {
      const { references, fieldErrors } = read(given);
      expect([references, fieldErrors]).toEqual([[], { "events.0": ["must be an object"] }]);
    },
  );

  test.each([["review.moved"], ["constructor"], [1], [undefined], [["review.created"]]])(
    "is reported for the unknown type %p",
    (type) => {
      const { changes, references, fieldErrors } = read({ ...created, type });
      expect(Object.keys(fieldErrors)).toEqual(["events.0.type"]);
      expect(fieldErrors["events.0.type"]).toEqual([
        "must be one of review.created, review.updated, review.removed, response.posted, response.failed, connection.changed",
      ]);
      expect(changes).toEqual([]);
      // References of an event with an unknown type are read nevertheless.
      expect<unknown>(references).toEqual([
        { index: 0, type: undefined, id: "e", siteId: 5, externalReviewId: "r" },
      ]);
    },
  );

  test("of an unknown type omits an id that is not a string", () => {
    const { references } = read({ ...common, type: "review.moved", external_review_id: 7 });
    expect(references).toMatchObject([{ id: "e", siteId: 5, externalReviewId: undefined }]);
  });

  test("omits only the invalid part from the reference", () => {
    const { references } = read({
      ...created,
      id: 1,
      store_review_site_id: "5",
      review: { ...review, external_review_id: 7 },
    });
    const nothing = { id: undefined, siteId: undefined, externalReviewId: undefined };
    expect<unknown>(references).toEqual([{ index: 0, type: "review.created", ...nothing }]);
  });
});

describe("the limits of a field", () => {
  const faultyFields = (event: object) =>
    Object.keys(read(event).fieldErrors)
      .map((field) => field.replace("events.0.", ""))
      .toSorted();
  const TEXTS = ["id", "review.content", "review.external_review_id", "review.reviewer"];

  test.each([
    "2026-06-01T12:00:00",
    "2026-02-30T12:00:00Z",
    "yesterday",
    "0000-01-01T00:00:00Z",
    5,
  ])("an instant is not %p", (at) => {
    expect(faultyFields({ ...created, occurred_at: at })).toEqual(["occurred_at"]);
    const reviewed = { ...created, review: { ...review, reviewed_at: at } };
    expect(faultyFields(reviewed)).toEqual(["review.reviewed_at"]);
  });

  test("texts have a maximum length", () => {
    const event = (more: number) => ({
      ...created,
      id: "x".repeat(200 + more),
      review: {
        ...review,
        external_review_id: "x".repeat(255 + more),
        reviewer: "x".repeat(200 + more),
        content: "x".repeat(20_000 + more),
        reviewer_email: `${"x".repeat(248 + more)}@x.com`,
      },
    });
    expect(faultyFields(event(0))).toEqual([]);
    expect(faultyFields(event(1))).toEqual([...TEXTS, "review.reviewer_email"]);
  });

  test.each(["\u0000", "a\ud800", ""])("texts are never %j", (text) => {
    const texts = { reviewer: text, content: text, external_review_id: text };
    expect(faultyFields({ ...created, id: text, review: { ...review, ...texts } })).toEqual(TEXTS);
  });

  test("reviewer, email and content may be null", () => {
    const nothing = { reviewer: null, reviewer_email: null, content: null };
    expect(faultyFields({ ...created, review: { ...review, ...nothing } })).toEqual([]);
  });

  test.each(["a@b, c@d", "Ada <a@b>", "a@b\r\nBcc: c@d", "@", ""])(
    "reviewer_email is not %j",
    (reviewer_email) => {
      const event = { ...created, review: { ...review, reviewer_email } };
      expect(faultyFields(event)).toEqual(["review.reviewer_email"]);
    },
  );

  test.each([0, 4.5, "4", null])("rate is not %p", (rate) => {
    expect(faultyFields({ ...created, review: { ...review, rate } })).toEqual(["review.rate"]);
  });

  test.each(["", "x".repeat(65), 7])("error_code is not %p", (error_code) => {
    expect(faultyFields({ ...pull, connected: false, error_code })).toEqual(["error_code"]);
  });
});

describe("a body", () => {
  const LIST = { events: [`must be a list of 1 to ${MAX_EVENTS} events`] };

  test.each([
    [{ events: [] }, LIST],
    [{ events: Array.from({ length: MAX_EVENTS + 1 }, () => created) }, LIST],
    [{ events: {} }, LIST],
    [{ events: [created], more: 1 }, { more: ["is not a known field"] }],
  ])("%#: is rejected", (body, fieldErrors) => {
    expect(readEvents(body, NOW).fieldErrors).toEqual(fieldErrors);
  });

  test("that is not an object has no references", () => {
    const { changes, references, fieldErrors } = readEvents([created], NOW);
    expect([changes, references, Object.keys(fieldErrors)]).toEqual([[], [], ["body"]]);
  });

  test("reports the errors of its events beside its own", () => {
    const body = { events: [{ ...created, occurred_at: "soon" }], more: 1 };
    expect(Object.keys(readEvents(body, NOW).fieldErrors).toSorted()).toEqual([
      "events.0.occurred_at",
      "more",
    ]);
  });
});

const NOW = new Date("2026-06-01T12:00:00Z");

const review = {
  external_review_id: "r",
  rate: 4,
  reviewer: "Ada",
  content: "Fine",
  reviewed_at: "2026-06-01T11:00:00.000+00:00",
};

const common = { id: "e", occurred_at: "2026-06-01T12:00:00.000+00:00", store_review_site_id: 5 };
const created = { ...common, type: "review.created", review };
const posted = { ...common, type: "response.posted", external_review_id: "r" };
const pull = { ...common, type: "connection.changed", axis: "pull" };
const post = { ...pull, axis: "post" };
const down = { connected: false, error_code: "E-001" };

const SITE = { siteId: 5 };
const REVIEW = { ...SITE, externalReviewId: "r" };

/** What is read from `created`, except for some fields of the review. */
const report = (fields: object) => ({
  kind: "report",
  creates: true,
  review: {
    rate: 4,
    reviewer: "Ada",
    reviewerEmail: undefined,
    content: "Fine",
    reviewedAt: new Date("2026-06-01T11:00:00Z"),
    ...fields,
  },
});

const change = (event: string, fields: object = {}) => ({
  kind: "event",
  event,
  metadata: {},
  errorCode: null,
  isAnnounced: false,
  ...fields,
});

const read = (...events: unknown[]) => readEvents({ events }, NOW);
