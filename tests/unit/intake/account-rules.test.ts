import { describe, expect, test } from "bun:test";

import {
  decideAssignment,
  decideFlag,
  decideFlagStatus,
  decideResponse,
  decideResponseDeletion,
  type ReviewDecision,
} from "../../../src/intake/account-rules.ts";
import type { ReviewEventValue } from "../../../src/outbox/event.ts";
import {
  decideEvent,
  type FlagMove,
  type FlagStatus,
  type ReviewState,
} from "../../../src/reviews/events.ts";

const now = new Date("2026-06-01T12:00:00Z");
const ACT = { userId: 7, at: now };
const RESPONSE = { responseBody: "Thanks", responseUserId: 7, respondedAt: now };

describe("a response", () => {
  test.each([
    ["a fresh review", fresh, "response_submitted"],
    ["an answered review", { ...fresh, responseBody: "Hi" }, "response_updated"],
    ["the same answer", { ...fresh, responseBody: "Thanks" }, "response_updated"],
    ["a removed review", removed, "review_removed"],
  ])("to %s is %s", (_, review, expected) => {
    expect(short(decideResponse(review, "Thanks", ACT))).toBe(expected);
  });

  test.each([
    ["nothing", fresh, "no_response"],
    ["an answer", { ...fresh, responseBody: "Hi" }, "response_deleted"],
    ["an answer to a removed review", { ...removed, responseBody: "Hi" }, "response_deleted"],
  ])("deletion with %s is decided as %s", (_, review, expected) => {
    expect(short(decideResponseDeletion(review, ACT))).toBe(expected);
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
      expect(short(decideFlag({ ...fresh, flagStatus: status }, "Spam", ACT))).toBe(expected);
    },
  );

  test("on a removed review is rejected", () => {
    expect(short(decideFlag(removed, "Spam", ACT))).toBe("review_removed");
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
    const decision = decideFlagStatus(
      { ...fresh, flagStatus: from },
      { to, native_email: "queued" },
      ACT,
    );
    expect(short(decision)).toBe(words[word as keyof typeof words]);
  });

  test("on a removed review can be moved", () => {
    const decision = decideFlagStatus(
      { ...removed, flagStatus: "open" },
      { to: "accepted", native_email: "suppressed" },
      ACT,
    );
    expect(decision).toEqual({
      kind: "write",
      event: {
        name: "flag_status_changed",
        metadata: { from: "open", to: "accepted", native_email: "suppressed" },
      },
      changes: { flagStatus: "accepted" },
    });
  });
});

describe("an assignment", () => {
  test.each([
    [null, "review_assigned"],
    [8, "review_assigned"],
    [7, "nothing"],
  ])("to user 7 of a review assigned to %p is decided as %s", (assignedUserId, expected) => {
    expect(short(decideAssignment({ ...fresh, assignedUserId }, 7, ACT))).toBe(expected);
  });
});

const REVIEWED = { content: "Late.", reviewed_at: "2026-06-01T12:00:00.000+00:00" };
const UPDATED = { ...REVIEWED, changed: ["content"] };
/** The changes of each event at a review without a response, a flag and an assignee, and where it changes nothing. */
const EFFECTS: Readonly<
  Record<
    ReviewEventValue,
    readonly [metadata: object, changes: object, unchanged?: readonly Partial<ReviewState>[]]
  >
> = {
  review_received: [REVIEWED, { removedAt: null }],
  review_updated: [{ ...UPDATED, restored: false }, {}],
  review_removed: [{}, { removedAt: now }, [{ removedAt: new Date(0) }]],
  profanity_detected: [{ words: ["damn"] }, {}],
  review_flagged: [
    { reason: "Spam" },
    { flagStatus: "open", flagReason: "Spam" },
    [{ flagStatus: "open" }, { flagStatus: "under_review" }],
  ],
  flag_status_changed: [
    { from: "open", to: "accepted", native_email: "queued" },
    { flagStatus: "accepted", flagReason: "" },
    [{ flagStatus: "accepted" }],
  ],
  review_assigned: [{ user_id: 8 }, { assignedUserId: 8 }, [{ assignedUserId: 8 }]],
  note_added: [{ body: "Call her." }, {}],
  response_submitted: [{ body: "Thanks" }, RESPONSE],
  response_updated: [{ body: "Thanks" }, RESPONSE],
  response_deleted: [
    {},
    { responseBody: null, responseUserId: null, respondedAt: null },
    [{ responseBody: null }],
  ],
  homeowner_notified_of_response: [{ native_email: "queued" }, {}],
};

test.each(Object.entries(EFFECTS))(
  "%s changes its columns of the review alone, or nothing if they are so already",
  (name, [metadata, changes, unchanged = []]) => {
    const decide = (state: Partial<ReviewState>) =>
      decideEvent({ ...fresh, responseBody: "Hi", ...state }, { name, metadata }, ACT);
    expect(decide({})).toEqual(changes);
    for (const state of unchanged) expect(decide(state)).toBe("unchanged");
  },
);

test("an update that restores a removed review clears its removal", () => {
  const event = { name: "review_updated", metadata: { ...UPDATED, restored: true } };
  expect(decideEvent(removed, event, ACT)).toEqual({ removedAt: null });
});

test("an event about a site changes no review", () => {
  const event = { name: "review_pull_connected", metadata: {} };
  expect(decideEvent(fresh, event, ACT)).toEqual({});
});

test("metadata of another event is refused", () => {
  const event = { name: "note_added", metadata: { reason: "Spam" } };
  expect(() => decideEvent(fresh, event, ACT)).toThrow();
});
const fresh = { removedAt: null, responseBody: null, flagStatus: null, assignedUserId: null };
const removed = { ...fresh, removedAt: now };

function short(decision: ReviewDecision): string {
  if (decision.kind === "write") return decision.event.name;
  return decision.kind === "refuse" ? decision.code : "nothing";
}
