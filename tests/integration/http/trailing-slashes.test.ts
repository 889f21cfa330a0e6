// A slash behind a path means nothing (contract 2.1).
import { expect, test } from "bun:test";

import { createApp } from "../../../src/app.ts";
import type { CountRequest } from "../../../src/http/metrics.ts";
import { pathOf } from "../../../src/http/text.ts";
import { startApi } from "../../support/api.ts";
import { fixture } from "../../support/fixture.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addTenants } from "../../support/tenants.ts";

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
const api = fixture(() => startApi({ db: database.db }));

test("every route but the first page answers alike with a slash behind it, without a redirect", async () => {
  let route: string | undefined;
  const countRequest: CountRequest = (request) => {
    ({ route } = request);
  };
  const app = createApp({ ...api.deps, countRequest });
  const paths = new Set(app.routes.map(({ path }) => path));
  paths.delete("/");
  const reached = new Set<string>();
  for (const path of paths)
    for (const method of METHODS) {
      const ask = async (url: string) => {
        route = undefined;
        const headers = { Origin: "https://app.example", "Access-Control-Request-Method": "POST" };
        const answer = await app.handle(new Request(`http://localhost${url}`, { method, headers }));
        await answer.body?.cancel();
        const said = SHOWN.map((name) => answer.headers.get(name));
        return { method, path, route, status: answer.status, said };
      };
      const at = path.replaceAll(/:\w+/g, "1");
      const answered = await ask(at);
      expect(await ask(`${at}/`)).toEqual(answered);
      if (answered.route !== undefined) reached.add(answered.route);
    }
  // Most routes answer 401 here, so that only the route tells the paths apart.
  expect(reached.size).toBeGreaterThan(100);
});

test("two slashes, an encoded one, another case and an encoded letter are other paths", async () => {
  const token = await api.login(tenants.superAdmin.email);
  const statusOf = async (path: string) => (await api.call("GET", path, { token })).status;
  expect(await statusOf("/verify-token/?x=1")).toBe(200);
  for (const path of [
    "/verify-token//",
    "//verify-token",
    "/verify-token/%2F",
    "/verify-token%2F",
    "/Verify-token",
    "/verify%2Dtoken",
  ])
    expect([path, await statusOf(path)]).toEqual([path, 404]);
});

test("a key of a repeated request is the same with and without it", async () => {
  const token = await api.login(tenants.superAdmin.email);
  const headers = { "Idempotency-Key": "one" };
  const body = { name: "Made once" };
  const make = (path: string) => api.call("POST", path, { token, headers, body });
  const [made, again] = [await make("/admin/partners"), await make("/admin/partners/")];
  expect([made.status, again.status, again.body["id"]]).toEqual([201, 201, made.body["id"]]);
});

test.each([
  ["http://a/", "/"],
  ["http://a", ""],
  ["http://a/x", "/x"],
  ["http://a/x/", "/x"],
  ["http://a/x/?y=/z/", "/x"],
  ["http://a/x?y=/z/", "/x"],
  ["http://a/x//", "/x/"],
  ["http://a.1/x/y/#/z/", "/x/y"],
])("the path of %s is %p", (url, path) => {
  expect(pathOf({ url })).toBe(path);
});

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
const SHOWN = ["allow", "location", "cache-control", "access-control-allow-origin"];
