// Which answers may be cached, and for how long (contract 2.8 and 4.4).
import { describe, expect, test } from "bun:test";

import { createApp } from "../../../src/app.ts";
import { PUBLISHED_MS, rotateKeys } from "../../../src/auth/keys/rotate-keys.ts";
import { openKeyRing } from "../../../src/auth/keys/key-ring.ts";
import { addMs } from "../../../src/lib/clock.ts";
import { startApi } from "../../support/api.ts";
import { createFakeClock } from "../../support/clock.ts";
import { fixture } from "../../support/fixture.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addTenants } from "../../support/tenants.ts";

const DOCUMENTS = ["/.well-known/jwks.json", "/.well-known/oauth-authorization-server"];

const clock = createFakeClock();
const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
const api = fixture(() => startApi({ db: database.db, clock }));

test("of all routes, only the two documents of tokens and the files of pages may be cached", async () => {
  const app = createApp(api.deps);
  const token = await api.login(tenants.superAdmin.email);
  const cacheable = new Set<string>();
  for (const { method, path } of app.routes) {
    if (method === "ALL" || OF_PAGES.test(path) || path.endsWith("/stream")) continue;
    const url = `http://localhost${path.replaceAll(/:\w+/g, "1")}`;
    const isEnding = /logout|revoking-token/.test(path);
    for (const headers of [{}, isEnding ? {} : { Authorization: `Bearer ${token}` }]) {
      const answer = await app.handle(new Request(url, { method, headers }));
      await answer.body?.cancel();
      const allowed = answer.headers.get("cache-control");
      if (allowed !== "no-store") cacheable.add(`${path} ${allowed}`);
    }
  }
  expect([...cacheable].toSorted()).toEqual(DOCUMENTS.map((one) => `${one} ${ALLOWED}`));
});

describe.each(DOCUMENTS)("%s", (path) => {
  const get = (headers: Record<string, string> = {}, method = "GET") =>
    api.call(method, path, { root: true, headers });

  test("is answered 304 to whom has it, and its head to HEAD", async () => {
    const { status, headers, text } = await get();
    expect([status, headers.get("content-type")]).toEqual([200, "application/json"]);
    const etag = headers.get("etag") ?? "";
    for (const tag of [etag, `W/"other", ${etag}`, "*"]) {
      const known = await get({ "If-None-Match": tag });
      expect([known.status, known.text, known.headers.get("etag")]).toEqual([304, "", etag]);
      expect(known.headers.get("cache-control")).toBe(ALLOWED);
    }
    expect((await get({ "If-None-Match": 'W/"other"' })).text).toBe(text);
    const head = await get({}, "HEAD");
    expect([head.status, head.text, head.headers.get("cache-control")]).toEqual([200, "", ALLOWED]);
  });

  test("is not cached for another origin, and its refusals are not cached", async () => {
    for (const headers of [{}, { Origin: "https://app.example" }])
      expect((await get(headers)).headers.get("vary")).toBe("Origin");
    const wrong = await get({}, "POST");
    expect([wrong.status, wrong.headers.get("cache-control")]).toEqual([405, "no-store"]);
  });
});

test("a key signs only after every cache of the key set has it, and the ETag changes with the keys", async () => {
  const shown = async () => {
    const { body, headers } = await api.call("GET", DOCUMENTS[0] ?? "", { root: true });
    const age = /max-age=(\d+)/.exec(headers.get("cache-control") ?? "")?.[1];
    const kids = (body["keys"] as { kid: string }[]).map(({ kid }) => kid);
    return { kids, etag: headers.get("etag"), staleAt: addMs(clock.now(), Number(age) * 1_000) };
  };
  const deps = { db: database.db, box: api.deps.box, clock };
  clock.advance(PUBLISHED_MS);
  const before = await shown();
  const { next } = await rotateKeys(deps, { isForced: false });
  expect(before.kids).not.toContain(next);
  clock.advance(PUBLISHED_MS - 1);
  await expect(rotateKeys(deps, { isForced: false })).rejects.toThrow("Nothing was changed");
  expect(before.staleAt.getTime()).toBeLessThan(clock.now().getTime());
  const rotated = await startApi({
    ...api.deps,
    keys: await openKeyRing({ ...deps, log: api.deps.log, config: api.deps.config }),
  });
  const { headers } = await rotated.call("GET", DOCUMENTS[0] ?? "", { root: true });
  expect(headers.get("etag")).not.toBe(before.etag);
});

const ALLOWED = "public, max-age=1800";
/** Pages, their files and the descriptions, which name nobody. */
const OF_PAGES = /^\/(?:dashboard|docs|embed|openapi\.)/;
