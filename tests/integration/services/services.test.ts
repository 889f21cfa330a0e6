// Services of the platform, their tokens, and the actions that they record (contract 10.7 and 9.7).
import { beforeAll, describe, expect, test } from "bun:test";

import { FIRST_OWN_ID } from "../../../db/own-ids.ts";
import {
  addProvider,
  connectStore,
  created,
  queuedFor,
  report,
  reviewIdOf,
} from "../../support/factory.ts";
import { fixture } from "../../support/fixture.ts";
import { until } from "../../support/network/receiver.ts";
import { startWebhooks } from "../../support/webhooks.ts";

const DAY_MS = 86_400_000;
const world = fixture(startWebhooks);

test("a service has an id that no platform has, and a partner that an operator makes the next one of the table", async () => {
  const [first, second] = [
    await make({ scopes: ["actions:write"] }),
    await make({ scopes: ["actions:write"] }),
  ];
  expect(first).toBeGreaterThanOrEqual(FIRST_OWN_ID);
  expect(second).toBeGreaterThan(first);
  const listed = (await admin("GET", "")).body["data"] as { id: number }[];
  expect(listed.slice(0, 2).map(({ id }) => id)).toEqual([second, first]);
  expect(
    Number((await asRoot("POST", "/admin/partners", { name: "New" })).body["id"]),
  ).toBeLessThan(100);
});

describe("a token of a service", () => {
  test("has an end, is shown once, and is listed with its last use until it is revoked", async () => {
    const service = await make({ scopes: ["actions:write"] });
    const [one, two] = [await issue(service, 30), await issue(service, 400)];
    expect((await record(one, [])).status).toBe(422);
    const list = async () =>
      (await admin("GET", `/${service}/tokens`)).body["data"] as Record<string, unknown>[];
    await until("the use is noted", async () =>
      (await list()).some(({ last_used_at: at }) => at !== null),
    );
    const uses = (await list()).map(({ id, last_used_at: at }) => [id, at !== null]);
    expect(new Map(uses as [string, boolean][])).toEqual(
      new Map([
        [two.id, false],
        [one.id, true],
      ]),
    );
    expect(JSON.stringify(await list())).not.toContain(one.token);
    const { tokens } = (await admin("GET", `/${service}`)).body;
    expect(tokens).toEqual(await list());
    const { body: services } = await admin("GET", "");
    expect(services["data"]).toContainEqual(expect.objectContaining({ id: service, tokens }));
    expect((await admin("DELETE", `/${service}/tokens/${one.id}`)).status).toBe(204);
    expect((await record(one, [])).status).toBe(401);
    expect((await record(two, [])).status).toBe(422);
    expect((await admin("DELETE", `/${service}/tokens/${one.id}`)).status).toBe(404);
    expect((await admin("DELETE", `/${service}`)).status).toBe(204);
    expect((await record(two, [])).status).toBe(401);
    expect((await admin("GET", `/${service}`)).status).toBe(404);
  });

  test.each([
    [0, 422],
    [1, 201],
    [400, 201],
    [400.001, 422],
  ])("ends in %p days: %p", async (days, status) => {
    const service = await make({ scopes: ["actions:write"] });
    const { body, ...answer } = await admin("POST", `/${service}/tokens`, {
      name: "one",
      expires_at: inDays(days),
    });
    expect(answer.status).toBe(status);
    if (status === 422) expect(Object.keys(body["errors"] ?? {})).toEqual(["expires_at"]);
  });

  test("is one of at most 20", async () => {
    const service = await make({ scopes: ["actions:write"] });
    for (let i = 0; i < 20; i++) await issue(service, 1);
    const more = await admin("POST", `/${service}/tokens`, { name: "x", expires_at: inDays(1) });
    expect([more.status, more.body["code"]]).toEqual([409, "limit_reached"]);
  });

  test("opens no route of another scope", async () => {
    const token = await issue(await make({ scopes: ["tokens:introspect"] }), 1);
    expect((await record(token, [])).status).toBe(403);
  });

  test("loses at once the scope that its service loses", async () => {
    const service = await make({ scopes: ["actions:write", "tokens:introspect"] });
    const token = await issue(service, 1);
    expect((await record(token, [])).status).toBe(422);
    await admin("PATCH", `/${service}`, { scopes: ["tokens:introspect"] });
    expect((await record(token, [])).body["code"]).toBe("insufficient_scope");
    expect((await introspect(token, "x")).status).toBe(200);
  });

  test("tells about any token of ours, and of an invalid one only that", async () => {
    const token = await issue(await make({ scopes: ["tokens:introspect"] }), 1);
    const { owner } = world.tenants.partners[0];
    expect((await introspect(token, world.tokens.owner)).body).toMatchObject({
      active: true,
      kind: "access",
      user_id: owner.id,
      role: "partner_owner",
      partner_id: owner.companyId,
      account_id: null,
      scope: "*",
    });
    expect((await introspect(token, token.token)).body).toMatchObject({
      active: true,
      role: "service",
    });
    for (const text of ["x", `${world.tokens.owner}x`, "a.b.c"])
      expect((await introspect(token, text)).body).toEqual({ active: false });
  });

  test("and its service are no user of the administration", async () => {
    const service = await make({ scopes: ["actions:write"] });
    expect((await asRoot("GET", `/admin/users/${service}`)).status).toBe(404);
    const { body } = await asRoot("GET", "/admin/users?limit=100");
    expect((body["data"] as { id: number }[]).map(({ id }) => id)).not.toContain(service);
  });
});

describe("a service", () => {
  test("is changed and audited", async () => {
    const service = await make({ scopes: ["actions:write"], partner_ids: [partner().id] });
    expect((await admin("GET", `/${service}`)).body).toMatchObject({ partner_ids: [partner().id] });
    const changed = await admin("PATCH", `/${service}`, { name: "New", partner_ids: null });
    expect(changed.body).toMatchObject({ name: "New", partner_ids: null });
    const rows = await world.audit("SERVICE_UPDATED");
    expect(rows.at(-1)).toMatchObject({
      details: { service_id: service, fields: ["name", "partner_ids"] },
    });
  });

  test.each([
    [{ name: "" }, "name"],
    [{ scopes: [] }, "scopes"],
    [{ scopes: ["*"] }, "scopes.0"],
    [{ partner_ids: [] }, "partner_ids"],
    [{ partner_ids: [999_999] }, "partner_ids"],
  ])("is not made with %p", async (fields, name) => {
    const body = { name: "x", scopes: ["actions:write"], ...fields };
    const { status, body: answer } = await admin("POST", "", body);
    expect([status, Object.keys(answer["errors"] ?? {})]).toEqual([422, [name]]);
  });
});

describe("actions", () => {
  test("of a user, of staff and of the system change the review and reach the partner in order", async () => {
    const { id } = await world.subscribe();
    const { user, owner } = account();
    const { body } = await record(writer, [
      action("response_submitted", { metadata: { body: "Thank you" }, actor: userOf(user.id) }),
      action("review_flagged", { metadata: { reason: "spam" }, actor: { type: "staff" } }),
      action("review_assigned", { metadata: { user_id: user.id }, actor: { type: "staff" } }),
      action("note_added", { metadata: { body: "Called" }, actor: userOf(user.id) }),
      action("response_post_failed", { error_code: "E-001" }),
      action("review_pull_disconnected", { error_code: "E-001" }),
    ]);
    expect(body).toEqual({ accepted: 6, unchanged: 0, duplicates: 0 });
    const review = await world.api.call("GET", `/account/reviews/${reviewId}`, {
      token: world.tokens.account,
    });
    expect(review.body).toMatchObject({
      response: { body: "Thank you" },
      flag: { status: "open", reason: "spam" },
      assigned_user_id: user.id,
    });
    const rows = await world.database.db.sql`
      select event, actor, review, site, metadata, occurred_at from review_history
       where recorded_at is not null order by id desc limit 6`;
    const [connection, posting, note, , flag, response] = rows;
    expect(response).toMatchObject({
      actor: { type: "user", id: user.id },
      review: { id: reviewId },
      metadata: { body: "Thank you" },
      occurred_at: new Date(AT),
    });
    expect([flag?.["actor"].id, note?.["actor"].id]).toEqual([owner.id, user.id]);
    expect(posting).toMatchObject({ actor: { type: "system" }, site: { error_code: "E-001" } });
    expect(connection?.["site"].review_site).toMatchObject({ connection_status: "disconnected" });
    const queued = await queuedFor(world.database.db, id);
    expect(queued.map(({ event }) => event)).toEqual([
      "response_submitted",
      "review_flagged",
      "review_assigned",
      "note_added",
      "response_post_failed",
      "review_pull_disconnected",
    ]);
    expect(world.wakes).toContain(id);
  });

  test("of other requests are taken, while one of the group is refused and one waits for a locked sequence", async () => {
    const one = async (fields: object) => {
      const { status, body } = await record(writer, [disconnection("response_post", fields)]);
      return [status, body["accepted"]];
    };
    let isWaiting = true;
    const other = world.database.connect();
    const { waiting } = await other.transaction(async (tx) => {
      const held = await tx.sql`
        select from outbox_sequences q join webhook_subscriptions s on s.id = q.subscription_id
         where s.partner_id = ${partner().id} for update of q`;
      expect(held.length).toBeGreaterThan(0);
      const slow = one({}).finally(() => (isWaiting = false));
      const others = await Promise.all([
        ...Array.from({ length: 4 }, () => one({ store_review_site_id: otherSite })),
        one({ store_review_site_id: 999_999 }),
      ]);
      expect(others).toEqual([...Array.from({ length: 4 }, () => [200, 1]), [422, undefined]]);
      expect(isWaiting).toBe(true);
      return { waiting: slow };
    });
    expect(await waiting).toEqual([200, 1]);
  });

  test("with a known id are not taken again, also in parallel", async () => {
    const before = await historyLength();
    const some = [action("note_added"), action("note_added")];
    const answers = await Promise.all(Array.from({ length: 6 }, () => record(writer, some)));
    const sums = answers.map(({ body }) => Number(body["accepted"]));
    expect([sums.reduce((a, b) => a + b), await historyLength()]).toEqual([2, before + 2]);
    expect((await record(writer, [...some, action("note_added")])).body).toEqual({
      accepted: 1,
      unchanged: 0,
      duplicates: 2,
    });
    // Another service has ids of its own.
    const other = await issue(await make({ scopes: ["actions:write"] }), 1);
    expect((await record(other, some)).body).toEqual({ accepted: 2, unchanged: 0, duplicates: 0 });
  });

  test("for a partner that the service may not act for are a 403, audited, and nothing is written", async () => {
    const limited = await issue(
      await make({ scopes: ["actions:write"], partner_ids: [world.tenants.partners[1].id] }),
      1,
    );
    const before = await historyLength();
    const { status, body } = await record(limited, [action("note_added")]);
    expect([status, body["code"]]).toEqual([403, "forbidden"]);
    expect((await world.audit("AUTHZ_DENIED")).at(-1)).toMatchObject({
      details: { reason: "foreign_partner", partner_ids: [partner().id] },
    });
    expect(await historyLength()).toBe(before);
  });

  test.each([
    [{ event: "review_moved" }, "event"],
    [{ event: "webhook.test" }, "event"],
    [{ metadata: {} }, "metadata.body"],
    [{ metadata: { body: 7 } }, "metadata.body"],
    [{ actor: { type: "user" } }, "actor.user_id"],
    [{ actor: { type: "system", user_id: 1 } }, "actor.user_id"],
    [{ review_id: 999_999 }, "review_id"],
    [{ store_review_site_id: 1 }, "store_review_site_id"],
    [{ error_code: "E-001" }, "error_code"],
    [{ occurred_at: "2999-01-01T00:00:00.000+00:00" }, "occurred_at"],
    [{ id: "x".repeat(201) }, "id"],
    [{ more: 1 }, "more"],
    [{ metadata: { body: "a\u0000b" } }, "metadata.body"],
    [{ metadata: { body: "\ud800" } }, "metadata.body"],
    [{ metadata: { body: "x", more: { a: 1 } } }, "metadata.more"],
    [{ event: "review_assigned", metadata: { user_id: 2 ** 40 } }, "metadata.user_id"],
  ])("with %p are refused by field, and none is written", async (fields, name) => {
    const before = await historyLength();
    const wrong = { ...action("note_added"), ...fields };
    const { status, body } = await record(writer, [action("note_added"), wrong]);
    expect([status, Object.keys(body["errors"] ?? {})]).toEqual([422, [`actions.1.${name}`]]);
    expect(await historyLength()).toBe(before);
  });

  test("of several partners cannot deadlock with those in another order, or with actions of an account", async () => {
    const [, two] = world.tenants.partners;
    const provider = await addProvider(world.database.db, world.api.deps.box, "second");
    const site = await connectStore(world.database.db, two.accounts[0], { provider });
    const pair = (i: number) => [
      action("note_added"),
      i % 2 === 0
        ? disconnection("response_post", { store_review_site_id: site })
        : action("response_post_connected", { store_review_site_id: site }),
    ];
    const answers = await Promise.all(
      Array.from({ length: 24 }, (_, i) =>
        i % 3 === 0
          ? world.api.call("POST", `/account/reviews/${reviewId}/notes`, {
              token: world.tokens.account,
              body: { body: "Beside" },
            })
          : record(writer, i % 3 === 1 ? pair(i) : pair(i).toReversed()),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  });

  test("of a user of another account, or assigned to one, are refused", async () => {
    const { id } = world.tenants.partners[1].accounts[0].user;
    for (const wrong of [
      action("note_added", { actor: userOf(id) }),
      action("review_assigned", { metadata: { user_id: id } }),
    ])
      expect((await record(writer, [wrong])).status).toBe(422);
  });

  test("that move a flag of whose opening nobody has told are recorded, and set the flag without a reason", async () => {
    await report(world.api, world.provider, [created(world.siteId, "unflagged")]);
    const unflagged = await reviewIdOf(world.database.db, "unflagged");
    const metadata = { from: "open", to: "accepted", native_email: "suppressed" };
    const moved = () => action("flag_status_changed", { review_id: unflagged, metadata });
    const before = await historyLength();
    expect((await record(writer, [moved()])).body).toMatchObject({ accepted: 1, unchanged: 0 });
    expect((await record(writer, [moved()])).body).toMatchObject({ accepted: 1, unchanged: 1 });
    expect(await historyLength()).toBe(before + 1);
    const rows = await world.database.db.sql`
      select flag_status, flag_reason from reviews where id = ${unflagged}`;
    expect([...rows]).toEqual([{ flag_status: "accepted", flag_reason: "" }]);
  });

  test.each([
    [500, 200],
    [501, 422],
  ])("are %p in a request: %p", async (count, status) => {
    const some = Array.from({ length: count }, () => action("note_added"));
    expect((await record(writer, some)).status).toBe(status);
  });
});

const AT = "2026-05-01T08:00:00.000+00:00";

let writer: { id: string; token: string };
let reviewId = 0;
/** A connection of the second partner. */
let otherSite = 0;
let count = 0;

beforeAll(async () => {
  writer = await issue(await make({ scopes: ["actions:write"] }), 30);
  await report(world.api, world.provider, [created(world.siteId, "acted-on")]);
  reviewId = await reviewIdOf(world.database.db, "acted-on");
  const [other] = world.tenants.partners[1].accounts;
  otherSite = await connectStore(world.database.db, other, { provider: world.provider });
});

const partner = () => world.tenants.partners[0];
const account = () => partner().accounts[0];
const inDays = (days: number) =>
  new Date(world.clock.now().getTime() + days * DAY_MS).toISOString();
const userOf = (id: number) => ({ type: "user", user_id: id });

const asRoot = (method: string, path: string, body?: object) =>
  world.api.call(method, path, { token: world.tokens.root, body });
const admin = (method: string, path: string, body?: object) =>
  asRoot(method, `/admin/services${path}`, body);

async function make(fields: object): Promise<number> {
  const made = await admin("POST", "", { name: `Service ${++count}`, ...fields });
  if (made.status !== 201) throw new Error(made.text);
  return Number(made.body["id"]);
}

async function issue(service: number, days: number) {
  const body = { name: `Token ${++count}`, expires_at: inDays(days) };
  const made = await admin("POST", `/${service}/tokens`, body);
  if (made.status !== 201) throw new Error(made.text);
  return { id: String(made.body["id"]), token: String(made.body["access_token"]) };
}

const record = ({ token }: { token: string }, actions: object[]) =>
  world.api.call("POST", "/platform/actions", { token, body: { actions } });

const introspect = ({ token }: { token: string }, text: string) =>
  world.api.call("POST", "/platform/introspect", { token, body: { token: text } });

/** Makes an action on the review or on its connection, by the system if `fields` names nobody. */
function action(event: string, fields: object = {}) {
  const isSite = event.startsWith("review_pull") || /^response_post_(dis)?connected$/.test(event);
  const subject = isSite ? { store_review_site_id: world.siteId } : { review_id: reviewId };
  const metadata = event === "note_added" ? { metadata: { body: "A note" } } : {};
  const base = { id: `action-${++count}`, event, actor: { type: "system" }, occurred_at: AT };
  return { ...base, ...subject, ...metadata, ...fields };
}

/** Makes an action that disconnects an axis. */
const disconnection = (axis: "review_pull" | "response_post", fields: object) =>
  action(`${axis}_disconnected`, { error_code: "E-001", ...fields });

async function historyLength(): Promise<number> {
  const rows = await world.database.db.sql`select from review_history`;
  return rows.length;
}
