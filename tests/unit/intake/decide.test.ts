import { describe, expect, test } from "bun:test";

import { referenceErrors } from "../../../src/intake/admit.ts";
import { type Change, type Reference, reviewKey } from "../../../src/intake/change.ts";
import { apply, draftOf, type Known, outcomeOf } from "../../../src/intake/decide.ts";
import type { ReportedReview } from "../../../src/intake/provider-model.ts";
import type { ReviewState, Site } from "../../../src/intake/queries/look-up.ts";

describe("a report of a review", () => {
  const reports: [string, string[], Event, ReviewState, number][] = [
    ["that changes nothing", [], updated({}), stored, 0],
    ["with another rate", ["review_updated"], updated({ rate: 1 }), stored, 1],
    ["with another reviewer", ["review_updated"], updated({ reviewer: null }), stored, 1],
    ["with another time", ["review_updated"], updated({ reviewedAt: occurredAt }), stored, 1],
    ["with another email", [], updated({ reviewerEmail: "b@mail.test" }), stored, 1],
    ["with the email withdrawn", [], updated({ reviewerEmail: null }), stored, 1],
    [
      "that adds profanity",
      ["review_updated", "profanity_detected"],
      updated({ content: "BAD" }),
      stored,
      1,
    ],
    ["created a second time", [], created, stored, 0],
    ["updated after its removal", [], updated({ rate: 1 }), gone, 0],
    ["created after its removal", ["review_updated"], created, gone, 1],
    [
      "whose reviewer is erased, with a name and a text",
      [],
      updated({ content: "BAD" }),
      erased,
      0,
    ],
    [
      "whose reviewer is erased, with another rate",
      ["review_updated"],
      updated({ rate: 1 }),
      erased,
      1,
    ],
    ["removed", ["review_removed"], removed, stored, 1],
    ["removed twice", [], removed, gone, 0],
  ];
  for (const [name, expected, event, review, writes] of reports)
    test(`${name} is announced as [${expected.join(", ")}]`, () => {
      const outcome = decide([event], known({}, review));
      expect(names(outcome)).toEqual(expected);
      expect(outcome.reviews).toHaveLength(writes);
    });

  test("created after its removal restores the review", () => {
    const outcome = decide([created], known({}, gone));
    expect(outcome.actions[0]).toMatchObject({ metadata: { restored: true } });
    expect(outcome.reviews[0]?.removedAt).toBeNull();
  });

  test("keeps the profanity that it had and announces only new words", () => {
    const before = { ...stored, content: "BAD", profanity: ["BAD"] };
    const outcome = decide([updated({ content: "BAD and WORSE" })], known({}, before));
    expect(outcome.actions.at(-1)).toMatchObject({ metadata: { words: ["WORSE"] } });
    expect(outcome.reviews[0]?.profanity).toEqual(["BAD", "WORSE"]);
  });

  test("announces a profane word again after it was removed in between", () => {
    const before = { ...stored, content: "BAD", profanity: ["BAD"] };
    const events = [updated({ content: "Fine" }), updated({ content: "BAD" })];
    expect(names(decide(events, known({}, before)))).toEqual([
      "review_updated",
      "review_updated",
      "profanity_detected",
    ]);
  });

  test("of a new review is received with its first event and updated by the next", () => {
    const fresh = known({
      reviews: new Map(),
      ids: new Map(),
      newIds: new Map([[reviewKey(5, "r"), 9]]),
    });
    const outcome = decide([created, updated({ rate: 2 }), removed], fresh);
    expect(names(outcome)).toEqual(["review_received", "review_updated", "review_removed"]);
    const rates = outcome.actions.map(
      ({ about }) => "review" in about && Reflect.get(about.review, "rate"),
    );
    expect(rates).toEqual([4, 2, 2]);
    expect(outcome.created).toMatchObject([{ id: 9, rate: 2, removedAt: occurredAt }]);
    expect(outcome.reviews).toEqual([]);
  });
});

describe("a reference", () => {
  const refer = (type: Reference["type"], fields: Partial<Reference> = {}) => ({
    type,
    id: undefined,
    siteId: 5,
    externalReviewId: "r",
    ...fields,
  });
  const fieldErrors = (
    references: readonly Omit<Reference, "index">[],
    existing: readonly ReturnType<typeof reviewKey>[] = [],
  ) =>
    Object.keys(
      referenceErrors(
        references.map((one, index) => ({ ...one, index })),
        (id) => (id === site.id ? site : undefined),
        (key) => existing.includes(key),
      ),
    );
  const elsewhere = { siteId: 6 };
  const unread = { siteId: undefined };

  test("to an unknown review is an error of its field", () => {
    const types = ["review.updated", "review.removed", "response.posted", "response.failed"];
    expect(fieldErrors(types.map((type) => refer(type as Reference["type"])))).toEqual([
      "events.0.review.external_review_id",
      "events.1.review.external_review_id",
      "events.2.external_review_id",
      "events.3.external_review_id",
    ]);
    expect(fieldErrors([refer("response.posted")], [reviewKey(5, "r")])).toEqual([]);
  });

  test("to a review that only a later event of the request creates is an error", () => {
    const [posting, creation] = [refer("response.posted"), refer("review.created")];
    expect(fieldErrors([posting, creation])).toEqual(["events.0.external_review_id"]);
    expect(fieldErrors([creation, posting])).toEqual([]);
  });

  test("to an unknown site is an error of the site only", () => {
    const [report, changed] = [refer("review.updated", elsewhere), refer("connection.changed")];
    expect(
      fieldErrors([report, { ...changed, ...elsewhere, externalReviewId: undefined }]),
    ).toEqual(["events.0.store_review_site_id", "events.1.store_review_site_id"]);
  });

  test.each([
    ["of another type that is not known", refer(undefined)],
    ["at a site that could not be read", refer("review.created", unread)],
    ["at a site that is not the provider's", refer("review.created", elsewhere)],
  ])("is no error after an invalid event %s that may create the review", (_, bad) => {
    const [posting, other] = [refer("response.posted"), { externalReviewId: "other" }];
    const named = fieldErrors([bad, posting, refer("response.posted", other)]);
    expect(named.filter((field) => field.endsWith("review_id"))).toEqual([
      "events.2.external_review_id",
    ]);
  });

  test("that is malformed is left to the schema", () => {
    const blank = { siteId: undefined, externalReviewId: undefined };
    expect(fieldErrors([refer("response.posted", blank), refer("review.updated", unread)])).toEqual(
      [],
    );
    expect(fieldErrors([refer("response.posted", { externalReviewId: undefined })])).toEqual([]);
  });
});

describe("a posting", () => {
  test.each([
    ["queued", stored, false],
    ["no_address", { ...stored, reviewerEmail: null }, false],
    ["suppressed", stored, true],
    ["suppressed", { ...stored, reviewerEmail: null }, true],
  ])("records the homeowner's mail as %s", (expected, review, suppressed) => {
    const suppressing = new Set(suppressed ? [site.partnerId] : []);
    const outcome = decide([posted], known({ suppressing }, review));
    expect(names(outcome)).toEqual(["response_post_succeeded", "homeowner_notified_of_response"]);
    expect(outcome.actions[1]).toMatchObject({ metadata: { native_email: expected } });
  });

  test("of another partner's subscription is not suppressed", () => {
    const outcome = decide([posted], known({ suppressing: new Set([99]) }));
    expect(outcome.actions[1]).toMatchObject({ metadata: { native_email: "queued" } });
  });

  test("that failed carries its code and sends the homeowner no mail", () => {
    const outcome = decide([failed]);
    expect(names(outcome)).toEqual(["response_post_failed"]);
    const facts = { axis: "post", error_code: "E-012" };
    expect(outcome.actions[0]).toMatchObject({ about: { site: facts } });
  });

  test("changes neither review nor site", () => {
    const { reviews, sites } = decide([posted, failed]);
    expect([reviews, sites]).toEqual([[], []]);
  });
});

describe("an axis", () => {
  const broken: Site = { ...site, pullConnected: false, pullErrorCode: "E-002" };
  const changes: [string, string, string[], Site, Event, number][] = [
    ["connected", "connected", [], site, connection("pull", null), 0],
    ["connected", "broken", ["review_pull_disconnected"], site, connection("pull", "E-002"), 1],
    ["broken", "broken", [], broken, connection("pull", "E-002"), 0],
    ["broken", "broken by another code", [], broken, connection("pull", "E-007"), 1],
    ["broken", "connected", ["review_pull_connected"], broken, connection("pull", null), 1],
    [
      "connected beside a broken one",
      "broken",
      ["response_post_disconnected"],
      broken,
      connection("post", "E-001"),
      1,
    ],
  ];
  for (const [was, reported, expected, before, event, writes] of changes)
    test(`that is ${was} and reported ${reported} is announced as [${expected.join(", ")}]`, () => {
      const outcome = decide([event], known({ sites: new Map([[5, before]]) }));
      expect(names(outcome)).toEqual(expected);
      expect(outcome.sites).toHaveLength(writes);
    });

  test("shows the site as it is after the change", () => {
    const [first] = decide([connection("post", "E-001")]).actions;
    const review_site = { connection_status: "disconnected", disconnect_reason: "E-001" };
    expect(first?.about).toMatchObject({ site: { review_site } });
  });

  test("that changes and changes back within a request is announced both times", () => {
    const outcome = decide([connection("pull", "E-002"), connection("pull", null)]);
    expect(names(outcome)).toEqual(["review_pull_disconnected", "review_pull_connected"]);
    expect(outcome.sites).toMatchObject([{ pullConnected: true, pullErrorCode: null }]);
  });
});

const occurredAt = new Date("2026-06-01T12:00:00Z");
const reviewedAt = new Date("2026-06-01T11:00:00Z");

const site: Site = {
  id: 5,
  reviewSiteId: 1,
  slug: "google",
  name: "Google",
  storeId: 3,
  accountId: 2,
  partnerId: 1,
  pullConnected: true,
  pullErrorCode: null,
  postConnected: true,
  postErrorCode: null,
};

const said: ReportedReview = {
  rate: 4,
  reviewer: "Ada",
  reviewerEmail: undefined,
  content: "Fine",
  reviewedAt,
};

const stored: ReviewState = {
  id: 9,
  externalId: null,
  partnerId: 1,
  accountId: 2,
  storeId: 3,
  storeReviewSiteId: 5,
  externalReviewId: "r",
  rate: 4,
  reviewer: "Ada",
  reviewerEmail: "ada@mail.test",
  content: "Fine",
  profanity: [],
  reviewedAt,
  removedAt: null,
  responseBody: null,
  responseUserId: null,
  respondedAt: null,
  flagStatus: null,
  flagReason: null,
  assignedUserId: null,
  isImported: false,
  erasedAt: null,
  createdAt: reviewedAt,
  updatedAt: reviewedAt,
};

const erased: ReviewState = {
  ...stored,
  reviewer: null,
  reviewerEmail: null,
  content: "",
  erasedAt: occurredAt,
};

type Event = Pick<Change, "subject" | "what">;

const about = { siteId: 5, externalReviewId: "r" };

const report = (creates: boolean, fields: Partial<ReportedReview> = {}): Event => ({
  subject: about,
  what: { kind: "report", creates, review: { ...said, ...fields } },
});
const created = report(true);
const updated = (fields: Partial<ReportedReview>): Event => report(false, fields);

const event = (
  name: Extract<Change["what"], { kind: "event" }>["event"],
  {
    errorCode = null,
    isAnnounced = false,
  }: { errorCode?: string | null; isAnnounced?: boolean } = {},
): Event => ({
  subject: about,
  what: { kind: "event", event: name, metadata: {}, errorCode, isAnnounced },
});
const removed = event("review_removed");

const connection = (axis: "pull" | "post", errorCode: string | null): Event => {
  const [prefix, state] = [
    axis === "pull" ? "review_pull" : "response_post",
    errorCode === null,
  ] as const;
  const { what } = event(`${prefix}_${state ? "connected" : "disconnected"}`, { errorCode });
  return { subject: { siteId: 5 }, what };
};

const gone = { ...stored, removedAt: occurredAt };

function known(overrides: Partial<Known> = {}, review = stored): Known {
  return {
    sites: new Map([[site.id, site]]),
    reviews: new Map([[review.id, review]]),
    ids: new Map([[reviewKey(5, "r"), review.id]]),
    newIds: new Map(),
    suppressing: new Set(),
    profanity: new Map([
      ["BAD", ["BAD"]],
      ["BAD and WORSE", ["BAD", "WORSE"]],
    ]),
    ...overrides,
  };
}

function decide(events: readonly Event[], state = known()) {
  const draft = draftOf(state, occurredAt);
  for (const [index, one] of events.entries())
    apply(draft, { ...one, index, id: String(index), occurredAt });
  return outcomeOf(draft);
}

const names = ({ actions }: ReturnType<typeof decide>): string[] => actions.map((one) => one.event);

const posted = event("response_post_succeeded", { isAnnounced: true });
const failed = event("response_post_failed", { errorCode: "E-012" });
