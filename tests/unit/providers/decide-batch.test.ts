import { describe, expect, test } from "bun:test";

import {
  type BatchDecision,
  decideBatch,
  type ProviderRequest,
  claimKey,
  type BatchLookup,
} from "../../../src/providers/decide-batch.ts";
import { readEvents } from "../../../src/providers/input.ts";
import { reviewKey } from "../../../src/providers/model.ts";
import type { ReviewState, Site } from "../../../src/providers/queries/look-up.ts";

describe("a request in a batch", () => {
  test.each<[string, Partial<BatchLookup>, object, unknown]>([
    ["nothing", {}, created("a", "r"), ["a"]],
    ["a partner whose sequence is held", heldPartner, created("a", "r"), "sequence"],
    ["another partner's held sequence", { heldPartners: new Set([2]) }, created("a", "r"), ["a"]],
    [
      "a held sequence, with an id that was seen",
      { ...heldPartner, ...seen },
      created("a", "r"),
      [],
    ],
    ["a held sequence, with a fault", heldPartner, faulty("a", "r"), ["events.0.review.rate"]],
    ["a review locked by another transaction", known, updated("a", "r"), "row"],
    ["a review locked by this batch", locked, updated("a", "r"), ["a"]],
    ["a held review, with an id that was seen", { ...known, ...seen }, updated("a", "r"), []],
    ["a held review, with a fault", known, faulty("a", "r"), ["events.0.review.rate"]],
    ["a connection locked by another transaction", heldSite, changed("a"), "row"],
    ["a held connection, with a review", heldSite, created("a", "r"), ["a"]],
    ["a connection that is free", {}, changed("a"), ["a"]],
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
      expect(decided(given, request([created("a", "r")], "google", { sealedSecret }))).toEqual([
        ["a"],
      ]);
  });

  test("without a timestamp is deferred if its provider requires one", () => {
    const timed = { ...verifiers("google"), requiresTimestamp: true };
    const given = { accepted: new Map([["google", timed]]) };
    const one = (isTimed: boolean) => request([created("a", "r")], "google", { isTimed });
    expect(decided(given, one(false))).toEqual(["secret"]);
    expect(decided(given, one(true))).toEqual([["a"]]);
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
    const [one] = decideBatch(
      [request([created("a", "r"), created("a", "s"), created("b", "t")])],
      found(),
    );
    const accepted = one?.kind === "accepted" ? one.newEvents.map(({ index }) => index) : [];
    expect(accepted).toEqual([0, 2]);
  });

  test("counts once per provider in a batch", () => {
    const other = request([created("a", "r", YELPS)], "yelp");
    expect(decided({}, request([created("a", "r")]), request([created("a", "s")]), other)).toEqual([
      ["a"],
      [],
      ["a"],
    ]);
  });

  test("that was claimed before makes its event a duplicate, whose references are not checked", () => {
    expect(decided(seen, request([updated("a", "gone")]))).toEqual([[]]);
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
    expect(decided({}, request([created("a", "r")]), request([updated("b", "r")]))).toEqual([
      ["a"],
      ["b"],
    ]);
    expect(decided({}, request([changed("a")]), request([updated("b", "r")]))).toEqual([
      ["a"],
      ["events.0.review.external_review_id"],
    ]);
  });

  test("sees nothing of a rejected or deferred request", () => {
    const rejected = request([created("a", "r"), created("b", "r", 7)]);
    const deferred = request([created("a", "r")], "google", { sealedSecret: "former" });
    expect(decided({}, rejected, deferred, request([created("a", "r")]))).toEqual([
      ["events.1.store_review_site_id"],
      "secret",
      ["a"],
    ]);
    expect(decided({}, rejected, request([updated("c", "r")]))).toEqual([
      ["events.1.store_review_site_id"],
      ["events.0.review.external_review_id"],
    ]);
  });
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
const known = { existing: new Set([KEY]) };
const locked = { ...known, reviews: new Map([[KEY, {} as ReviewState]]) };
const heldPartner = { heldPartners: new Set([PARTNER]) };
const heldSite = { heldSites: new Set([SITE]) };
const seen = { seen: new Set([claimKey("google", "a")]) };

function verifiers(sealedSecret: string, sealedPreviousSecret: string | null = null) {
  return { sealedSecret, sealedPreviousSecret, requiresTimestamp: false };
}

/** A request of one provider; `signed` is how it was verified, which may be outdated. */
const request = (
  events: readonly unknown[],
  slug = "google",
  signed: Partial<ProviderRequest["signed"]> = {},
): ProviderRequest => ({
  slug,
  signed: { sealedSecret: slug, isTimed: false, ...signed },
  read: readEvents({ events }, NOW),
  profanity: new Map(),
  sites: new Map([[SITE, { id: SITE, slug: "google", partnerId: PARTNER } as Site]]),
});

function found(given: Partial<BatchLookup> = {}): BatchLookup {
  return {
    sites: new Map([
      [SITE, { id: SITE, slug: "google" } as Site],
      [YELPS, { id: YELPS, slug: "yelp" } as Site],
    ]),
    reviews: new Map(),
    newIds: new Map(),
    profanity: new Map(),
    suppressing: new Set(),
    accepted: new Map([
      ["google", verifiers("google")],
      ["yelp", verifiers("yelp")],
    ]),
    heldSites: new Set(),
    heldPartners: new Set(),
    seen: new Set(),
    existing: new Set(),
    ...given,
  };
}

/** Shows the accepted event ids, the reason of a deferral, or the fields with errors. */
function shown(one: BatchDecision): unknown {
  if (one.kind === "accepted") return one.newEvents.map(({ id }) => id);
  return one.kind === "deferred" ? one.reason : Object.keys(one.fieldErrors);
}

const decided = (given: Partial<BatchLookup>, ...requests: ProviderRequest[]) =>
  decideBatch(requests, found(given)).map(shown);
