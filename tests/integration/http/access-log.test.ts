import { afterAll, beforeAll, expect, test } from "bun:test";

import { BASE_PATH } from "../../../src/http/access.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { fieldsOf } from "../../../src/lib/fields.ts";
import { createLog } from "../../../src/lib/log.ts";
import { PASSWORD, startApi, type TestApi } from "../../support/api.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addTenants } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
const api = fixture(() => startApi({ db: database.db, config: { accessLog: true } }));

test("a request is logged in one line with id, route, status, duration and caller", async () => {
  const { owner, id } = tenants.partners[0];
  const token = await api.login(owner.email);
  const line = await call("GET", "/partner/webhooks/01JYZ0000000000000000000AA", { token });
  expect(line).toEqual({
    level: "info",
    event: "request.answered",
    request_id: expect.any(String),
    method: "GET",
    route: `${BASE_PATH}/partner/webhooks/:id`,
    status: 404,
    duration_ms: expect.any(Number),
    user_id: owner.id,
    company_id: id,
    token: "access",
  });
});

test("a request without a token is logged with its address", async () => {
  const body = { email: tenants.partners[0].owner.email, password: "wrong" };
  expect(await call("POST", "/login", { body })).toMatchObject({ status: 401, ip: "127.0.0.1" });
});

test.each([
  ["GET", "/nowhere/sk_live_secret?token=sk_live_secret", 404],
  ["PUT", "/login?token=sk_live_secret", 405],
  ["GET", "/auth/sso/exchange?code=sk_live_secret", 400],
])("%s %s is logged without the secret in the address", async (method, path, status) => {
  const line = await call(method, path);
  expect(line).toMatchObject({ event: "request.answered", status });
  expect(JSON.stringify(line)).not.toContain("secret");
});

test("no line contains a token, a password, a code or a personal address", async () => {
  const { email } = tenants.partners[0].owner;
  const token = await api.login(email);
  await call("POST", "/email-otp/verify", { body: { email, otp: "123456", type: "signup" } });
  await call("POST", "/reset-password", { token: "not-a-token", body: { password: PASSWORD } });
  const said = api.lines.join("\n");
  for (const secret of [token, PASSWORD, "123456", "not-a-token", email])
    expect(said).not.toContain(secret);
});

test("a value with line breaks and quotes stays in the one line of its event", () => {
  const lines: string[] = [];
  const log = createLog({ level: "info", role: "api", clock: systemClock }, (line) =>
    lines.push(line),
  );
  const error = 'a\n{"level":"info","event":"auth.forged"}\r\u001b[2K';
  log.warn("mail.attempted", { error });
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatch(/^[^\p{Cc}]+\n$/u);
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({ event: "mail.attempted", error });
});

test("ACCESS_LOG=off leaves the lines out", async () => {
  await quiet.login(tenants.partners[0].owner.email);
  expect(quiet.lines.filter((line) => line.includes("request.answered"))).toEqual([]);
});

test.each(["/healthz", "/readyz"])("%s is logged at level debug", async (route) => {
  const before = api.lines.length;
  await api.call("GET", route, { root: true });
  const lines = api.lines.slice(before).map((line) => fieldsOf(JSON.parse(line)));
  const answered = lines.filter(({ event }) => event === "request.answered");
  expect(answered).toMatchObject([{ level: "debug", route }]);
});

let quiet: TestApi;

beforeAll(async () => {
  const { box } = api.deps;
  quiet = await startApi({ db: database.db, box, config: { accessLog: false } });
});

afterAll(async () => {
  await quiet.stop();
});

/** Returns the log line of the request with this id. */
function lineOf(id: string): Record<string, unknown> | undefined {
  return api.lines
    .map((line) => fieldsOf(JSON.parse(line)))
    .find((line) => line["request_id"] === id);
}

async function call(
  method: string,
  path: string,
  options: { token?: string; body?: unknown } = {},
) {
  const id = crypto.randomUUID();
  await api.call(method, path, { ...options, headers: { "x-request-id": id } });
  return lineOf(id);
}
