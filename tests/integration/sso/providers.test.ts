// Identity providers differ in how they say that an email is verified; the tests show which claims link a user (contract
// 4.13). The guide src/docs/guides/single-sign-on.md names real providers for the cases.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";

import { startApi } from "../../support/api.ts";
import { untilSomebodyWaits } from "../../support/auth-races.ts";
import { fixture } from "../../support/fixture.ts";
import { createDatabase } from "../../support/postgres.ts";
import { type Claims, codeOrReason, connect, HostileProvider } from "../../support/sso.ts";
import { addTenants, addUser } from "../../support/tenants.ts";

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
const api = fixture(() => startApi({ db: database.db }));

describe("a first sign-in, without trust and then with it, of an address in a proved and in another domain, if the provider", () => {
  test.each<readonly [string, Said, readonly [careful: string, proved: string, open: string]]>([
    ["says true", { token: verified }, [YES, YES, YES]],
    ["says it as text", { token: { email, email_verified: "true" } }, [YES, YES, YES]],
    ["says it nowhere", { token: { email } }, [NO, YES, NO]],
    ["says null", { token: { email, email_verified: null } }, [NO, YES, NO]],
    ["says false", { token: { email, email_verified: false } }, [NO, NO, NO]],
    ["says false as text", { token: { email, email_verified: "false" } }, [NO, NO, NO]],
    ["says 1", { token: { email, email_verified: 1 } }, [NO, NO, NO]],
    ["says True", { token: { email, email_verified: "True" } }, [NO, NO, NO]],
    ["says true in a list", { token: { email, email_verified: [true] } }, [NO, NO, NO]],
    ["says it in userinfo only", { token: { email }, userinfo: verified }, [YES, YES, YES]],
    [
      "says true of another address in userinfo",
      { token: { email }, userinfo: { email: "other@corp.test", email_verified: true } },
      [NO, YES, NO],
    ],
    ["has no email", { token: {}, userinfo: {} }, ["no_email", "no_email", "no_email"]],
    [
      "speaks of another subject in userinfo",
      { token: { email }, userinfo: { sub: "another", ...verified } },
      [BAD, BAD, BAD],
    ],
    ["refuses userinfo", { token: { email }, status: 403 }, [BAD, YES, BAD]],
    ["breaks at userinfo", { token: { email }, status: 500 }, [BAD, YES, BAD]],
    ["refuses userinfo, which alone has the email", { token: {}, status: 403 }, [BAD, BAD, BAD]],
  ])("%s", async (_, said, [careful, proved, open]) => {
    expect([
      await outcome(said, { trust: false, domain: "careful.test" }),
      await outcome(said, { trust: false, domain: "open.test" }),
      await outcome(said, { trust: true, domain: "proved.test" }),
      await outcome(said, { trust: true, domain: "unproved.test" }),
    ]).toEqual([careful, careful, proved, open]);
  });

  test("has no userinfo that can be reached", async () => {
    const said = { token: { email } };
    provider = silent;
    const where = { connection: silentConnection, domain: "silent.test" };
    expect(await outcome(said, where)).toBe(YES);
    await database.db.sql`
      update sso_connections set trust_email = false where id = ${silentConnection}`;
    expect(await outcome(said, where)).toBe("provider_unreachable");
    expect(await outcome({ token: verified }, where)).toBe(YES);
  });
});

describe("a person with two addresses", () => {
  test("is the user of the address in the id_token, whatever userinfo verifies", async () => {
    provider = plain;
    const one = await addPerson("one@proved.test");
    const two = await addPerson("two@proved.test");
    const said = {
      token: { sub: "two-addresses", email: one.email },
      userinfo: { sub: "two-addresses", email: two.email, email_verified: true },
    };
    expect(await signIn(trusting, said)).toBe(one.id);
    // From then on the subject decides.
    const later = { ...said, token: { ...said.token, email: two.email, email_verified: true } };
    expect(await signIn(trusting, later)).toBe(one.id);
  });
});

test("a trusted address of nobody creates a user only where the connection says so", async () => {
  provider = plain;
  const said = {
    token: { sub: "newcomer", email: "nell@proved.test" },
    userinfo: { sub: "newcomer", name: "Nell" },
  };
  expect(await signIn(trusting, said)).toBe("unknown_user");
  const path = `/admin/sso-connections/${trusting}`;
  const body = { new_users: { role: "account_user" } };
  expect((await api.call("PATCH", path, { token: root, body })).body).toMatchObject(body);
  expect(await signIn(trusting, said)).toBeNumber();
  const [made] = await database.db.sql`select name from users where email = 'nell@proved.test'`;
  expect(made).toEqual({ name: "Nell" });
});

test.each([
  ["trust_email ends", { trust_email: false }],
  ["the domain leaves the connection", { domains: ["another.test"] }],
  ["the provider is replaced", { issuer: "https://1.1.1.1" }],
])("links nobody if %s while the sign-in is under way", async (_what, body) => {
  provider = plain;
  const { id: company_id } = tenants.partners[0].accounts[0];
  const { issuer } = plain;
  const domain = `under-way-${++people}.test`;
  const trust = { issuer, domains: [domain], trust_email: true };
  const connection = await connect(api, root, { company_id, ...trust });
  await database.db.sql`update sso_domains set proved_at = now() where domain = ${domain}`;
  const user = await addPerson(`person@${domain}`);
  const token = { sub: domain, email: user.email };
  const signingIn = await database.db.transaction(async ({ sql }) => {
    await sql`select from users where id = ${user.id} for update`;
    const begun = signIn(connection, { token, userinfo: token });
    await untilSomebodyWaits(database.db);
    const path = `/admin/sso-connections/${connection}`;
    expect((await api.call("PATCH", path, { token: root, body })).status).toBe(200);
    return { begun };
  });
  expect(await signingIn.begun).toBe("unknown_connection");
  const links = await database.db.sql`select from sso_identities where user_id = ${user.id}`;
  expect(links).toHaveLength(0);
});

interface Said {
  /** Claims of the id_token besides the subject. `EMAIL` stands for the address of the user. */
  readonly token: Claims;
  /** Claims of userinfo besides the subject; those of the id_token if absent. */
  readonly userinfo?: Claims;
  /** The status of userinfo; 200 if absent. */
  readonly status?: number;
}

const EMAIL = "the address of the user";
const YES = "signed in";
const NO = "unverified_email";
const BAD = "bad_userinfo";
const email = EMAIL;
const verified = { email, email_verified: true };

/** The provider of the next sign-in: one that is whole, or one whose userinfo cannot be reached. */
let provider: HostileProvider;
let plain: HostileProvider;
let silent: HostileProvider;
let root = "";
let trusting = "";
let careful = "";
let silentConnection = "";
let people = 0;

beforeAll(async () => {
  root = await api.login(tenants.superAdmin.email);
  [plain, silent] = await Promise.all([HostileProvider.start(), HostileProvider.start()]);
  silent.onDiscovery = (document) => {
    document["userinfo_endpoint"] = "http://localhost:1/userinfo";
  };
  provider = plain;
  const { id: company_id } = tenants.partners[0].accounts[0];
  const { issuer } = plain;
  const make = (more: { issuer: string; domains: string[]; trust_email?: boolean }) =>
    connect(api, root, { company_id, ...more });
  careful = await make({ issuer, domains: ["careful.test", "open.test"] });
  trusting = await make({ issuer, domains: ["proved.test", "unproved.test"], trust_email: true });
  silentConnection = await make({
    issuer: silent.issuer,
    domains: ["silent.test"],
    trust_email: true,
  });
  await database.db.sql`
    update sso_domains set proved_at = now()
     where domain in ('careful.test', 'proved.test', 'silent.test')`;
});

afterAll(async () => {
  await Promise.all([plain.stop(), silent.stop()]);
});

const addPerson = (address: string) => {
  const { id: companyId } = tenants.partners[0].accounts[0];
  return addUser(database.db, { companyId, role: "account_user", email: address });
};

/** Signs a new user in for the first time; answers `YES` or the reason of the refusal. */
async function outcome(
  said: Said,
  { domain, ...where }: { domain: string; trust?: boolean; connection?: string },
): Promise<string> {
  const user = await addPerson(`person-${++people}@${domain}`);
  const of = (claims: Claims): Claims => {
    const addresses: Claims = {
      [EMAIL]: user.email,
      [EMAIL.toUpperCase()]: user.email.toUpperCase(),
    };
    const address = addresses[String(claims["email"])] ?? claims["email"];
    return { sub: `person-${people}`, ...claims, email: address };
  };
  const token = of(said.token);
  const userinfo = of(said.userinfo ?? said.token);
  const connection = where.connection ?? (where.trust === true ? trusting : careful);
  const signedIn = await signIn(connection, { ...said, token, userinfo });
  if (typeof signedIn === "string") return signedIn;
  expect(signedIn).toBe(user.id);
  return YES;
}

/** Signs in with what the provider says; answers the id of the user or the reason of the refusal. */
async function signIn(connection: string, said: Said): Promise<number | string> {
  provider.onIdToken = (payload) => void Object.assign(payload, said.token);
  provider.onUserinfo = (body, answer) => {
    for (const name of Object.keys(body)) delete body[name];
    Object.assign(body, said.userinfo);
    answer.statusCode = said.status ?? 200;
  };
  const code = await codeOrReason(api, connection);
  if (code.length !== 43) return code;
  const { body } = await api.call("GET", `/auth/sso/exchange?code=${code}`);
  return (body["user"] as { id: number }).id;
}
