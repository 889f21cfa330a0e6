// Sign-ins while very many wrong passwords wait for their hash (contract 3.7).
import { expect, test } from "bun:test";

import { isKnownBrowser } from "../../../src/auth/sign-in/log-in.ts";
import { createPasswords } from "../../../src/lib/password.ts";
import { PASSWORD, startApi } from "../../support/api.ts";
import { fixture } from "../../support/fixture.ts";
import { until } from "../../support/network/receiver.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addTenants } from "../../support/tenants.ts";

/** Enough for several seconds of hashes, one after the other. */
const STRANGERS = 60;

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
const passwords = createPasswords({ running: 1, waiting: 512 });
const api = fixture(() =>
  startApi({
    db: database.db,
    passwords,
    config: { trustedProxies: ["127.0.0.1"] },
  }),
);

/** A sign-in from a page of the service, with which a browser gets its cookie. */
const FROM_PAGE = { "Sec-Fetch-Site": "same-origin" };
const HOME = "198.51.100.7";

test.each(["address", "browser"])(
  "a person whose %s signed them in before does not wait for strangers at as many networks",
  async (known) => {
    const { owner } = tenants.partners[0];
    const first = await signIn(owner.email, HOME, { headers: FROM_PAGE });
    expect(first.status).toBe(200);
    const [cookie = ""] = (first.headers.get("set-cookie") ?? "").split(";");
    const again = known === "address" ? {} : { headers: { Cookie: cookie } };
    const crowd = flood();
    await until("the crowd", () => passwords.load().waiting > STRANGERS - 10);
    const before = crowd.answers.length;
    const from = known === "address" ? HOME : "198.51.100.99";
    expect((await signIn(owner.email, from, again)).status).toBe(200);
    // At most one hash is ahead. A few more may end while the request reads the database.
    expect(passwords.load().waiting).toBeGreaterThan(STRANGERS / 2);
    expect(crowd.answers.length - before).toBeLessThan(STRANGERS / 4);
    await crowd.ended;
    expect(new Set(crowd.answers)).toEqual(new Set([401]));
  },
);

test("the cookie of a browser is set for pages of the service only, and holds for one email", async () => {
  const [{ owner }, { owner: another }] = tenants.partners;
  expect((await signIn(owner.email, HOME)).headers.get("set-cookie")).toBeNull();
  const cross = { headers: { "Sec-Fetch-Site": "cross-site" } };
  expect((await signIn(owner.email, HOME, cross)).headers.get("set-cookie")).toBeNull();
  const { headers } = await signIn(owner.email, HOME, { headers: FROM_PAGE });
  const [written = "", ...attributes] = (headers.get("set-cookie") ?? "").split("; ");
  expect(attributes).toEqual(["Path=/", "Max-Age=15552000", "HttpOnly", "SameSite=Lax"]);
  const { deps } = api;
  const isKnown = (cookie: string, email: string) =>
    isKnownBrowser(deps, new Headers({ cookie }), email);
  expect(isKnown(written, owner.email.toUpperCase())).toBe(true);
  expect(isKnown(written, another.email)).toBe(false);
  const other = written.at(-9) === "A" ? "B" : "A";
  expect(isKnown(written.slice(0, -9) + other + written.slice(-8), owner.email)).toBe(false);
  expect(isKnown(`${written}; ${written}`, owner.email)).toBe(false);
  expect(isKnown("rr_browser=v1.x.y", owner.email)).toBe(false);
});

test("a newcomer waits for its turn, and is not refused", async () => {
  const { owner } = tenants.partners[1];
  const crowd = flood();
  await until("the crowd", () => passwords.load().waiting > STRANGERS - 10);
  expect((await signIn(owner.email, "198.51.100.8")).status).toBe(200);
  await crowd.ended;
  expect(new Set(crowd.answers)).toEqual(new Set([401]));
});

function signIn(
  email: string,
  from: string,
  { password = PASSWORD, headers = {} }: { password?: string; headers?: object } = {},
) {
  return api.call("POST", "/login", {
    headers: { "X-Forwarded-For": from, ...headers },
    body: { email, password },
  });
}

function flood() {
  const answers: number[] = [];
  const all = Array.from({ length: STRANGERS }, async (_, n) => {
    const wrong = { password: "wrong password" };
    answers.push((await signIn(`nobody-${n}@flood.test`, `10.1.${n}.1`, wrong)).status);
  });
  return { answers, ended: Promise.all(all) };
}
