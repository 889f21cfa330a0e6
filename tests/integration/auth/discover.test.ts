import { beforeAll, describe, expect, test } from "bun:test";

import { eq } from "drizzle-orm";

import { ssoConnections } from "../../../db/schema/sign-in.ts";
import { PASSWORD, startApi, type TestApi } from "../../support/api.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addSsoConnection, addTenants, addUser, type Tenants } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);

describe("discovery", () => {
  test("reports that a domain without a provider takes passwords", async () => {
    expect((await discover("a@plain.test")).body).toEqual(passwordOnly);
    expect((await discover("a@off.test")).body).toEqual(passwordOnly);
    expect((await discover("a@sub.both.test")).body).toEqual(passwordOnly);
    expect((await discover("a@notboth.test")).body).toEqual(passwordOnly);
  });

  test("reports the provider's URL of a domain, and whether passwords work too", async () => {
    const both = { methods: ["password", "sso"], password: true, sso: true };
    expect((await discover("a@both.test")).body).toEqual({
      ...both,
      sso_url: url(connections.both),
    });
    expect((await discover("a@two.test")).body).toEqual({
      ...both,
      sso_url: url(connections.both),
    });
    expect((await discover("a@only.test")).body).toEqual({
      methods: ["sso"],
      password: false,
      sso: true,
      sso_url: url(connections.only),
    });
  });

  test("does not depend on how the domain is written", async () => {
    for (const email of [" A@ONLY.TEST ", "a@only.test.", "a+b@Only.test"])
      expect((await discover(email)).body).toMatchObject({ sso_url: url(connections.only) });
    for (const email of ["a@bücher.test", "a@XN--BCHER-KVA.test", "a@BÜCHER.test"])
      expect((await discover(email)).body).toMatchObject({ sso_url: url(connections.idn) });
  });

  test("has the same bytes for known and unknown emails of a domain", async () => {
    const companyId = tenants.partners[0].accounts[0].id;
    const role = "account_user";
    for (const domain of ["both.test", "only.test", "plain.test"]) {
      const { email } = await addUser(database.db, { companyId, role, email: `known@${domain}` });
      await addUser(database.db, { companyId, role, email: `off@${domain}`, isActive: false });
      const answers = [email, `nobody@${domain}`, `off@${domain}`].map(discover);
      const [one, ...others] = await Promise.all(answers);
      for (const answer of others) {
        expect(answer.text).toBe(one?.text ?? "");
        expect([...answer.headers.keys()]).toEqual([...(one?.headers.keys() ?? [])]);
      }
    }
  });

  test.each([undefined, "nobody", "a@", "@b.test", "a@b@c.test", "e".repeat(255)])(
    "of %p is 422 on email",
    async (email) => {
      const answer = await discover(email);
      expect(answer.status).toBe(422);
      expect(Object.keys(answer.body["errors"] as object)).toEqual(["email"]);
    },
  );

  test("of an invalid domain reports passwords", async () => {
    for (const email of ["a@b..c", "a@%", "a@[::1]", "a@\u0000x", `a@${"x".repeat(200)}`])
      expect((await discover(email)).body).toEqual(passwordOnly);
  });
});

describe("a domain that takes no passwords", () => {
  const login = (email: string) =>
    api.call("POST", "/login", { body: { email, password: PASSWORD } });
  const add = (email: string, companyId: number) =>
    addUser(database.db, { companyId, role: "account_user", email });

  test("rejects the correct password of its company's users like a wrong one, until it is switched off", async () => {
    const [account, stranger] = tenants.partners[0].accounts;
    const { email } = await add("user@only.test", account.id);
    expect((await login(email)).body).toMatchObject({ code: "invalid_credentials" });
    const setActive = (isActive: boolean) =>
      database.db
        .update(ssoConnections)
        .set({ isActive })
        .where(eq(ssoConnections.id, connections.only));
    await setActive(false);
    expect((await login(email)).status).toBe(200);
    await setActive(true);
    expect((await login(email)).status).toBe(401);
    // The policy of one company does not lock out users of another company.
    expect((await login((await add("guest@only.test", stranger.id)).email)).status).toBe(200);
  });
});

let api: TestApi;

let tenants: Tenants;

const connections = { both: "", only: "", off: "", idn: "" };

beforeAll(async () => {
  const { db } = database;
  tenants = await addTenants(db);
  api = await startApi({ db });
  const companyId = tenants.partners[0].accounts[0].id;
  connections.both = await addSsoConnection(db, { companyId, domains: ["both.test", "two.test"] });
  connections.only = await addSsoConnection(db, {
    companyId,
    domains: ["only.test"],
    passwordLogin: false,
  });
  connections.off = await addSsoConnection(db, {
    companyId,
    domains: ["off.test"],
    passwordLogin: false,
    isActive: false,
  });
  connections.idn = await addSsoConnection(db, { companyId, domains: ["xn--bcher-kva.test"] });
});

const discover = (email: unknown) =>
  api.call("POST", "/auth/discover", {
    body: { email },
    headers: { "X-Request-Id": "r" },
  });

const url = (connection: string) =>
  `http://localhost:3000/api/v1/auth/sso/redirect?connection=${connection}`;

const passwordOnly = { methods: ["password"], password: true, sso: false, sso_url: null };
