import { beforeAll, describe, expect, test } from "bun:test";

import { ulid } from "ulid";

import { createApp } from "../../../src/app.ts";
import { BASE_PATH } from "../../../src/http/access.ts";
import { startApi } from "../../support/api.ts";
import { settle, startWebhooks, type Who } from "../../support/webhooks.ts";
import { fixture } from "../../support/fixture.ts";

const world = fixture(startWebhooks);

const since = new Date(Date.now() - 60_000).toISOString();
const EVERY: readonly Operation[] = [
  { method: "GET", path: "" },
  {
    method: "POST",
    path: "",
    body: { label: "L", webhook_url: "http://127.0.0.1:1/", delivery_kind: "immediate" },
  },
  { method: "GET", path: "/events" },
  { method: "GET", path: "/{id}" },
  { method: "POST", path: "/{id}", body: { label: "Changed" } },
  { method: "PATCH", path: "/{id}", body: { label: "Changed" } },
  { method: "DELETE", path: "/{id}" },
  { method: "POST", path: "/{id}/rotate-secret", body: {} },
  { method: "DELETE", path: "/{id}/previous-secret" },
  { method: "POST", path: "/{id}/secret" },
  { method: "POST", path: "/{id}/test" },
  { method: "POST", path: "/{id}/enable", body: { held: "skip" } },
  { method: "POST", path: "/{id}/disable", body: {} },
  { method: "POST", path: "/{id}/recover", body: { since } },
  { method: "POST", path: "/{id}/redeliver", body: { event_ids: ["01JWNB9PR0ZV8X2D3F4G5H6J00"] } },
  { method: "GET", path: "/{id}/deliveries" },
  { method: "GET", path: "/{id}/deliveries/{event}" },
  { method: "POST", path: "/{id}/deliveries/{event}/redeliver" },
  { method: "GET", path: "/{id}/health" },
  { method: "GET", path: "/{id}/incident" },
  { method: "GET", path: "/{id}/incidents" },
  { method: "GET", path: "/{id}/messages" },
  { method: "GET", path: "/{id}/stats" },
  { method: "GET", path: "/{id}/stream" },
];
const OF_ONE = EVERY.filter(({ path }) => path.includes("{id}"));

const nameOf = ({ method, path }: Operation) => `${method} ${path || "/"}`;

test("the operations tested here are all operations of the API", () => {
  const base = `${BASE_PATH}/partner/webhooks`;
  const routes = createApp(world.api.deps).routes.filter(({ path }) => path.startsWith(base));
  const declared = routes
    .filter(({ method }) => method !== "ALL")
    .map(({ method, path }) =>
      nameOf({
        method,
        path: path.replace(base, "").replace(":id", "{id}").replace(":eventId", "{event}"),
      }),
    );
  expect(declared.toSorted()).toEqual(EVERY.map(nameOf).toSorted());
});

describe.each(EVERY.map((one) => [nameOf(one), one] as const))("%s", (_, operation) => {
  test("is 401 without a token, and with a wrong one", async () => {
    for (const token of [undefined, "nonsense"]) {
      const { status, body, headers } = await call(operation, fill(operation.path, ulid()), token);
      expect([status, body["message"]]).toEqual([401, "Unauthenticated."]);
      expect(headers.get("www-authenticate")).toBe("Bearer");
    }
  });

  test("is 403 for every user outside the partner, and changes nothing", async () => {
    const { id } = await world.subscribe();
    const denied = async () => (await world.audit("AUTHZ_DENIED")).length;
    const [before, rows] = [await snapshot(), await denied()];
    const { account, location, root } = world.tokens;
    for (const token of [account, location, root, impersonation]) {
      const { status, body } = await call(operation, fill(operation.path, id), token);
      expect([status, body["code"]]).toEqual([403, "forbidden"]);
    }
    expect(await denied()).toBe(rows + 4);
    expect(await snapshot()).toBe(before);
  });
});

describe("over the limit", () => {
  test.each(EVERY.map((one) => [nameOf(one), one] as const))(
    "%s is 429 before anything else is looked at, and changes nothing",
    async (_, operation) => {
      const limit = { perMinute: 600, burst: 300 };
      const take = async () => ({ allowed: false, remaining: 0, limit, fullInS: 30, nextInS: 1 });
      const { db, config, keys, box, clock } = world.api.deps;
      const limiter = { take, unchecked: 0 };
      const api = await startApi({ db, config, keys, box, clock, limiter });
      const { id } = await world.subscribe();
      const before = await snapshot();
      const { status, body, headers } = await api.call(
        operation.method,
        `/partner/webhooks${fill(operation.path, id)}`,
        { token: world.tokens.owner, body: operation.body },
      );
      expect([status, body["code"], headers.get("retry-after")]).toEqual([
        429,
        "rate_limited",
        "1",
      ]);
      expect(headers.get("ratelimit-remaining")).toBe("0");
      expect(await snapshot()).toBe(before);
    },
  );
});

describe.each(OF_ONE.map((one) => [nameOf(one), one] as const))("%s", (_, operation) => {
  test("answers the same 404 for a missing, malformed, foreign or deleted id", async () => {
    const gone = await world.subscribe();
    const { id } = await world.subscribe();
    await world.emit(1);
    const before = await snapshot();
    const ids = [ulid(), "not-an-id", "%00", id.toLowerCase(), gone.id];
    const answers = await Promise.all(
      ids.map((one) => call(operation, fill(operation.path, one), world.tokens.owner)),
    );
    answers.push(await call(operation, fill(operation.path, id), world.tokens.other));
    for (const { status, text, headers } of answers) {
      expect(status).toBe(404);
      expect(text).toBe('{"message":"Not found.","code":"not_found","request_id":"same"}');
      expect([...headers.keys()]).toEqual([...(answers[0]?.headers.keys() ?? [])]);
    }
    expect(await snapshot()).toBe(before);
  });
});

describe("an event", () => {
  test.each([
    ["GET", ""],
    ["POST", "/redeliver"],
  ])("of another tenant gets the same 404 as a missing event: %s%s", async (method, suffix) => {
    const { id } = await world.subscribe();
    const [eventId = ""] = await world.emit(1);
    await settle(world, id, "failed");
    const { body } = await world.ask("POST", "", {
      body: { label: "Theirs", webhook_url: "http://127.0.0.1:1/", delivery_kind: "immediate" },
      as: "other",
    });
    const theirs = String(body["id"]);
    const ask = (subscription: string, event: string, as: Who) =>
      call({ method, path: "" }, `/${subscription}/deliveries/${event}${suffix}`, world.tokens[as]);
    const missing = await ask(theirs, ulid(), "other");
    const foreign = await ask(theirs, eventId, "other");
    const elsewhere = await ask(id, eventId, "other");
    expect([foreign.text, elsewhere.text]).toEqual([missing.text, missing.text]);
    expect(missing.status).toBe(404);
    expect((await ask(id, eventId, "admin")).status).toBeLessThan(300);
    await world.ask("DELETE", `/${theirs}`, { as: "other" });
  });
});

describe("a token without the scope", () => {
  test("webhooks:write may read, but not write or see a secret", async () => {
    const made = await world.api.call("POST", "/account/personal-access-tokens", {
      token: world.tokens.owner,
      body: { name: "reader", scopes: ["webhooks:read"] },
    });
    const token = String(made.body["access_token"]);
    const { id } = await world.subscribe();
    for (const operation of EVERY.filter(({ path }) => !path.includes("stream"))) {
      const { status, body } = await call(operation, fill(operation.path, id), token);
      const reads = operation.method === "GET";
      if (reads) expect([200, 404]).toContain(status);
      else expect([status, body["code"]]).toEqual([403, "insufficient_scope"]);
    }
  });
});

let impersonation: string;

beforeAll(async () => {
  const [account] = world.tenants.partners[0].accounts;
  const { body } = await world.api.call("POST", "/partner/account-owner/token", {
    token: world.tokens.owner,
    body: { account_id: account.id },
  });
  impersonation = String(body["access_token"]);
});

interface Operation {
  readonly method: string;
  /** Path below `/partner/webhooks`, with the placeholders `{id}` and `{event}`. */
  readonly path: string;
  readonly body?: unknown;
}

const fill = (path: string, id: string, event = ulid()) =>
  path.replace("{id}", id).replace("{event}", event);

function call(operation: Operation, path: string, token: string | undefined) {
  const { method, body } = operation;
  const headers = { "X-Request-Id": "same" };
  return world.api.call(method, `/partner/webhooks${path}`, { token, body, headers });
}

/** Reads all stored rows that operations of a tenant might change. */
async function snapshot() {
  const { sql } = world.database.db;
  return JSON.stringify([
    await sql`select * from webhook_subscriptions order by id`,
    await sql`select * from outbox_sequences order by subscription_id`,
    await sql`select * from queued_entries order by subscription_id, sequence`,
    await sql`select * from skipped_entries order by subscription_id, sequence`,
  ]);
}
