// Which sign-ins pass strangers while wrong passwords queue for their hash (contract 3.7).
import { expect, test } from "bun:test";

import { isKnownBrowser } from "../../../src/auth/sign-in/log-in.ts";
import type { Passwords } from "../../../src/lib/password.ts";
import { PASSWORD, startApi } from "../../support/api.ts";
import { fixture } from "../../support/fixture.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addTenants } from "../../support/tenants.ts";

const trusted: (boolean | undefined)[] = [];

/** Passwords that are always busy, and note which requests may pass others. */
const passwords: Passwords = {
  hash: async (password) => password,
  async verify(password, hash, _from, isTrusted) {
    trusted.push(isTrusted);
    return hash !== null && password === PASSWORD;
  },
  isBusy: true,
  needsRehash: () => false,
};

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
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

test.each([
  ["address", true],
  ["browser", true],
  ["name alone", false],
])("a person whose %s is known passes strangers: %p", async (known, passes) => {
  const { owner } = tenants.partners[0];
  const first = await signIn(owner.email, HOME, { headers: FROM_PAGE });
  expect(first.status).toBe(200);
  const [cookie = ""] = (first.headers.get("set-cookie") ?? "").split(";");
  const again = known === "browser" ? { headers: { Cookie: cookie } } : {};
  const from = known === "address" ? HOME : `198.51.${trusted.length}.99`;
  expect((await signIn(owner.email, from, again)).status).toBe(200);
  expect(trusted.at(-1)).toBe(passes);
});

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

function signIn(email: string, from: string, { headers = {} }: { headers?: object } = {}) {
  return api.call("POST", "/login", {
    headers: { "X-Forwarded-For": from, ...headers },
    body: { email, password: PASSWORD },
  });
}
