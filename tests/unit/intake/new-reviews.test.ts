import { expect, test } from "bun:test";

import type { ProviderRequest } from "../../../src/intake/change.ts";
import { readEvents } from "../../../src/intake/provider-input.ts";
import { reportsOfNewReviews } from "../../../src/intake/new-reviews.ts";
import type { Site } from "../../../src/intake/queries/look-up.ts";

const NOW = new Date("2026-06-01T12:00:00.000Z");
const SITE = 5;

test.each<[string, boolean, readonly ProviderRequest[]]>([
  ["one new review", true, [request([created("a", "r")])]],
  [
    "several of several requests",
    true,
    [request([created("a", "r"), created("b", "s")]), request([created("c", "t")])],
  ],
  [
    "the same review at two connections",
    true,
    [request([created("a", "r"), created("b", "r", 6)])],
  ],
  ["an event id twice", false, [request([created("a", "r")]), request([created("a", "s")])]],
  ["a review twice", false, [request([created("a", "r")]), request([created("b", "r")])]],
  [
    "another event",
    false,
    [request([created("a", "r"), { ...created("b", "s"), type: "review.updated" }])],
  ],
  ["a field error", false, [request([created("a", "r"), 1])]],
  ["a connection that was not found", false, [request([created("a", "r", 7)])]],
  ["a connection of another provider", false, [request([created("a", "r")], "yelp")]],
])("a batch with %s is written as new: %p", (_, expected, requests) => {
  expect(reportsOfNewReviews(requests) !== undefined).toBe(expected);
});

function request(events: readonly unknown[], slug = "google"): ProviderRequest {
  return {
    sender: "provider",
    chars: 1,
    slug,
    signed: { sealedSecret: slug, isTimed: false },
    read: readEvents({ events }, NOW),
    profanity: new Map(),
    sites: new Map([SITE, 6].map((id) => [id, { id, slug: "google" } as Site])),
  };
}

function created(id: string, external: string, site = SITE) {
  const at = "2026-06-01T12:00:00.000+00:00";
  const review = { external_review_id: external, rate: 4, reviewer: null, content: "x" };
  return {
    id,
    type: "review.created",
    occurred_at: at,
    store_review_site_id: site,
    review: { ...review, reviewed_at: at },
  };
}
