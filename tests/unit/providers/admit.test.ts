import { describe, expect, test } from "bun:test";

import {
  type Admission,
  admit,
  type Asking,
  claimKey,
  type Found,
} from "../../../src/providers/admit.ts";
import { readEvents } from "../../../src/providers/input.ts";
import { reviewKey } from "../../../src/providers/model.ts";
import type { ReviewState, Site } from "../../../src/providers/queries/look-up.ts";

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

/** A request of one provider, signed with its secret, of now or before. */
const asking = (events: readonly unknown[], slug = "google", sealedSecret = slug): Asking => ({
  slug,
  sealedSecret,
  read: readEvents({ events }, NOW),
  profanity: new Map(),
  partners: [PARTNER],
});

function found(given: Partial<Found> = {}): Found {
  return {
    sites: new Map([
      [SITE, { id: SITE, slug: "google" } as Site],
      [YELPS, { id: YELPS, slug: "yelp" } as Site],
    ]),
    reviews: new Map(),
    newIds: new Map(),
    suppressing: new Set(),
    sealedSecrets: new Map([
      ["google", "google"],
      ["yelp", "yelp"],
    ]),
    heldSites: new Set(),
    heldPartners: new Set(),
    seen: new Set(),
    existing: new Set(),
    ...given,
  };
}

/** The ids of the events that are taken, why the request leaves, or the fields that are wrong. */
function told(one: Admission): unknown {
  if (one.kind === "admitted") return one.fresh.map(({ id }) => id);
  return one.kind === "left" ? one.because : Object.keys(one.fieldErrors);
}
const admitted = (given: Partial<Found>, ...asked: Asking[]) =>
  admit(asked, found(given)).map(told);

const KEY = reviewKey(SITE, "r");
const known = { existing: new Set([KEY]) };
const locked = { ...known, reviews: new Map([[KEY, {} as ReviewState]]) };
const heldPartner = { heldPartners: new Set([PARTNER]) };
const heldSite = { heldSites: new Set([SITE]) };
const seen = { seen: new Set([claimKey("google", "a")]) };

describe("of what a request meets", () => {
  test.each<[string, Partial<Found>, object, unknown]>([
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
    ["a review that somebody else holds", known, updated("a", "r"), "row"],
    ["a review that this group holds", locked, updated("a", "r"), ["a"]],
    ["a held review, with an id that was seen", { ...known, ...seen }, updated("a", "r"), []],
    ["a held review, with a fault", known, faulty("a", "r"), ["events.0.review.rate"]],
    ["a connection that somebody else holds", heldSite, changed("a"), "row"],
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
  ])("%s leads to its admission", (_, given, one, expected) => {
    expect(admitted(given, asking([one]))).toEqual([expected]);
  });

  test("another secret of its provider by now makes it leave, whatever else is wrong", () => {
    expect(admitted({}, asking([created("a", "r")], "google", "former"))).toEqual(["secret"]);
    expect(admitted({}, asking([faulty("a", "r")], "google", "former"))).toEqual(["secret"]);
    expect(admitted({}, asking([created("a", "r")], "nobody"))).toEqual(["secret"]);
  });

  test("one held row among several makes all of it leave", () => {
    expect(admitted(known, asking([created("a", "s"), updated("b", "r")]))).toEqual(["row"]);
  });
});

describe("an event id", () => {
  test("counts once in a request, for its first event", () => {
    const [one] = admit(
      [asking([created("a", "r"), created("a", "s"), created("b", "t")])],
      found(),
    );
    const fresh = one?.kind === "admitted" ? one.fresh.map(({ index }) => index) : [];
    expect(fresh).toEqual([0, 2]);
  });

  test("counts once in a group, for each provider", () => {
    const other = asking([created("a", "r", YELPS)], "yelp");
    expect(admitted({}, asking([created("a", "r")]), asking([created("a", "s")]), other)).toEqual([
      ["a"],
      [],
      ["a"],
    ]);
  });

  test("that was seen makes what it refers to by now no fault", () => {
    expect(admitted(seen, asking([updated("a", "gone")]))).toEqual([[]]);
  });

  test("that is missing is a fault of its event, and makes it no duplicate of another", () => {
    const { id: _, ...without } = created("a", "r", 7);
    expect(admitted({}, asking([without, without]))).toEqual([
      [
        "events.0.store_review_site_id",
        "events.1.store_review_site_id",
        "events.0.id",
        "events.1.id",
      ],
    ]);
  });
});

describe("a later request of the group", () => {
  test("may refer to a review that one before it reports", () => {
    expect(admitted({}, asking([created("a", "r")]), asking([updated("b", "r")]))).toEqual([
      ["a"],
      ["b"],
    ]);
    expect(admitted({}, asking([changed("a")]), asking([updated("b", "r")]))).toEqual([
      ["a"],
      ["events.0.review.external_review_id"],
    ]);
  });

  test("sees nothing of one that was refused or has left", () => {
    const refused = asking([created("a", "r"), created("b", "r", 7)]);
    const left = asking([created("a", "r")], "google", "former");
    expect(admitted({}, refused, left, asking([created("a", "r")]))).toEqual([
      ["events.1.store_review_site_id"],
      "secret",
      ["a"],
    ]);
    expect(admitted({}, refused, asking([updated("c", "r")]))).toEqual([
      ["events.1.store_review_site_id"],
      ["events.0.review.external_review_id"],
    ]);
  });
});
