import { beforeAll, describe, expect, test } from "bun:test";

import { ulid } from "ulid";

import { createApp } from "../../../src/app.ts";
import { BASE_PATH } from "../../../src/http/access.ts";
import { startApi } from "../../support/api.ts";
import { settle, startWebhooks, type Who } from "../../support/webhooks.ts";
import { fixture } from "../../support/fixture.ts";

const world = fixture(startWebhooks);

describe("every route", () => {
  test("is 403 for every user outside the partner, writes an audit row, and changes nothing", async () => {
    const names = operations().map(({ method, path }) => `${method} ${path}`);
    expect(names).toEqual(expect.arrayContaining(Object.keys(BODIES)));
    const { id } = await world.subscribe();
    const denied = async () => (await world.audit("AUTHZ_DENIED")).length;
    const [before, rows] = [await snapshot(), await denied()];
    const { account, location, root } = world.tokens;
    const others = [account, location, root, impersonation];
    for (const operation of operations())
      for (const token of others) {
        const { status, body } = await call(operation, fill(operation.path, id), token);
        expect([operation, status, body["code"]]).toEqual([operation, 403, "forbidden"]);
      }
    expect(await denied()).toBe(rows + operations().length * others.length);
    expect(await snapshot()).toBe(before);
  });

  test("is 429 over the limit, before anything else is looked at, and changes nothing", async () => {
    const limit = { perMinute: 600, burst: 300 };
    const take = async () => ({ allowed: false, remaining: 0, limit, fullInS: 30, nextInS: 1 });
    const { db, config, keys, box, clock } = world.api.deps;
    const api = await startApi({ db, config, keys, box, clock, limiter: { take, unchecked: 0 } });
    const { id } = await world.subscribe();
    const before = await snapshot();
    for (const operation of operations()) {
      const path = `/partner/webhooks${fill(operation.path, id)}`;
      const { method, body } = operation;
      const answer = await api.call(method, path, { token: world.tokens.owner, body });
      const told = [answer.status, answer.body["code"], answer.headers.get("retry-after")];
      expect([operation, ...told]).toEqual([operation, 429, "rate_limited", "1"]);
      expect(answer.headers.get("ratelimit-remaining")).toBe("0");
    }
    expect(await snapshot()).toBe(before);
  });

  test("of one subscription answers the same 404 for a missing, malformed, foreign or deleted id", async () => {
    const gone = await world.subscribe();
    const { id } = await world.subscribe();
    await world.emit(1);
    const before = await snapshot();
    const ids = [ulid(), "not-an-id", "%00", id.toLowerCase(), gone.id];
    for (const operation of operations().filter(({ path }) => path.includes(":id"))) {
      const answers = await Promise.all(
        ids.map((one) => call(operation, fill(operation.path, one), world.tokens.owner)),
      );
      answers.push(await call(operation, fill(operation.path, id), world.tokens.other));
      for (const { status, text, headers } of answers) {
        expect([operation, status]).toEqual([operation, 404]);
        expect(text).toBe('{"message":"Not found.","code":"not_found","request_id":"same"}');
        expect([...headers.keys()]).toEqual([...(answers[0]?.headers.keys() ?? [])]);
      }
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
    for (const operation of operations().filter(({ path }) => !path.includes("stream"))) {
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
  /** Path below `/partner/webhooks`, with the placeholders `:id` and `:eventId`. */
  readonly path: string;
  readonly body?: unknown;
}

/** Bodies of the routes that need one. The others get none. */
const BODIES: Readonly<Record<string, object>> = {
  "POST ": { label: "L", webhook_url: "http://127.0.0.1:1/", delivery_kind: "immediate" },
  "POST /:id": { label: "Changed" },
  "PATCH /:id": { label: "Changed" },
  "POST /:id/rotate-secret": {},
  "POST /:id/enable": { held: "skip" },
  "POST /:id/disable": {},
  "POST /:id/recover": { since: new Date(Date.now() - 60_000).toISOString() },
  "POST /:id/redeliver": { event_ids: ["01JWNB9PR0ZV8X2D3F4G5H6J00"] },
};

/** Lists the routes of subscriptions out of the application. */
function operations(): Operation[] {
  const base = `${BASE_PATH}/partner/webhooks`;
  return createApp(world.api.deps).routes.flatMap(({ method, path }) => {
    if (!path.startsWith(base) || method === "ALL" || method === "HEAD") return [];
    const below = path.slice(base.length);
    return [{ method, path: below, body: BODIES[`${method} ${below}`] }];
  });
}

const fill = (path: string, id: string, event = ulid()) =>
  path.replace(":id", id).replace(":eventId", event);

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
