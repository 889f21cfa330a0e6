import { describe, expect, test } from "bun:test";

import {
  decideAssignment,
  decideNote,
  decideFlag,
  decideFlagStatus,
  decideResponse,
  decideResponseDeletion,
  type ReviewDecision,
} from "../../../src/reviews/decide.ts";
import type { ReviewEventValue } from "../../../src/outbox/event.ts";
import { changesOf, type FlagMove, type FlagStatus } from "../../../src/reviews/events.ts";

const now = new Date("2026-06-01T12:00:00Z");
const RESPONSE = { responseBody: "Thanks", responseUserId: 7, respondedAt: now };

describe("a response", () => {
  test.each([
    ["a fresh review", fresh, "response_submitted"],
    ["an answered review", { ...fresh, responseBody: "Hi" }, "response_updated"],
    ["the same answer", { ...fresh, responseBody: "Thanks" }, "response_updated"],
    ["a removed review", removed, "review_removed"],
  ])("to %s is %s", (_, review, expected) => {
    expect(short(decideResponse(review, "Thanks"))).toBe(expected);
  });

  test("is recorded with its text", () => {
    expect(decideResponse(fresh, "Thanks")).toEqual({
      kind: "write",
      event: { name: "response_submitted", metadata: { body: "Thanks" } },
    });
  });

  test.each([
    ["nothing", fresh, "no_response"],
    ["an answer", { ...fresh, responseBody: "Hi" }, "response_deleted"],
    ["an answer to a removed review", { ...removed, responseBody: "Hi" }, "response_deleted"],
  ])("deletion with %s is decided as %s", (_, review, expected) => {
    expect(short(decideResponseDeletion(review))).toBe(expected);
  });
});

const STATES = [null, "open", "under_review", "accepted", "rejected", "withdrawn"] as const;

describe("a flag", () => {
  test.each([
    [null, "review_flagged"],
    ["open", "flag_open"],
    ["under_review", "flag_open"],
    ["accepted", "review_flagged"],
    ["rejected", "review_flagged"],
    ["withdrawn", "review_flagged"],
  ] as [FlagStatus | null, string][])(
    "on a review with a flag %p is decided as %s",
    (status, expected) => {
      expect(short(decideFlag({ ...fresh, flagStatus: status }, "Spam"))).toBe(expected);
    },
  );

  test("on a removed review is rejected", () => {
    expect(short(decideFlag(removed, "Spam"))).toBe("review_removed");
  });

  // Rows: the requested status; columns: the present one.
  const expected: Record<FlagMove, readonly string[]> = {
    under_review: ["no", "moved", "nothing", "no", "no", "no"],
    accepted: ["no", "moved", "moved", "nothing", "no", "no"],
    rejected: ["no", "moved", "moved", "no", "nothing", "no"],
    withdrawn: ["no", "moved", "moved", "no", "no", "nothing"],
  };
  const words = { no: "no_open_flag", moved: "flag_status_changed", nothing: "nothing" };
  test.each(
    STATES.flatMap((from, i) =>
      (Object.keys(expected) as FlagMove[]).map((to) => [from, to, expected[to][i]] as const),
    ),
  )("from %p to %s: %s", (from, to, word) => {
    const decision = decideFlagStatus({ ...fresh, flagStatus: from }, to, "queued");
    expect(short(decision)).toBe(words[word as keyof typeof words]);
  });

  test("on a removed review can be moved", () => {
    const decision = decideFlagStatus({ ...removed, flagStatus: "open" }, "accepted", "suppressed");
    expect(decision).toEqual({
      kind: "write",
      event: {
        name: "flag_status_changed",
        metadata: { from: "open", to: "accepted", native_email: "suppressed" },
      },
    });
  });
});

describe("an assignment", () => {
  test.each([
    [null, "review_assigned"],
    [8, "review_assigned"],
    [7, "nothing"],
  ])("to user 7 of a review assigned to %p is decided as %s", (assignedUserId, expected) => {
    expect(short(decideAssignment({ assignedUserId }, 7))).toBe(expected);
  });

  test("is recorded with the user", () => {
    expect(decideAssignment({ assignedUserId: null }, 7)).toEqual({
      kind: "write",
      event: { name: "review_assigned", metadata: { user_id: 7 } },
    });
  });
});

test("a note is an event with its text", () => {
  expect(decideNote("Call her.")).toEqual({
    kind: "write",
    event: { name: "note_added", metadata: { body: "Call her." } },
  });
});

const REVIEWED = { content: "Late.", reviewed_at: "2026-06-01T12:00:00.000+00:00" };
const EFFECTS: Readonly<Record<ReviewEventValue, readonly [metadata: object, changes: object]>> = {
  review_received: [REVIEWED, {}],
  review_updated: [{ ...REVIEWED, changed: ["content"], restored: false }, {}],
  review_removed: [{}, {}],
  profanity_detected: [{ words: ["damn"] }, {}],
  review_flagged: [{ reason: "Spam" }, { flagStatus: "open", flagReason: "Spam" }],
  flag_status_changed: [
    { from: "open", to: "accepted", native_email: "queued" },
    { flagStatus: "accepted" },
  ],
  review_assigned: [{ user_id: 8 }, { assignedUserId: 8 }],
  note_added: [{ body: "Call her." }, {}],
  response_submitted: [{ body: "Thanks" }, RESPONSE],
  response_updated: [{ body: "Thanks" }, RESPONSE],
  response_deleted: [{}, { responseBody: null, responseUserId: null, respondedAt: null }],
  homeowner_notified_of_response: [{ native_email: "queued" }, {}],
};

test.each(Object.entries(EFFECTS))("%s changes its columns of the review alone", (event, one) => {
  const [metadata, changes] = one;
  expect(changesOf(event, metadata, { userId: 7, at: now })).toEqual(changes);
});

test("an event about a site changes no review", () => {
  expect(changesOf("review_pull_connected", {}, { userId: null, at: now })).toEqual({});
});

test("metadata of another event is refused", () => {
  expect(() => changesOf("note_added", { reason: "Spam" }, { userId: 7, at: now })).toThrow();
});
const fresh = { removedAt: null, responseBody: null, flagStatus: null };
const removed = { ...fresh, removedAt: now };

function short(decision: ReviewDecision): string {
  if (decision.kind === "write") return decision.event.name;
  return decision.kind === "refuse" ? decision.code : "nothing";
}
