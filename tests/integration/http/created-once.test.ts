// Every creating route under an Idempotency-Key: with faults, in parallel and with other tokens (contract 2.14).
import { beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";

import { createApp } from "../../../src/app.ts";
import { BASE_PATH } from "../../../src/http/access.ts";
import { connect } from "../../../db/client.ts";
import { keyedRequests } from "../../../db/schema/sign-in.ts";
import { fieldsOf } from "../../../src/lib/fields.ts";
import { type Answer, startApi, type TestApi } from "../../support/api.ts";
import { fixture } from "../../support/fixture.ts";
import { proxyBefore } from "../../support/network/tcp-proxy.ts";
import { addProvider } from "../../support/factory.ts";
import { callerOf } from "../../support/callers.ts";
import { startSignInWorld } from "../../support/sign-in.ts";
import type { TestUser } from "../../support/tenants.ts";

const world = fixture(startSignInWorld);
const proxy = fixture(() => proxyBefore(world.database.url));
const proxied = fixture(() => connect(proxy.in(world.database.url), { max: 4, name: "proxied" }));
/** The API behind a proxy that can lose the answers to commits. */
const behind = fixture(() =>
  startApi({ db: proxied, clock: world.clock, config: world.api.deps.config }),
);

test("the list has every creating route", () => {
  const creating = createApp(world.api.deps)
    .routes.filter(
      ({ method, hooks }) => method === "POST" && Object.hasOwn(hooks.response ?? {}, "201"),
    )
    .map(({ path }) => path.slice(BASE_PATH.length));
  expect(creating.toSorted()).toEqual(Object.keys(CREATING).toSorted());
});

describe("a creating route", () => {
  describe.each(Object.entries(CREATING))("POST %s", (route, one) => {
    test("repeats its answer to the same authority only, and stores it sealed", async () => {
      const request = newRequest(route, one);
      const first = await create(world.api, request);
      expect([first.status, first.text]).toEqual([201, first.text]);
      const again = await countingRows(() => create(world.api, request));
      expect([again.answer.status, again.rows]).toEqual([201, 0]);
      expect(again.answer.body).toEqual(first.body);
      const third = await callerOf(world, userOf(one.by), "third");
      const other = await create(world.api, { ...request, token: third?.token ?? "" });
      // Some routes refuse the other token before they look at the key.
      if (other.status !== 403)
        expect([other.status, Object.keys(other.body["errors"] ?? {})]).toEqual([
          422,
          ["Idempotency-Key"],
        ]);
      const [row] = await world.database.db.sql<{ sealed_response: string }[]>`
        select sealed_response from keyed_requests where key like ${`%:${request.key}`}`;
      for (const text of textsIn(first.body)) expect(row?.sealed_response).not.toContain(text);
      await undo(one, first);
    });

    test("leaves the key free if its process or connection dies before the commit", async () => {
      const request = newRequest(route, one);
      const died = await countingRows(() => endedBeforeCommit(() => create(world.api, request)));
      expect([died.answer.status, died.answer.body["code"], died.rows]).toEqual([
        503,
        "unavailable",
        0,
      ]);
      expect(died.answer.headers.get("retry-after")).not.toBeNull();
      const made = await create(world.api, request);
      expect([made.status, made.text]).toEqual([201, made.text]);
      await undo(one, made);
    });
  });

  // Every route creates its record and stores the answer in one transaction.
  describe.each(Object.entries(CREATING).filter(([route]) => SAMPLES.includes(route)))(
    "POST %s",
    (route, one) => {
      test("creates one record for two requests at the same time", async () => {
        const alone = await countingRows(() => create(world.api, newRequest(route, one)));
        await undo(one, alone.answer);
        const request = newRequest(route, one);
        const { answer: both, rows } = await countingRows(() =>
          Promise.all([create(world.api, request), create(world.other, request)]),
        );
        expect(rows).toBe(alone.rows);
        const [made] = both.filter(({ status }) => status === 201);
        for (const { status, body } of both)
          expect([status, body]).toBeOneOf([
            [201, made?.body],
            [409, expect.objectContaining({ code: "request_unfinished" })],
          ]);
        if (made !== undefined) await undo(one, made);
      });

      test("says that the outcome is unknown if the answer to its commit is lost, and a repeat has the answer", async () => {
        const request = newRequest(route, one);
        const lost = await countingRows(() => withLostCommits(() => create(behind, request)));
        expect([lost.answer.status, lost.answer.body["code"]]).toEqual([503, "outcome_unknown"]);
        expect(lost.answer.headers.get("retry-after")).toBeNull();
        expect(lost.rows).toBeGreaterThan(0);
        const repeated = await countingRows(() => create(behind, request));
        expect([repeated.answer.status, repeated.rows]).toEqual([201, 0]);
        await undo(one, repeated.answer);
      });
    },
  );
});

test.each([
  ["the same", undefined, 409, "request_unfinished"],
  ["another", { name: "another" }, 422, "validation_failed"],
] as const)(
  "a key that release 0.1.0 stored creates nothing for %s request",
  async (_, other, ...told) => {
    const request = newRequest("/admin/plans", {
      by: "root",
      body: (nth) => ({ name: `old-${nth}` }),
    });
    const hash = createHash("sha256").update(`${BASE_PATH}${request.path}\n`);
    const digest = hash.update(JSON.stringify(request.body)).digest("hex");
    const row = {
      key: `${userOf("root").id}:${request.key}`,
      digest,
      createdAt: world.clock.now(),
    };
    for (const sealedResponse of [null, "sealed by 0.1.0"]) {
      await world.database.db.delete(keyedRequests);
      await world.database.db.insert(keyedRequests).values({ ...row, sealedResponse });
      const { answer, rows } = await countingRows(() =>
        create(world.api, { ...request, body: other ?? request.body }),
      );
      expect([answer.status, answer.body["code"], rows]).toEqual([...told, 0]);
    }
  },
);

type By = "root" | "owner";

/** A request that a route answers 201. The number makes its names unique. */
interface Creating {
  readonly by: By;
  readonly path?: string;
  readonly body: (nth: number) => object;
  /** The path that deletes what a request made, for routes that allow one record or few. */
  readonly undo?: (body: Answer["body"]) => string;
}

const ids: Record<string, string | number> = {};

/** A request of each creating route; the first test compares the list with the routes. */
const NEXT_MONTH = new Date(Date.now() + 30 * 86_400_000).toISOString();

const CREATING: Readonly<Record<string, Creating>> = {
  "/sso/clients": { by: "root", body: (nth) => clientBody(nth) },
  "/partner/oauth-clients": { by: "owner", body: (nth) => clientBody(nth) },
  "/account/api-token": {
    by: "owner",
    body: () => ({}),
    undo: () => "/account/api-token",
  },
  "/account/personal-access-tokens": {
    by: "owner",
    body: (nth) => ({ name: `token-${nth}` }),
    undo: (body) => `/account/personal-access-tokens/${String(fieldsOf(body["token"])["id"])}`,
  },
  "/partner/account-owner/token": {
    by: "owner",
    body: (nth) => ({ account_id: ids["account"], reason: `reason-${nth}` }),
  },
  "/admin/services": {
    by: "root",
    body: (nth) => ({ name: `service-${nth}`, scopes: ["actions:write"] }),
  },
  "/admin/services/:id/tokens": {
    by: "root",
    body: (nth) => ({ name: `token-${nth}`, expires_at: NEXT_MONTH }),
  },
  "/admin/users": {
    by: "root",
    body: (nth) => ({
      company_id: ids["partner"],
      email: `user-${nth}@made.test`,
      name: "Made",
      role: "partner_admin",
    }),
  },
  "/admin/partners": { by: "root", body: (nth) => ({ name: `partner-${nth}` }) },
  "/admin/accounts": {
    by: "root",
    body: (nth) => ({
      name: `account-${nth}`,
      partner_id: ids["partner"],
      plan_id: ids["plan"],
      stores: ["Main"],
    }),
  },
  "/admin/plans": { by: "root", body: (nth) => ({ name: `plan-${nth}` }) },
  "/admin/stores": {
    by: "root",
    body: (nth) => ({ name: `store-${nth}`, account_id: ids["account"] }),
  },
  "/admin/store-review-sites": {
    by: "root",
    body: () => ({ store_id: ids["store"], provider_id: ids["provider"] }),
    undo: (body) => `/admin/store-review-sites/${String(body["id"])}`,
  },
  "/admin/providers": { by: "root", body: (nth) => ({ slug: `site-${nth}`, name: "Site" }) },
  "/partner/users": {
    by: "owner",
    body: (nth) => ({ email: `mate-${nth}@made.test`, name: "Mate", role: "partner_admin" }),
  },
  "/partner/integrations": {
    by: "owner",
    body: (nth) => ({ name: `integration-${nth}`, scopes: ["reviews:read"] }),
  },
  "/partner/integrations/:id/api-token": {
    by: "owner",
    body: () => ({}),
    undo: () => `/partner/integrations/${ids["integration"]}/api-token`,
  },
  "/partner/webhooks": {
    by: "owner",
    body: () => ({
      label: "Hook",
      webhook_url: "http://127.0.0.1:9/",
      delivery_kind: "batch",
      batch_interval_hours: 1,
    }),
    undo: (body) => `/partner/webhooks/${String(body["id"])}`,
  },
  "/admin/sso-connections": {
    by: "root",
    body: (nth) => ({
      company_id: ids["partner"],
      issuer: "https://idp.example",
      client_id: "reviewrelay",
      client_secret: "secret of the connection",
      domains: [`made-${nth}.test`],
    }),
  },
  "/admin/partners/:id/portal-links": { by: "root", body: () => ({ pages: ["webhooks"] }) },
  "/partner/portal-links": { by: "owner", body: () => ({ pages: ["webhooks"] }) },
};

/** The routes that stand for all others where every route runs the same code. */
const SAMPLES = ["/admin/providers", "/partner/webhooks"];

const clientBody = (nth: number) => ({
  name: `client-${nth}`,
  redirect_uris: ["https://app.example/callback"],
  scopes: ["reviews:read"],
});

const users: Partial<Record<By, TestUser>> = {};
const tokens: Partial<Record<By, string>> = {};

beforeAll(async () => {
  const { database, tenants, api } = world;
  const [partner] = tenants.partners;
  const [account] = partner.accounts;
  Object.assign(ids, {
    partner: partner.id,
    account: account.id,
    store: account.storeIds[0],
    provider: (await addProvider(database.db, api.deps.box, "google")).id,
  });
  Object.assign(users, {
    root: tenants.superAdmin,
    owner: partner.owner,
  });
  for (const [by, { email }] of Object.entries(users)) tokens[by as By] = await api.login(email);
  const [plan] = await database.db.sql<{ id: number }[]>`select id from plans limit 1`;
  ids["plan"] = plan?.id ?? 0;
  const service = { name: "Service", scopes: ["actions:write"] };
  const integration = { name: "Integration", scopes: ["reviews:read"] };
  const made = async (by: By, path: string, body: object) =>
    Number((await api.call("POST", path, { token: tokens[by], body })).body["id"]);
  ids["service"] = await made("root", "/admin/services", service);
  ids["integration"] = await made("owner", "/partner/integrations", integration);
});

/** Deletes what an answer told of, where a second record would be refused. */
async function undo(one: Creating, { body }: Answer): Promise<void> {
  if (one.undo === undefined) return;
  const { status } = await world.api.call("DELETE", one.undo(body), { token: tokens[one.by] });
  expect(status).toBe(204);
}

const userOf = (by: By): TestUser => {
  const user = users[by];
  if (user === undefined) throw new Error(`There is no user ${by}.`);
  return user;
};

/** Runs `work`, and counts the rows of the audit log that it wrote: each creation writes one or two. */
async function countingRows<T>(work: () => Promise<T>): Promise<{ answer: T; rows: number }> {
  const before = await auditRows();
  const answer = await work();
  return { answer, rows: (await auditRows()) - before };
}

async function auditRows(): Promise<number> {
  const [row] = await world.database.db.sql<
    { count: number }[]
  >`select count(*)::int from audit_log`;
  return row?.count ?? 0;
}

/** Ends the session of a transaction right before it stores the answer, which is its last statement. */
async function endedBeforeCommit<T>(work: () => Promise<T>): Promise<T> {
  const { db } = world.database;
  return db.transaction(async (tx) => {
    await tx.sql`lock table keyed_requests in share row exclusive mode`;
    const ended = work();
    const isOver = ended.then(
      () => true,
      () => true,
    );
    const isKilled = async () => {
      const killed = await tx.sql`
        select pg_terminate_backend(pid) from pg_locks
        where relation = 'keyed_requests'::regclass and not granted`;
      return killed.length > 0;
    };
    while (!(await Promise.race([isOver, isKilled()]))) await Bun.sleep(5);
    return ended;
  });
}

async function withLostCommits<T>(work: () => Promise<T>): Promise<T> {
  proxy.losesCommit = () => true;
  try {
    return await work();
  } finally {
    proxy.losesCommit = () => false;
  }
}

/** Returns the longer texts of an answer, among them each secret. */
function textsIn(value: unknown): string[] {
  if (typeof value === "string") return value.length >= 16 ? [value] : [];
  return Object.values(fieldsOf(value)).flatMap(textsIn);
}

interface Sent {
  readonly path: string;
  readonly body: object;
  readonly key: string;
  readonly token: string;
}

let made = 0;

/** The records, other than a partner, whose id is in a path, by the second word of the path. */
const OF_ID: Readonly<Record<string, string>> = {
  services: "service",
  integrations: "integration",
};

function newRequest(route: string, { by, body }: Creating): Sent {
  return {
    path: route.replace(":id", String(ids[OF_ID[route.split("/")[2] ?? ""] ?? "partner"])),
    body: body(++made),
    key: crypto.randomUUID(),
    token: tokens[by] ?? "",
  };
}

const create = (api: TestApi, { path, body, key, token }: Sent) =>
  api.call("POST", path, { token, body, headers: { "idempotency-key": key } });
