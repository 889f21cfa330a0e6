// Creating requests that a client repeats with an Idempotency-Key (contract 2.14).
import { beforeEach, describe, expect, test } from "bun:test";

import { purge } from "../../../src/auth/purge.ts";
import { startApi } from "../../support/api.ts";
import { createFakeClock } from "../../support/clock.ts";
import { fixture } from "../../support/fixture.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addTenants } from "../../support/tenants.ts";

const DAY_MS = 24 * 3_600_000;

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
const clock = createFakeClock();
const api = fixture(() => startApi({ db: database.db, clock }));

let root = "";
let owner = "";
// The clock of one test ends the tokens of earlier ones.
beforeEach(async () => {
  root = await api.login(tenants.superAdmin.email);
  owner = await api.login(tenants.partners[0].owner.email);
});

describe("a repeated request", () => {
  test("with another body or path is a 422 on the header", async () => {
    const [key, name] = [newKey(), newName()];
    await create(key, { name });
    for (const other of [
      await create(key, { name: newName() }),
      await create(key, { name }, "partners"),
    ])
      expect([other.status, Object.keys(other.body["errors"] ?? {})]).toEqual([
        422,
        ["Idempotency-Key"],
      ]);
  });

  test("of another user has nothing to do with it", async () => {
    const key = newKey();
    await create(key, { name: newName() });
    const body = { label: "x", webhook_url: "http://127.0.0.1:9/", delivery_kind: "immediate" };
    const headers = { "idempotency-key": key };
    const made = await api.call("POST", "/partner/webhooks", { token: owner, body, headers });
    expect(made.status).toBe(201);
    const again = await api.call("POST", "/partner/webhooks", { token: owner, body, headers });
    expect(again.body).toEqual(made.body);
    expect((await api.call("POST", "/partner/webhooks", { token: owner, body })).status).toBe(409);
  });

  test("after a refusal is done as if it were the first", async () => {
    const [key, name] = [newKey(), newName()];
    expect((await create(key, { name: "" })).status).toBe(422);
    await create(newKey(), { name });
    expect((await create(key, { name })).status).toBe(422);
    expect((await create(key, { name: newName() })).status).toBe(201);
  });

  test("after 24 hours is a new one, and its key is purged", async () => {
    const [key, name] = [newKey(), newName()];
    await create(key, { name });
    clock.advance(DAY_MS - 1);
    root = await api.login(tenants.superAdmin.email);
    expect((await create(key, { name })).status).toBe(201);
    clock.advance(1);
    // The name of the plan is taken, so that the request is really done again.
    expect((await create(key, { name })).status).toBe(422);
    await create(newKey(), { name: newName() });
    const { config } = api.deps;
    await purge({ db: database.db, config }, new Date(clock.now().getTime() + DAY_MS + 60_000));
    expect(await database.db.sql`select from keyed_requests`).toHaveLength(0);
  });
});

test.each([
  ["x".repeat(255), 201],
  ["x".repeat(256), 422],
  ["", 422],
  ["two words", 422],
])("a key has 1 to 255 visible characters", async (key, status) => {
  const made = await create(key, { name: newName() });
  expect(made.status).toBe(status);
  if (status === 422) expect(Object.keys(made.body["errors"] ?? {})).toEqual(["Idempotency-Key"]);
});

test("a request that creates nothing ignores the key", async () => {
  const headers = { "idempotency-key": newKey() };
  const { id } = tenants.partners[0];
  const path = `/admin/partners/${id}/activate`;
  expect((await api.call("POST", path, { token: root, headers })).status).toBe(200);
  expect((await api.call("GET", "/admin/plans", { token: root, headers })).status).toBe(200);
  const rows = await database.db
    .sql`select from keyed_requests where key like ${`%:${headers["idempotency-key"]}`}`;
  expect(rows).toHaveLength(0);
});

let made = 0;
const newKey = () => crypto.randomUUID();
const newName = () => `thing-${++made}`;

const create = (key: string, body: object, kind = "plans") =>
  api.call("POST", `/admin/${kind}`, { token: root, body, headers: { "idempotency-key": key } });
