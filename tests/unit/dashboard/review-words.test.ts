import { describe, expect, test } from "bun:test";

import { CATALOG } from "../../../src/outbox/event.ts";
import { ERROR_REASONS } from "../../../src/intake/provider-model.ts";
import {
  transitionsOf,
  reviewQuery,
  searchOf,
  VIEWS,
} from "../../../src/dashboard/app/pages/reviews/review-model.ts";
import {
  describeEntry,
  DESCRIPTIONS,
  type HistoryEntry,
  postingOf,
} from "../../../src/dashboard/app/pages/reviews/history.ts";
import {
  byStore,
  ERROR_TEXTS,
  errorText,
} from "../../../src/dashboard/app/pages/reviews/site-words.ts";

describe("the history in words", () => {
  test.each([
    ["review_received", {}, google, "Google published the review"],
    [
      "review_updated",
      { changed: ["rate", "content"] },
      google,
      "Google published a change to the rating and the text",
    ],
    [
      "review_updated",
      { changed: [], restored: true },
      google,
      "Google restored the removed review",
    ],
    ["review_flagged", { reason: "Spam" }, kim, "Kim flagged the review [Spam]"],
    [
      "flag_status_changed",
      { from: "open", to: "under_review" },
      kim,
      "Kim set the flag to “Under review”",
    ],
    ["review_assigned", { user_id: 7 }, kim, "Kim assigned the review to Alex"],
    ["review_assigned", { user_id: 8 }, kim, "Kim assigned the review to a former colleague"],
    ["note_added", { body: "Call him" }, kim, "Kim added a note [Call him]"],
  ])("describes %s with %j", (event, metadata, actor, expected) => {
    const { who, what, quote } = happened(event, metadata, actor);
    expect(`${who} ${what}${quote === undefined ? "" : ` [${quote}]`}`).toBe(expected);
  });

  test("explains why a response was not published, and the next step", () => {
    expect(happened("response_post_failed", { error_code: "E-013" }, google).more).toBe(
      "The response is too long for the review site. Shorten the response. (E-013)",
    );
  });

  test.each([
    [["review_received", "response_submitted"], "waiting"],
    [["response_submitted", "response_post_succeeded", "note_added"], "published"],
    [["response_post_succeeded", "homeowner_notified_of_response"], "published"],
    [["response_post_succeeded", "response_updated"], "waiting"],
    [["response_submitted", "response_post_failed"], "rejected"],
    // A response that was written on the site itself.
    [["review_received"], "published"],
  ])("shows a response after %j as %s", (events, state) => {
    const history = events.map((event, id) => ({ id, event, occurred_at: "" }));
    expect<string>(postingOf(history).state).toBe(state);
  });

  test("has words and an icon for each event that the history of a review has", () => {
    const events = CATALOG.filter(({ category }) => !["connection", "test"].includes(category));
    expect(Object.keys(DESCRIPTIONS).toSorted()).toEqual(
      events.map(({ value }) => value as string).toSorted(),
    );
  });

  test("describes an unknown event, and one without metadata", () => {
    expect(happened("review_boosted", null, null)).toEqual({
      who: "Somebody",
      what: "review boosted",
    });
    expect(happened("constructor", {}, kim).what).toBe("constructor");
    expect(happened("note_added", { body: 7 }, kim)).toEqual({ who: "Kim", what: "added a note" });
  });
});

test("the error codes and reasons are those of the API", () => {
  const reasons = Object.entries(ERROR_TEXTS).map(([code, { reason }]) => [code, reason]);
  expect(Object.fromEntries(reasons)).toEqual({ ...ERROR_REASONS });
  expect(errorText("E-999").advice).toContain("Send the code");
});

test.each([
  [undefined, []],
  ["open", ["under_review", "accepted", "rejected", "withdrawn"]],
  ["under_review", ["accepted", "rejected", "withdrawn"]],
  ["accepted", []],
  ["rejected", []],
  ["withdrawn", []],
] as const)("a flag that is %p may become %j", (status, moves) => {
  expect(transitionsOf(status).map(({ to }) => to)).toEqual([...moves]);
});

describe("the filters of the reviews", () => {
  const none = {
    q: undefined,
    store: undefined,
    rate: undefined,
    source: undefined,
    answered: undefined,
    flag: undefined,
    assigned: undefined,
  };

  test("become the API's query", () => {
    const values = {
      q: "cold soup",
      store: "4",
      rate: "2",
      source: "yelp",
      answered: "false",
      flag: "open",
      assigned: "9",
    };
    expect(reviewQuery(values, 3)).toEqual({
      q: "cold soup",
      store_id: 4,
      rate: 2,
      source_platform: "yelp",
      responded: "false",
      flag_status: "open",
      assigned_user_id: 9,
    });
    expect(reviewQuery({ ...none, assigned: "me" }, 3)).toEqual({ assigned_user_id: 3 });
  });

  test.each([
    { rate: "6" },
    { rate: "1.5" },
    { store: "0" },
    { store: "2147483648" },
    { store: "-1" },
    { answered: "yes" },
    { flag: "closed" },
    { assigned: "you" },
    { source: "x".repeat(65) },
    { q: "x".repeat(201) },
  ])("drop values that the API would reject: %j", (values) => {
    expect(reviewQuery({ ...none, ...values }, 3)).toEqual({});
  });

  test("give every view a different address", () => {
    const searches = VIEWS.map(({ values }) => searchOf(values));
    expect(searches[0]).toBe("");
    expect(new Set(searches).size).toBe(VIEWS.length);
  });
});

test("stores with a broken connection come first, each with its broken ones first", () => {
  const site = (store: string, name: string, pull: boolean, post = true) => ({
    store_id: store.codePointAt(0) ?? 0,
    store_name: store,
    name,
    pull: { connected: pull },
    post: { connected: post },
  });
  const groups = byStore([
    site("B", "Yelp", true),
    site("C", "Google", true),
    site("C", "Yelp", true, false),
    site("A", "Yelp", true),
    site("A", "Google", true),
  ]);
  expect(
    groups.map(({ name, broken, connections }) => [
      name,
      broken,
      connections.map((one) => one.name),
    ]),
  ).toEqual([
    ["C", 1, ["Yelp", "Google"]],
    ["A", 0, ["Google", "Yelp"]],
    ["B", 0, ["Yelp"]],
  ]);
});

const kim = { type: "user", id: 3, name: "Kim" };
const google = { type: "system", id: null, name: "google" };

const names = {
  user: (id: number) => (id === 7 ? "Alex" : "a former colleague"),
  source: (slug: string) => (slug === "google" ? "Google" : slug),
};

const happened = (event: string, metadata: unknown, actor: unknown = kim) => {
  const entry: HistoryEntry = { id: 1, event, actor, metadata, occurred_at: "" };
  return describeEntry(entry, names);
};
