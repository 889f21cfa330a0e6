import { afterAll, describe, expect, test } from "bun:test";

import { PASSWORD, startApi, type Answer, type TestApi } from "../../support/api.ts";
import { mailsTo } from "../../support/auth-mails.ts";
import { addIntegration } from "../../support/callers.ts";
import { challenged, prove, withApp } from "../../support/factors.ts";
import { startSignInWorld } from "../../support/sign-in.ts";
import { addUser } from "../../support/tenants.ts";

const CHROME = "Mozilla/5.0 (Windows NT 10.0) Chrome/120.0.1 Safari/537.36";
const NEWER_CHROME = "Mozilla/5.0 (Windows NT 10.0) Chrome/121.0.9 Safari/537.36";
const FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:120.0) Gecko/20100101 Firefox/120.0";

describe("a sign-in", () => {
  test("is mailed for a browser or an address that is new, and neither for the first nor for an update", async () => {
    const { email } = await freshUser();
    const counts: number[] = [];
    for (const [browser, from] of [
      [CHROME, "192.0.2.1"],
      [NEWER_CHROME, "192.0.2.1"],
      [FIREFOX, "192.0.2.1"],
      [CHROME, "192.0.2.2"],
      [FIREFOX, "192.0.2.1"],
      [CHROME, "2001:db8::1"],
      [CHROME, "2001:db8::2"],
      [CHROME, "2001:db8:0:1::1"],
    ] as const) {
      await signIn(email, browser, from);
      counts.push((await noticesTo(email)).length);
      clock.advance(5);
    }
    expect(counts).toEqual([0, 0, 1, 2, 2, 3, 3, 4]);
    const [mail] = await noticesTo(email);
    expect(mail).toMatchObject({ subject: "A sign-in from a new device" });
    expect(mail?.text).toContain("Browser: Firefox on Linux");
    expect(mail?.text).toContain("192.0.2.1");
  });

  test("with a wrong password mails nobody", async () => {
    const { email } = await freshUser();
    await signIn(email, CHROME, "192.0.2.1");
    const body = { email, password: "not the password" };
    const headers = { "User-Agent": FIREFOX, "X-Forwarded-For": "192.0.2.9" };
    expect((await api.call("POST", "/login", { body, headers })).status).toBe(401);
    expect(await noticesTo(email)).toEqual([]);
  });
});

test("a new token is mailed to its user, without the token", async () => {
  const { email } = await freshUser();
  const token = await api.login(email);
  const made = [
    await post(token, "/account/personal-access-tokens", { name: "Nightly export" }),
    await post(token, "/account/api-token"),
    await post(token, "/account/api-token/regenerate"),
  ];
  expect(made.map(({ status }) => status)).toEqual([201, 201, 200]);
  expect(await post(token, "/account/api-token")).toMatchObject({ status: 409 });
  const mails = await noticesTo(email);
  expect(mails.map(({ subject }) => subject)).toEqual(
    Array.from({ length: 3 }, () => "A new access token"),
  );
  expect(mails[0]?.text).toContain("Nightly export");
  for (const { body } of made) expect(contentOf(mails)).not.toContain(secretIn(body));
});

test("each change of a second factor is mailed to its user, and no wrong proof is", async () => {
  const user = await freshUser();
  const { token, factorId, recoveryCodes } = await withApp(world, user);
  const subjects = async () => (await noticesTo(user.email)).map(({ subject }) => subject);
  expect(await subjects()).toEqual(["A second factor was added to your account"]);
  const [recovery_code = ""] = recoveryCodes;
  const challenge = await challenged(api, user);
  expect((await prove(api, challenge.token, { recovery_code: "0000" })).status).toBe(422);
  expect((await prove(api, challenge.token, { recovery_code })).status).toBe(200);
  const renewed = await post(token, "/account/second-factors/recovery-codes");
  expect(renewed.status).toBe(200);
  clock.advance(5);
  const path = `/account/second-factors/${factorId}`;
  expect((await api.call("DELETE", path, { token })).status).toBe(204);
  expect(await subjects()).toEqual([
    "A second factor was added to your account",
    "A recovery code of your account was used",
    "New recovery codes were created for your account",
    "A second factor was removed from your account",
  ]);
  const [added, used] = await noticesTo(user.email);
  for (const fact of ["Authenticator app", "Browser: ", "127.0.0.1", "/dashboard/security\n"])
    expect(added?.text).toContain(fact);
  expect(used?.text).toMatch(/Codes left: +9/);
  for (const code of [...recoveryCodes, ...(renewed.body["recovery_codes"] as string[])])
    expect(contentOf(await noticesTo(user.email))).not.toContain(code);
});

test("a new owner is mailed to the other active owners of the company alone", async () => {
  const first = await ownerOf("first");
  const gone = await ownerOf("gone");
  const admin = await freshUser("partner_admin");
  await database.db.sql`update users set is_active = false where id = ${gone.id}`;
  const token = await api.login(first.email);
  const role = (to: string) => post(token, `/partner/users/${admin.id}/role`, { role: to });
  expect((await role("partner_owner")).status).toBe(200);
  expect((await role("partner_owner")).status).toBe(200);
  expect((await role("partner_admin")).status).toBe(200);
  const invited = { email: "invited@p1.test", name: "Ida", role: "partner_owner" };
  expect((await post(token, "/partner/users", invited)).status).toBe(201);
  expect(
    (await post(token, "/partner/users", { ...invited, email: "x@p1.test", role: "partner_admin" }))
      .status,
  ).toBe(201);
  const mails = await noticesTo(first.email);
  expect(mails.map(({ subject }) => subject)).toEqual(["A new owner", "A new owner"]);
  expect(mails[1]?.text).toContain("Ida");
  for (const email of [gone.email, admin.email, "invited@p1.test", tenants.partners[1].owner.email])
    expect(await noticesTo(email)).toEqual([]);
  const root = await api.login(tenants.superAdmin.email);
  const change = { role: "partner_owner" };
  const path = `/admin/users/${admin.id}`;
  expect((await api.call("PATCH", path, { token: root, body: change })).status).toBe(200);
  expect((await noticesTo(first.email)).at(-1)?.text).toContain("an operator of the platform");
});

test("another email address is mailed to the one before alone, and not while the user is invited", async () => {
  const root = await api.login(tenants.superAdmin.email);
  const move = async (id: number, email: string) => {
    const change = { token: root, body: { email } };
    expect((await api.call("PATCH", `/admin/users/${id}`, change)).status).toBe(200);
  };
  const user = await freshUser();
  await move(user.id, user.email);
  await move(user.id, "moved@p1.test");
  const [mail, ...others] = await noticesTo(user.email);
  expect(mail).toMatchObject({ subject: "The email address of your account was changed" });
  expect(mail?.text).toContain("an operator of the platform");
  expect(mail?.text).not.toContain("moved@p1.test");
  expect([...others, ...(await noticesTo("moved@p1.test"))]).toEqual([]);
  const owner = await api.login(tenants.partners[0].owner.email);
  const guest = { email: "typo@p1.test", name: "Ida", role: "partner_admin" };
  const made = await post(owner, "/partner/users", guest);
  await move(Number(made.body["id"]), "right@p1.test");
  expect(await noticesTo(guest.email)).toEqual([]);
});

test("a changed URL and a rotated secret are mailed to the partner's owners, in its brand", async () => {
  const { id: partnerId, owner } = tenants.partners[1];
  await database.db.sql`
    update companies set white_label_enabled = true, brand_name = 'Stellar' where id = ${partnerId}`;
  const token = await api.login(owner.email);
  const hook = { label: "Hook", webhook_url: "http://127.0.0.1:9/", delivery_kind: "immediate" };
  const { body } = await post(token, "/partner/webhooks", hook);
  const path = `/partner/webhooks/${String(body["id"])}`;
  const patch = (fields: object) => api.call("PATCH", path, { token, body: fields });
  const url = "http://127.0.0.1:10/?key=hidden-in-the-url";
  expect((await patch({ label: "Renamed" })).status).toBe(200);
  expect((await patch({ webhook_url: url })).status).toBe(200);
  expect((await patch({ webhook_url: url })).status).toBe(200);
  const rotated = await post(token, `${path}/rotate-secret`);
  expect(rotated.status).toBe(200);
  const mails = await noticesTo(owner.email);
  expect(mails.map(({ subject }) => subject)).toEqual([
    "A webhook URL was changed",
    "A webhook secret was rotated",
  ]);
  expect(mails[0]?.text).toContain("127.0.0.1:10");
  expect(mails.map(({ sender }) => sender)).toEqual(["Stellar", "Stellar"]);
  expect(contentOf(mails)).not.toContain("hidden-in-the-url");
  expect(contentOf(mails)).not.toContain(secretIn(rotated.body));
  const others = await noticesTo(tenants.partners[0].owner.email);
  expect(others.filter(({ subject }) => subject.includes("webhook"))).toEqual([]);
});

test("a new token of an integration is mailed to the partner's owners, without the token", async () => {
  const { email } = await ownerOf("machine");
  const token = await api.login(email);
  const made = await addIntegration(api, token, { name: "CRM" });
  const next = await post(token, `/partner/integrations/${made.id}/api-token/regenerate`);
  expect(next.status).toBe(200);
  const mails = await noticesTo(email);
  expect(mails.map(({ subject }) => subject)).toEqual(
    Array.from({ length: 2 }, () => "A new token of an integration"),
  );
  expect(mails[0]?.text).toContain("CRM");
  for (const secret of [made.token, secretIn(next.body)])
    expect(contentOf(mails)).not.toContain(secret);
  for (const other of [tenants.partners[0].admin.email, tenants.partners[1].owner.email]) {
    const theirs = await noticesTo(other);
    expect(theirs.filter(({ subject }) => subject.includes("integration"))).toEqual([]);
  }
});

test("where the setting is off, only changes of second factors are mailed", async () => {
  const user = await freshUser();
  const { email } = user;
  const silent = await startApi({
    db: database.connect(),
    clock,
    config: { ...api.deps.config, securityMails: false },
  });
  await signIn(email, CHROME, "192.0.2.1", silent);
  const token = await signIn(email, FIREFOX, "192.0.2.7", silent);
  const body = { name: "Quiet" };
  const made = await silent.call("POST", "/account/personal-access-tokens", { token, body });
  expect(made.status).toBe(201);
  const { recoveryCodes } = await withApp({ api: silent, clock }, user);
  const challenge = await challenged(silent, user);
  const [recovery_code] = recoveryCodes;
  expect((await prove(silent, challenge.token, { recovery_code })).status).toBe(200);
  expect((await noticesTo(email)).map(({ subject }) => subject)).toEqual([
    "A second factor was added to your account",
    "A recovery code of your account was used",
  ]);
});

const world = await startSignInWorld({
  config: { securityMails: true, trustedProxies: ["127.0.0.1"] },
});
const { database, tenants, clock, api, freshUser } = world;

afterAll(() => world.stop());

/** Reads the security notices to an address. None of them may have a link, except to the page Security. */
async function noticesTo(email: string) {
  const mails = await mailsTo({ db: database.db, box: api.deps.box }, email);
  const notices = mails.filter(({ kind }) => kind === "security_notice");
  const page = `${api.deps.config.serverRoot}/dashboard/security`;
  expect(contentOf(notices).replaceAll(page, "")).not.toMatch(/https?:\/\//);
  return notices;
}

async function signIn(email: string, browser: string, from: string, on: TestApi = api) {
  const headers = { "User-Agent": browser, "X-Forwarded-For": from };
  const body = { email, password: PASSWORD };
  const { status, body: answer, text } = await on.call("POST", "/login", { body, headers });
  if (status !== 200) throw new Error(text);
  return String(answer["token"]);
}

async function post(token: string, path: string, body: object = {}) {
  // The ids of mails order them by the millisecond.
  clock.advance(5);
  return api.call("POST", path, { token, body });
}

const ownerOf = (name: string) =>
  addUser(database.db, {
    companyId: tenants.partners[0].id,
    role: "partner_owner",
    email: `${name}@owners.test`,
  });

const contentOf = (mails: readonly { text: string; html?: string }[]) =>
  mails.map(({ text, html = "" }) => text + html).join();

/** The token or secret of an answer, which no mail may have. */
function secretIn(body: Answer["body"]): string {
  const secret = body["access_token"] ?? body["token"] ?? body["secret"];
  if (typeof secret !== "string") throw new Error("The answer has no secret.");
  return secret;
}
