// Requests whose commit took place, while Postgres' answer to it was lost (contract 2.10). The creating routes are in
// created-once.test.ts.
import { beforeAll, describe, expect, test } from "bun:test";

import { connect, type RawDb } from "../../../db/client.ts";
import { createApp } from "../../../src/app.ts";
import { createWriterPool } from "../../../src/outbox/writer-pool.ts";
import { type Answer, PASSWORD, startApi } from "../../support/api.ts";
import { created, reviewIdOf, send } from "../../support/factory.ts";
import { fixture } from "../../support/fixture.ts";
import { proxyBefore } from "../../support/network/tcp-proxy.ts";
import { addClient, credentialsOf, postForm, type TestClient } from "../../support/oauth.ts";
import { addService, startWebhooks } from "../../support/webhooks.ts";

const world = fixture(startWebhooks);
const proxy = fixture(() => proxyBefore(world.database.url));
const proxied = fixture(() => connect(proxy.in(world.database.url), { max: 4, name: "proxied" }));
const writers = fixture(() =>
  connect(proxy.in(world.database.url), { max: 4, name: "writers", isPipelined: true }),
);
const api = fixture(() => {
  const { deps } = world.api;
  const settings = { connections: 4, share: 4, waitMs: 60_000 };
  const writerPool = createWriterPool(writers, deps.clock, settings);
  return startApi({ ...deps, db: proxied, clock: world.clock, writerPool });
});

let reviewId = 0;
let service = "";
let client: TestClient;
beforeAll(async () => {
  const { database, provider, siteId } = world;
  await send(world.api, provider, { events: [created(siteId, "known")] });
  reviewId = await reviewIdOf(database.db, "known");
  service = (await addService(world)).token;
  client = await addClient(database.db, { firstParty: true });
  // The first use of the token is noted by a commit of its own.
  await take([actionOf("first", "note_added")]);
});

describe("events of a provider and actions of a service", () => {
  const kinds: readonly (readonly [string, (ids: readonly string[]) => Promise<Answer>])[] = [
    ["events", (ids) => send(api, world.provider, { events: ids.map(reportOf) })],
    ["actions", (ids) => take(ids.map((id) => actionOf(id, "note_added")))],
  ];

  describe.each(kinds)("%s", (_, request) => {
    test.each([1, 40])("are answered as if the answer had arrived, for %d", async (size) => {
      const ids = newIds(size);
      const { answer, rows } = await countingHistory(() => losing(1, () => request(ids)));
      expect([answer.status, answer.body["accepted"], answer.body["duplicates"]]).toEqual([
        200,
        size,
        0,
      ]);
      expect(rows).toBe(size);
      const again = await countingHistory(() => request(ids));
      expect([again.answer.body["accepted"], again.answer.body["duplicates"]]).toEqual([0, size]);
      expect(again.rows).toBe(0);
    });

    test("count known ids as duplicates", async () => {
      const ids = newIds(3);
      await request(ids.slice(0, 2));
      const { answer, rows } = await countingHistory(() => losing(1, () => request(ids)));
      expect([answer.status, answer.body["accepted"], answer.body["duplicates"], rows]).toEqual([
        200, 1, 2, 1,
      ]);
    });

    test("are written once if several requests share the lost commit", async () => {
      const all = [newIds(2), newIds(3), newIds(1)];
      const { answer, rows } = await countingHistory(() =>
        losing(1, () => Promise.all(all.map(request))),
      );
      expect(answer.map(({ body }) => body["accepted"])).toEqual([2, 3, 1]);
      expect(rows).toBe(6);
    });
  });

  test.each([
    ["events", (id: string) => send(api, world.provider, { events: [changeOf(id)] })],
    ["actions", (id: string) => take([actionOf(id, "note_added")])],
  ])(
    "%s are answered as by the try that wrote them, after one that met a locked row",
    async (_, request) => {
      const [id = ""] = newIds(1);
      const answer = await losing(2, async (firstIsLost) => {
        let asked: Promise<Answer> | undefined;
        await world.database.db.transaction(async (tx) => {
          await tx.sql`select from reviews where id = ${reviewId} for update`;
          asked = request(id);
          await firstIsLost;
        });
        return asked;
      });
      expect([answer?.status, answer?.body["accepted"], answer?.body["duplicates"]]).toEqual([
        200, 1, 0,
      ]);
    },
  );

  test("count the actions that changed nothing", async () => {
    const [one = "", two = ""] = newIds(2);
    const actions = [actionOf(one, "note_added"), actionOf(two, "response_deleted")];
    const { answer, rows } = await countingHistory(() => losing(1, () => take(actions)));
    expect([answer.status, answer.body]).toEqual([
      200,
      { accepted: 2, unchanged: 1, duplicates: 0 },
    ]);
    expect(rows).toBe(1);
  });

  test("are unavailable while every answer is lost", async () => {
    const answer = await losing(Infinity, () => take([actionOf(newIds(1)[0] ?? "", "note_added")]));
    expect([answer.status, answer.body["code"]]).toEqual([503, "unavailable"]);
    expect(answer.headers.get("retry-after")).not.toBeNull();
  });
});

test("the outcome of an action of a person is unknown if the answer to its commit is lost", async () => {
  const request = { token: world.tokens.account, body: { body: "Called back." } };
  const { answer, rows } = await countingHistory(() =>
    losing(100, () => api.call("POST", `/account/reviews/${reviewId}/notes`, request)),
  );
  expect([answer.status, answer.body["code"], rows]).toEqual([503, "outcome_unknown", 1]);
  expect(answer.headers.get("retry-after")).toBeNull();
});

test("an action of a person that is refused is refused although the answer to its commit was lost", async () => {
  const flag = () =>
    api.call("POST", `/account/reviews/${reviewId}/flag`, {
      token: world.tokens.account,
      body: { reason: "Another store" },
    });
  // The review may be flagged already.
  await flag();
  const { answer, rows } = await countingHistory(() => losing(1, flag));
  expect([answer.status, answer.body["code"], rows]).toEqual([409, "flag_open", 0]);
});

test("a GET tells that its outcome is unknown if it has an effect, and is unavailable otherwise", async () => {
  const dead = await startApi({ ...world.api.deps, db: lost });
  const { routes } = createApp(world.api.deps);
  // HEAD is refused where GET has an effect.
  const effects = new Set(routes.filter(({ method }) => method === "HEAD").map(({ path }) => path));
  const seen = { effects: new Set<string>(), reads: new Set<string>() };
  const options = { token: world.tokens.root, root: true };
  for (const { path } of routes.filter(({ method }) => method === "GET")) {
    const asked = path.replaceAll(/:\w+/g, "1");
    const hasEffect = effects.has(path);
    const query = hasEffect ? "?email=a@corp.test&code=c&state=s" : "";
    // Routes are also found with a slash at the end.
    for (const end of hasEffect ? ["", "/"] : [""]) {
      const { status, headers } = await dead.call("GET", asked + end + query, options);
      if (status !== 503) continue;
      expect([path + end, headers.has("retry-after")]).toEqual([path + end, !hasEffect]);
      seen[hasEffect ? "effects" : "reads"].add(path + end);
    }
  }
  // Its ticket is checked before the first statement.
  effects.delete("/oauth/authorize/sso");
  expect(seen.effects).toEqual(new Set([...effects].flatMap((path) => [path, `${path}/`])));
  expect(seen.reads.size).toBeGreaterThan(50);
});

test("a read is unavailable, although it leaves a row in the audit log", async () => {
  const options = { token: world.tokens.root };
  const answer = await losing(100, () => api.call("GET", "/admin/users", options));
  expect([answer.status, answer.body["code"]]).toEqual([503, "unavailable"]);
  expect(answer.headers.get("retry-after")).not.toBeNull();
});

test("the outcome of a refresh is unknown, and repeating it at once ends no session", async () => {
  const { email } = world.tenants.partners[0].owner;
  const token = (form: Readonly<Record<string, string>>) =>
    postForm(api, "/oauth/token", { ...form, ...credentialsOf(client) });
  const first = await token({ grant_type: "password", username: email, password: PASSWORD });
  const form = { grant_type: "refresh_token", refresh_token: String(first.body["refresh_token"]) };
  const lost = await losing(100, () => token(form));
  expect([lost.status, lost.body["error"], lost.headers.get("retry-after")]).toEqual([
    503,
    "server_error",
    null,
  ]);
  const repeated = await token(form);
  expect([repeated.status, repeated.body["error"]]).toEqual([400, "invalid_grant"]);
  const own = await api.call("GET", "/verify-token", { token: String(first.body["access_token"]) });
  expect(own.status).toBe(200);
});

const outcomeUnknown = Object.assign(new Error("The answer was lost."), {
  code: "OUTCOME_UNKNOWN",
});
/** A database that loses the answer to each statement. */
const lost: RawDb = new Proxy(
  Object.assign(() => lost),
  {
    get: (_, name) =>
      name === "then"
        ? (_done: unknown, fail: (error: Error) => void) => fail(outcomeUnknown)
        : lost,
    apply: () => lost,
  },
);

const AT = "2026-06-01T12:00:00.000Z";
let count = 0;
const newIds = (size: number) => Array.from({ length: size }, () => `id-${++count}`);
const changeOf = (id: string) => ({ ...created(world.siteId, "known", { content: id }), id });
const reportOf = (id: string) => ({ ...created(world.siteId, `review-${id}`), id });

function actionOf(id: string, event: string) {
  const metadata = event === "note_added" ? { metadata: { body: "A note" } } : {};
  const common = { id, event, actor: { type: "system" }, occurred_at: AT, review_id: reviewId };
  return { ...common, ...metadata };
}

const take = (actions: readonly object[]) =>
  api.call("POST", "/platform/actions", { token: service, body: { actions } });

/** Loses the answers to the next commits while `work` runs. */
async function losing<T>(
  commits: number,
  work: (firstIsLost: Promise<void>) => Promise<T>,
): Promise<T> {
  let left = commits;
  const { promise: firstIsLost, resolve } = Promise.withResolvers<void>();
  proxy.losesCommit = () => {
    resolve();
    return left-- > 0;
  };
  try {
    return await work(firstIsLost);
  } finally {
    proxy.losesCommit = () => false;
  }
}

async function countingHistory<T>(work: () => Promise<T>): Promise<{ answer: T; rows: number }> {
  const rowsNow = async () => (await world.database.db.sql`select from review_history`).length;
  const before = await rowsNow();
  const answer = await work();
  return { answer, rows: (await rowsNow()) - before };
}
