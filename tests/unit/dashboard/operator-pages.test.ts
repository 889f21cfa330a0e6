import { describe, expect, test } from "bun:test";

import {
  erasureBody,
  missingIn,
  newErasure,
} from "../../../src/dashboard/app/pages/erasures/erasure-draft.ts";
import { partsOf, shortReason } from "../../../src/dashboard/app/pages/inbox/action-parts.ts";
import { pagesLike, topicsLike } from "../../../src/dashboard/app/search/hit.ts";

describe("an erasure", () => {
  const reviewer = newErasure(undefined);

  test("is of a user, or of a reviewer by email, reviews or both, at one company or all", () => {
    expect(erasureBody(newErasure(7))).toEqual({ user_id: 7 });
    const email = { ...reviewer, reviewer_email: " ada@mail.example " };
    expect(erasureBody(email)).toEqual({ reviewer_email: "ada@mail.example" });
    const ids = { ...reviewer, review_ids: "4, 5\n6;x" };
    expect(erasureBody({ ...ids, partner_id: 3 })).toEqual({
      review_ids: [4, 5, 6, Number.NaN],
      partner_id: 3,
    });
    expect(erasureBody({ ...email, account_id: 9 })).toEqual({
      reviewer_email: "ada@mail.example",
      account_id: 9,
    });
  });

  test("says what is missing: the person, then the confirmation", () => {
    const drafts = [reviewer, { ...reviewer, review_ids: " " }, newErasure(7)];
    expect([...drafts, { ...newErasure(7), isUnderstood: true }].map(missingIn)).toEqual([
      "Enter the email address first.",
      "Enter the email address first.",
      "Tick the box first.",
      undefined,
    ]);
  });
});

test("a long list of allowed values in a reason becomes their number", () => {
  const values = ["a", "b", "c", "d", "e"];
  const text = `must be one of ${values.join(", ")}`;
  expect(shortReason(text)).toEqual({ text: "must be one of 5 values", values });
  for (const short of ["is required", "must be one of a, b"])
    expect(shortReason(short)).toEqual({ text: short, values: [] });
});

test("an action of the inbox is named by its event and its id, whatever the service inserted", () => {
  expect(partsOf({ event: "note_added", id: "n-1" })).toEqual({ event: "note_added", id: "n-1" });
  for (const action of [null, 7, "text", [], { event: 7 }])
    expect(partsOf(action)).toEqual({ event: "Unreadable action", id: "" });
});

test("the search finds settings only of pages that the user has", () => {
  const found = (paths: readonly string[]) =>
    topicsLike(
      paths.map((path) => ({ path })),
      "super_admin",
      "audit",
    ).map(({ title }) => title);
  expect(found(["/audit"])).toEqual(["Export the audit log", "Who viewed a secret or a token"]);
  expect(found(["/audit-webhook"])).toEqual(["Where the audit log is sent"]);
});

test("the search lists pages by other words for them, and actions whose titles match first", () => {
  const sso = [{ path: "/sso", title: "Single sign-on" }];
  expect(pagesLike(sso, "SSO").map(({ href }) => href)).toEqual(["/sso"]);
  const actions = (role: string, path: string, typed: string) =>
    topicsLike([{ path }], role, typed).map(({ title }) => title);
  expect(actions("super_admin", "/users", "invite")).toEqual(["New user"]);
  expect(actions("super_admin", "/companies", "new partner")).toEqual(["New partner"]);
  expect(actions("partner_owner", "/team", "invite")).toEqual(["Invite a colleague"]);
  expect(actions("partner_admin", "/team", "invite")).toEqual([]);
});
