import { describe, expect, test } from "bun:test";

import { decideRequests, type Found } from "../../../src/intake/admit.ts";
import {
  type AccountRequest,
  claimOf,
  type Decision,
  type ProviderRequest,
  reviewKey,
} from "../../../src/intake/change.ts";
import { readEvents } from "../../../src/intake/provider-input.ts";
import { serviceRequest } from "../../../src/intake/service-input.ts";
import type { ReviewState, Site } from "../../../src/intake/queries/look-up.ts";

describe("a request in a batch", () => {
  test.each<[string, Partial<Found>, object, unknown]>([
    ["nothing", {}, created("a", "r"), 1],
    ["a partner whose sequence is held", heldPartner, created("a", "r"), "sequence"],
    ["another partner's held sequence", { heldPartners: new Set([2]) }, created("a", "r"), 1],
    [
      "a held sequence, with an id that was seen",
      { ...heldPartner, ...seen },
      created("a", "r"),
      0,
    ],
    ["a held sequence, with a fault", heldPartner, faulty("a", "r"), ["events.0.review.rate"]],
    ["a review locked by another transaction", known, updated("a", "r"), "row"],
    ["a review locked by this batch", locked, updated("a", "r"), 1],
    ["a held review, with an id that was seen", { ...known, ...seen }, updated("a", "r"), 0],
    ["a held review, with a fault", known, faulty("a", "r"), ["events.0.review.rate"]],
    ["a connection locked by another transaction", heldSite, changed("a"), "row"],
    ["a held connection, with a review", heldSite, created("a", "r"), 1],
    ["a connection that is free", {}, changed("a"), 1],
    ["a review that is not there", {}, updated("a", "r"), ["events.0.review.external_review_id"]],
    ["no such connection", {}, created("a", "r", 7), ["events.0.store_review_site_id"]],
    [
      "another provider's connection",
      {},
      created("a", "r", YELPS),
      ["events.0.store_review_site_id"],
    ],
  ])("that meets %s gets its decision", (_, given, one, expected) => {
    expect(decided(given, request([one]))).toEqual([expected]);
  });

  test("with either secret of its provider is accepted", () => {
    const given = { accepted: new Map([["google", verifiers("present", "former")]]) };
    for (const sealedSecret of ["present", "former"])
      expect(decided(given, request([created("a", "r")], "google", { sealedSecret }))).toEqual([1]);
  });

  test("without a timestamp is deferred if its provider requires one", () => {
    const timed = { ...verifiers("google"), requiresTimestamp: true };
    const given = { accepted: new Map([["google", timed]]) };
    const one = (isTimed: boolean) => request([created("a", "r")], "google", { isTimed });
    expect(decided(given, one(false))).toEqual(["secret"]);
    expect(decided(given, one(true))).toEqual([1]);
  });

  test("is deferred if its provider's secret has changed, even if it has field errors", () => {
    const former = { sealedSecret: "former" };
    expect(decided({}, request([created("a", "r")], "google", former))).toEqual(["secret"]);
    expect(decided({}, request([faulty("a", "r")], "google", former))).toEqual(["secret"]);
    expect(decided({}, request([created("a", "r")], "nobody"))).toEqual(["secret"]);
  });

  test("is deferred as a whole if one of its rows is locked", () => {
    expect(decided(known, request([created("a", "s"), updated("b", "r")]))).toEqual(["row"]);
  });
});

describe("an event id", () => {
  test("counts once in a request, for its first event", () => {
    const twice = request([created("a", "r"), created("a", "s"), created("b", "t")]);
    const { draft } = decideRequests([twice], found(), NOW);
    const names = [...draft.reviews.values()].map((one) => one.externalReviewId);
    expect(names).toEqual(["r", "t"]);
  });

  test("counts once per provider in a batch", () => {
    const other = request([created("a", "r", YELPS)], "yelp");
    expect(decided({}, request([created("a", "r")]), request([created("a", "s")]), other)).toEqual([
      1, 0, 1,
    ]);
  });

  test("that was claimed before makes its event a duplicate, whose references are not checked", () => {
    expect(decided(seen, request([updated("a", "gone")]))).toEqual([0]);
  });

  test("that is missing is a field error, and events without an id are not duplicates of each other", () => {
    const { id: _, ...without } = created("a", "r", 7);
    expect(decided({}, request([without, without]))).toEqual([
      [
        "events.0.store_review_site_id",
        "events.1.store_review_site_id",
        "events.0.id",
        "events.1.id",
      ],
    ]);
  });
});

describe("a later request of the batch", () => {
  test("may refer to a review that an earlier request creates", () => {
    expect(decided({}, request([created("a", "r")]), request([updated("b", "r")]))).toEqual([1, 1]);
    expect(decided({}, request([changed("a")]), request([updated("b", "r")]))).toEqual([
      1,
      ["events.0.review.external_review_id"],
    ]);
  });

  test("sees nothing of a rejected or deferred request", () => {
    const rejected = request([created("a", "r"), created("b", "r", 7)]);
    const deferred = request([created("a", "r")], "google", { sealedSecret: "former" });
    expect(decided({}, rejected, deferred, request([created("a", "r")]))).toEqual([
      ["events.1.store_review_site_id"],
      "secret",
      1,
    ]);
    expect(decided({}, rejected, request([updated("c", "r")]))).toEqual([
      ["events.1.store_review_site_id"],
      ["events.0.review.external_review_id"],
    ]);
  });
});

describe("a review that an earlier request of the batch changes", () => {
  const review = { ...stored, removedAt: null, updatedAt: new Date(0) } as ReviewState;
  const stand = { reviews: new Map([[9, review]]), ids: known.ids };
  const person: AccountRequest = {
    sender: "account",
    partnerId: PARTNER,
    reviewId: 9,
    actor: { type: "user", id: 1, name: "Ada" },
    at: NOW,
    chars: 0,
    read: () => Promise.reject(new Error("It was read.")),
  };

  test("is answered with the time of that change, also if the action of a person changes nothing", () => {
    const commands = new Map([[person, () => ({ kind: "nothing" }) as const]]);
    const given = found({ ...stand, commands });
    const { decisions } = decideRequests([request([updated("a", "r")]), person], given, NOW);
    const [, last] = decisions;
    expect(last?.kind === "accepted" && last.review?.updatedAt).toEqual(NOW);
  });
});

test("a service names only reviews that exist, and none that a request before it creates", () => {
  const action = {
    id: "x",
    event: "review_flagged",
    actor: { type: "system" },
    occurred_at: at,
    review_id: 100 * SITE,
    metadata: { reason: "Spam" },
  } as const;
  const service = serviceRequest({ serviceId: 7, actsForPartners: null }, [action], NOW);
  const { decisions } = decideRequests([request([created("a", "r")]), service], found(), NOW);
  expect(decisions.map(shown)).toEqual([1, ["actions.0.review_id"]]);
});

const NOW = new Date("2026-06-01T12:00:00Z");
const at = NOW.toISOString();
const SITE = 5;
const YELPS = 6;
const PARTNER = 1;

const event = (id: string, type: string, fields: object, site = SITE) => ({
  id,
  type,
  occurred_at: at,
  store_review_site_id: site,
  ...fields,
});

const review = (external: string, rate = 4) => ({
  review: { external_review_id: external, rate, reviewer: null, content: null, reviewed_at: at },
});

const created = (id: string, external: string, site = SITE) =>
  event(id, "review.created", review(external), site);

const updated = (id: string, external: string) => event(id, "review.updated", review(external));
const faulty = (id: string, external: string) => event(id, "review.created", review(external, 6));
const changed = (id: string) => event(id, "connection.changed", { axis: "pull", connected: true });
const KEY = reviewKey(SITE, "r");
const known = { ids: new Map([[KEY, 9]]), heldReviews: new Set([9]) };
const stored: Partial<ReviewState> = {
  id: 9,
  storeReviewSiteId: SITE,
  profanity: [],
  reviewedAt: NOW,
};
const locked = { ids: known.ids, reviews: new Map([[9, stored as ReviewState]]) };
const heldPartner = { heldPartners: new Set([PARTNER]) };
const heldSite = { heldSites: new Set([SITE]) };
const seen = { seen: new Set([claimOf({ sender: "provider", slug: "google" }, "a")]) };

function verifiers(sealedSecret: string, sealedPreviousSecret: string | null = null) {
  return { sealedSecret, sealedPreviousSecret, requiresTimestamp: false };
}

/** A request of one provider; `signed` is how it was verified, which may be outdated. */
const request = (
  events: readonly unknown[],
  slug = "google",
  signed: Partial<ProviderRequest["signed"]> = {},
): ProviderRequest => ({
  sender: "provider",
  chars: 1,
  slug,
  signed: { sealedSecret: slug, isTimed: false, ...signed },
  read: readEvents({ events }, NOW),
  profanity: new Map(),
  sites: new Map([[SITE, { id: SITE, slug: "google", partnerId: PARTNER } as Site]]),
});

function found(given: Partial<Found> = {}): Found {
  return {
    sites: new Map([
      [SITE, { id: SITE, slug: "google" } as Site],
      [YELPS, { id: YELPS, slug: "yelp" } as Site],
    ]),
    reviews: new Map(),
    ids: new Map(),
    newIds: new Map(
      ["r", "s", "t"].flatMap((name, i) =>
        [SITE, YELPS].map((site) => [reviewKey(site, name), 100 * site + i] as const),
      ),
    ),
    profanity: new Map(),
    suppressing: new Set(),
    accepted: new Map([
      ["google", verifiers("google")],
      ["yelp", verifiers("yelp")],
    ]),
    heldSites: new Set(),
    heldReviews: new Set(),
    heldPartners: new Set(),
    seen: new Set(),
    users: new Map(),
    owners: new Map(),
    commands: new Map(),
    ...given,
  };
}

/** Shows the number of accepted events, the reason of a deferral, or the fields with errors. */
function shown(one: Decision): unknown {
  if (one.kind === "accepted") return one.accepted;
  if (one.kind === "deferred") return one.reason;
  return "errors" in one ? Object.keys(one.errors ?? {}) : one;
}

const decided = (given: Partial<Found>, ...requests: ProviderRequest[]) =>
  decideRequests(requests, found(given), NOW).decisions.map(shown);
