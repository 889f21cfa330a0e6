import { afterAll, beforeAll, describe, expect, test } from "bun:test";

import { actionsOf, AUDIT_ACTIONS } from "../../../src/audit/model.ts";
import { entryWords, phraseOf } from "../../../src/audit/words.ts";
import { ApiError } from "../../../src/api/client.ts";
import { allPages, apiErrorOf, fieldError } from "../../../src/dashboard/app/api/client.ts";
import {
  AUDIT_CATEGORIES,
  auditQuery,
  detailPairs,
} from "../../../src/dashboard/app/pages/audit/audit-words.ts";
import {
  accountDraft,
  changedAccount,
  changedPartner,
  companyBody,
  partnerDraft,
  storeNames,
} from "../../../src/dashboard/app/pages/companies/company-drafts.ts";
import {
  problemsOf,
  latenessOf,
  lettersOf,
} from "../../../src/dashboard/app/pages/dispatcher/problems.ts";
import {
  draftOf,
  userChanges,
  withRole,
} from "../../../src/dashboard/app/pages/users/user-drafts.ts";
import { errorMessageOf } from "../../../src/dashboard/app/ui/error-message.ts";
import { instantOf, localTimeOf } from "../../../src/dashboard/app/ui/format.ts";

describe("the audit log in words", () => {
  const BY_USER = { actor_id: 1, company_id: 5, impersonator_id: null };

  test("shows an action of a later version unchanged", () => {
    expect(phraseOf("WEBHOOK_SECRET_SHOWN")).toBe("viewed the secret of a subscription");
    expect(phraseOf("MOON_LANDED")).toBe("MOON_LANDED");
  });

  test.each([
    ["WEBHOOK_ENABLED", null, { held: "deliver" }, "enabled a subscription"],
    ["WEBHOOK_ENABLED", "CRM", { test: true }, "sent a test event to enable the subscription CRM"],
    ["WEBHOOK_DISABLED", "CRM", { reason: "Abuse" }, "disabled the subscription CRM: “Abuse”"],
    [
      "WEBHOOK_UPDATED",
      "CRM",
      { fields: ["webhook_url"] },
      "updated the subscription CRM (webhook url)",
    ],
    ["WEBHOOK_REDELIVERED", "CRM", {}, "resent an event of the subscription CRM"],
    ["WEBHOOK_REDELIVERED", "CRM", { queued: 3 }, "resent 3 events of the subscription CRM"],
    [
      "WEBHOOK_REDELIVERED",
      "CRM",
      { hastened: true },
      "requested an immediate retry of an event of the subscription CRM",
    ],
    ["WEBHOOK_RECOVERED", "CRM", { queued: 1 }, "recovered an event of the subscription CRM"],
    ["PORTAL_LINK_CREATED", "Own", { partner_id: 5 }, "created a portal link for Own"],
    ["PORTAL_LINK_CREATED", "Acme", { partner_id: 6 }, "created a portal link to act as Acme"],
    ["PORTAL_LINK_REDEEMED", null, {}, "opened a portal link"],
    ["PROVIDER_AUTH_FAILED", "Google", {}, "sent a wrong signature for the provider Google"],
    [
      "PROVIDER_AUTH_FAILED",
      "Google",
      { reason: "timestamp" },
      "sent a wrong timestamp for the provider Google",
    ],
    ["USER_DEACTIVATED", "Ada", { user_id: 2 }, "deactivated Ada"],
    ["SESSION_REVOKED", "Ada", { user_id: 1 }, "ended a session of their own"],
    ["TENANT_READ", "Northwind", { kind: "users" }, "read the users of Northwind"],
    ["TENANT_READ", null, { kind: "users" }, "read the users of all companies"],
    ["TOKEN_VIEWED", null, {}, "viewed a token"],
    ["TOKEN_REVOKED", null, { kind: "dashboard_pat" }, "revoked a personal access token"],
    ["TOKEN_REVOKED", null, { kind: "access" }, "revoked a sign-in token"],
    ["TOKEN_VIEWED", "Nightly", { user_id: 9 }, "viewed the token of Nightly"],
    ["STORE_REVIEW_SITE_CREATED", "Harbour", {}, "connected the store Harbour to a review site"],
    [
      "AUTHZ_DENIED",
      null,
      { method: "GET", path: "/admin/users", reason: "forbidden" },
      "was denied access to GET /admin/users: the role or the kind of token does not allow it",
    ],
  ])("says of %s on %p, by the user 1, with %p: %s", (action, object_name, details, words) => {
    expect(entryWords({ ...BY_USER, action, object_name, details })).toBe(words);
  });

  test("says of an operator's portal link that somebody was impersonated", () => {
    const entry = { action: "PORTAL_LINK_REDEEMED", object_name: null, details: {} };
    const words = "was impersonated through a portal link";
    expect(entryWords({ ...BY_USER, ...entry, impersonator_id: 2 })).toBe(words);
  });

  test("has the categories of the API", () => {
    for (const { category, actions } of AUDIT_CATEGORIES)
      expect(actions.toSorted()).toEqual(actionsOf(category).toSorted());
    expect(AUDIT_CATEGORIES.flatMap(({ actions }) => actions)).toHaveLength(AUDIT_ACTIONS.length);
  });

  test("shows details of any type as text", () => {
    const details = {
      jti: "<b>",
      user_id: 7,
      revoked: 1,
      fields: ["name", "role"],
      changes: { role: { from: "account_user", to: null } },
      token: { jti: "j", kind: "access", client_id: null },
      reason: null,
      held: "deliver",
      test: true,
      kind: "dashboard_pat",
      method: "GET",
    };
    expect(detailPairs(details)).toEqual([
      ["Jti", "<b>"],
      ["User ID", "7"],
      ["Ended", "1 sign-in or token"],
      ["Changed", "Name (personal data is not recorded)"],
      ["Role", "Account user → None"],
      ["Token", "Sign-in token j"],
      ["Reason", "None"],
      ["Held events", "Delivered"],
      ["Enabled", "Once a test event is delivered"],
      ["Kind", "Personal access token"],
      ["Method", "GET"],
    ]);
  });
});

describe("the filters of the audit log", () => {
  const queryFor = (values: Record<string, string>) => auditQuery((name) => values[name]);

  test("become the API's query, with instants in UTC", () => {
    const values = {
      q: "203.0.113.7",
      category: "sign_in",
      action: "AUTH_LOGIN",
      actor: "5",
      company: "6",
      since: "2026-06-01T12:00:00+02:00",
      until: "2026-06-02T00:00:00Z",
    };
    expect(queryFor({ category: "nonsense", reads: "shown" })).toEqual({});
    expect(queryFor({ company: "6", within: "7d" })).toEqual({
      about: "company:6",
      within: "7d",
      reads: "false",
    });
    expect(queryFor(values)).toEqual({
      q: "203.0.113.7",
      category: "sign_in",
      action: "AUTH_LOGIN",
      about: "user:5",
      company_id: 6,
      reads: "false",
      since: "2026-06-01T10:00:00.000Z",
      until: "2026-06-02T00:00:00.000Z",
    });
  });

  test("drop values that the API would reject", () => {
    const values = { action: "drop table", actor: "x", company: "0", since: "soon", until: "" };
    expect(queryFor({ ...values, within: "1y" })).toEqual({ reads: "false" });
  });
});

describe("a field for date and time", () => {
  const zone = process.env["TZ"] ?? "Etc/UTC";
  beforeAll(() => {
    process.env["TZ"] = "America/New_York";
  });
  afterAll(() => {
    process.env["TZ"] = zone;
  });

  test.each([
    ["2026-06-01T14:30", "2026-06-01T18:30:00.000Z"],
    ["2026-01-05T14:30", "2026-01-05T19:30:00.000Z"],
  ])("in the user's time zone contains %p for the instant %p", (local, instant) => {
    expect(instantOf(local)).toBe(instant);
    expect(localTimeOf(instant)).toBe(local);
  });

  test("is empty without a valid time, and an empty field has no instant", () => {
    expect([localTimeOf(undefined), localTimeOf("soon")]).toEqual(["", ""]);
    expect(instantOf("")).toBeUndefined();
  });
});

describe("the dispatcher's state", () => {
  const shard = { id: 0, dispatcher_id: "a", subscriptions: 0, lag_s: 0 };
  const well = {
    dispatchers: [{ id: "a", silent_ms: 900, outage: null }],
    shards: [shard],
    lag: { lag_s: 0 },
    blocked_heads: [],
    disabled_subscriptions: [],
    quarantined_lanes: [],
    mails: { queued: 0, next_due_at: null },
  };
  const now = Date.parse("2026-06-01T12:00:00Z");

  test("has no problems while nothing is late, unassigned, silent, blocked or disabled", () => {
    expect(problemsOf(well, now)).toEqual([]);
    const soon = { queued: 1, next_due_at: "2026-06-01T11:59:30Z" };
    expect(problemsOf({ ...well, mails: soon, lag: { lag_s: 9 } }, now)).toEqual([]);
  });

  test.each([
    [{ dispatchers: [] }, ["No dispatcher is running"]],
    [
      { dispatchers: [], shards: [{ ...shard, dispatcher_id: null }] },
      ["No dispatcher is running"],
    ],
    [
      { dispatchers: [{ id: "a", silent_ms: 5_000, outage: null }] },
      ["1 dispatcher sent no heartbeat"],
    ],
    [
      { dispatchers: ["names", "names"].map((outage) => ({ id: "a", silent_ms: 1, outage })) },
      ["The name servers do not respond"],
    ],
    [{ shards: [{ ...shard, dispatcher_id: null }] }, ["1 shard of 1 without"]],
    [{ lag: { lag_s: 90 } }, ["An event that could be sent waits for 2 min"]],
    [{ mails: { queued: 2, next_due_at: "2026-06-01T11:00:00Z" } }, ["2 mails queued"]],
    [{ blocked_heads: [{ subscription_id: "a" }] }, ["1 subscription waits for the retry"]],
    [
      { blocked_heads: ["a", "b", "b"].map((one) => ({ subscription_id: one })) },
      ["2 subscriptions wait for the retry"],
    ],
    [{ quarantined_lanes: [{}] }, ["1 lane quarantined"]],
    [{ disabled_subscriptions: [{}, {}] }, ["2 subscriptions disabled"]],
    [
      { blocked_heads: [{ subscription_id: "a" }], lag: { lag_s: 11 } },
      ["An event that could be sent", "1 subscription waits"],
    ],
  ])("with %j has the problems %j", (difference, beginnings) => {
    const problems = problemsOf({ ...well, ...difference }, now);
    expect(problems.map(({ text }, i) => text.startsWith(beginnings[i] ?? "?"))).toEqual(
      beginnings.map(() => true),
    );
  });

  test("calls a shard late after ten seconds and very late after sixty", () => {
    expect([0, 10, 11, 60, 61].map((lag) => latenessOf({ lag_s: lag }))).toEqual([
      "none",
      "none",
      "late",
      "late",
      "very-late",
    ]);
  });

  test("gives each dispatcher a letter that does not depend on the order of the answer", () => {
    const letters = lettersOf([{ id: "y" }, { id: "x" }]);
    expect([...letters]).toEqual([
      ["x", "A"],
      ["y", "B"],
    ]);
  });
});

describe("the forms", () => {
  test("take one store per line", () => {
    expect(storeNames(" North \n\nSouth   Side\n")).toEqual(["North", "South Side"]);
    expect(storeNames("")).toEqual([]);
  });

  test("leave out an empty theme", () => {
    const company = { name: "A ", primary_color: " ", logo_url: "", external_id: "" };
    expect(companyBody(company)).toEqual({ name: "A" });
    const theme = { primary_color: "#112233", logo_url: " https://x.example/a " };
    expect(companyBody({ ...company, ...theme })).toEqual({
      name: "A",
      primary_color: "#112233",
      logo_url: "https://x.example/a",
    });
  });

  test("send only what was changed, and null for what was emptied", () => {
    const saved = { name: "A", primary_color: "#112233", logo_url: null, external_id: "crm-1" };
    const label = { enabled: true, brand_name: "B", domain: "b.example" };
    const partner = { ...saved, white_label: label };
    const draft = partnerDraft(partner);
    expect(changedPartner(partner, draft)).toEqual({});
    expect(changedPartner(partner, { ...draft, name: "C ", external_id: " " })).toEqual({
      name: "C",
      external_id: null,
    });
    expect(changedPartner(partner, { ...draft, isWhiteLabel: false })).toEqual({
      white_label: null,
    });
    expect(changedPartner(partner, { ...draft, domain: "C.example" })).toEqual({
      white_label: { brand_name: "B", domain: "c.example" },
    });
    const account = { ...saved, partner_id: 1, plan: { id: 4 } };
    expect(changedAccount(account, { ...accountDraft(account), plan_id: 5 })).toEqual({
      plan_id: 5,
    });
  });

  test("keep the stores of a location user unless they are changed", () => {
    const user = {
      name: "Ada",
      email: "ada@a.test",
      role: "location_user",
      store_ids: [1, 2],
      external_id: null,
    };
    const draft = draftOf(user, undefined);
    expect(userChanges(user, { ...draft, store_ids: ["2", "1"] })).toEqual({});
    expect(userChanges(user, { ...draft, store_ids: ["2"] })).toEqual({ store_ids: [2] });
    expect(userChanges(user, withRole(draft, "account_user"))).toEqual({ role: "account_user" });
  });
});

describe("errors in words", () => {
  const error = (status: number, body: Record<string, unknown>) =>
    new ApiError(new Response(null, { status }), { message: "No.", ...body });

  test("are found by field, and by index in a list", () => {
    const refused = error(422, {
      errors: { name: ["is required"], "domains.1": ["must be a domain"], domains_x: ["other"] },
    });
    expect(fieldError(refused, "name")).toBe("is required");
    expect(fieldError(refused, "domains")).toBe("number 2 must be a domain");
    expect(fieldError(refused, "name")).toBe("is required");
    expect([fieldError(refused, "stores"), fieldError(null, "name")]).toEqual([
      undefined,
      undefined,
    ]);
  });

  test("explain the next step after a conflict", () => {
    expect(errorMessageOf(error(409, { code: "last_super_admin" })).advice).toStartWith(
      "Make another user a super-admin first",
    );
    expect(errorMessageOf(error(409, { code: "else" })).advice).toStartWith("The data has changed");
    // "The data has changed" would be wrong for these codes.
    for (const code of ["last_owner", "limit_reached", "not_invitable", "token_exists"])
      expect(errorMessageOf(error(409, { code })).advice).not.toContain("The data has changed");
    expect([apiErrorOf(error(403, {}))?.status, apiErrorOf(new TypeError())?.status]).toEqual([
      403,
      undefined,
    ]);
  });
});

test("allPages reads a list to its end", async () => {
  const asked: (string | undefined)[] = [];
  const rows = await allPages(async (cursor) => {
    asked.push(cursor);
    return { data: [asked.length], next_cursor: asked.length < 3 ? `after-${asked.length}` : null };
  });
  expect(rows).toEqual([1, 2, 3]);
  expect(asked).toEqual([undefined, "after-1", "after-2"]);
});
