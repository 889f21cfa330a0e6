import { beforeAll, describe, expect, test } from "bun:test";

import { addMs } from "../../../src/lib/clock.ts";
import { PASSWORD, startApi, type Answer } from "../../support/api.ts";
import { codeSentTo, mailsTo } from "../../support/auth-mails.ts";
import { createFakeClock } from "../../support/clock.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addSsoConnection, addTenants } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
const api = fixture(() => startApi({ db: database.db, clock }));

describe("a user who is created without a password", () => {
  test("is mailed a link whose code is in the fragment, which no server sees", async () => {
    const { link, mail, email } = await invited();
    const url = new URL(link);
    expect([url.origin, url.pathname, url.search]).toEqual([
      api.deps.config.serverRoot,
      "/dashboard/welcome",
      "",
    ]);
    expect(new URLSearchParams(url.hash.slice(1)).get("email")).toBe(email);
    expect(mail?.kind).toBe("invitation");
    expect(mail?.expiresAt).toEqual(addMs(clock.now(), 7 * DAY_MS));
  });

  test("sets the first password with it, is signed in, and can sign in with the password afterwards", async () => {
    const { code, email } = await invited();
    const answer = await accept(code);
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({ token_type: "Bearer", user: { email } });
    const token = String(answer.body["token"]);
    expect((await api.call("GET", "/verify-token", { token })).status).toBe(200);
    expect(await api.login(email, PASSWORD)).toBeString();
  });

  test("can use the link again when the password was rejected", async () => {
    const { code } = await invited();
    for (const password of ["short", "ReviewRelay1"])
      expect((await accept(code, password)).status).toBe(422);
    expect((await accept(code)).status).toBe(200);
  });

  test("with a password that an operator chose gets no mail", async () => {
    const { status, body } = await admin("", {
      company_id: tenants.partners[0].id,
      email: "chosen@p1.test",
      name: "Chosen",
      role: "partner_admin",
      password: PASSWORD,
    });
    expect(status).toBe(201);
    expect(await mailsTo(api.deps, String(body["email"]))).toEqual([]);
  });

  test("is mailed a link to the identity provider if the domain allows no passwords", async () => {
    const company_id = tenants.partners[1].id;
    await addSsoConnection(database.db, {
      companyId: company_id,
      domains: ["sso-only.test"],
      passwordLogin: false,
    });
    const email = "one@sso-only.test";
    await admin("", { company_id, email, name: "One", role: "partner_admin" });
    const [mail] = await mailsTo(api.deps, email);
    expect(mail?.text).toContain(`    ${api.deps.config.serverRoot}/dashboard\n`);
    expect(mail?.text).not.toContain("invitation=");
  });
});

describe("the code of an invitation", () => {
  test("works once, even if 10 requests use it at once", async () => {
    const { code } = await invited();
    const answers = await Promise.all(Array.from({ length: 10 }, () => accept(code)));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([
      200,
      ...Array.from({ length: 9 }, () => 400),
    ]);
  });

  test("works until seven days have passed, and not after", async () => {
    const [early, late] = [await invited(), await invited()];
    clock.advance(7 * DAY_MS - 1_000);
    expect((await accept(early.code)).status).toBe(200);
    clock.advance(1_000);
    expect((await accept(late.code)).status).toBe(400);
    root = await api.login(tenants.superAdmin.email);
  });

  test("gets the same answer for every kind of failure", async () => {
    const used = await invited();
    await accept(used.code);
    const gone = await invited();
    await admin(`/${gone.id}/deactivate`);
    for (const code of [used.code, gone.code, "0".repeat(64), "x"]) {
      const { status, body } = await accept(code);
      expect([status, body["code"]]).toEqual([400, "invalid_code"]);
    }
  });

  test("ends when a password is set with a mailed code", async () => {
    const { code, email } = await invited();
    clock.advance(1_000);
    await api.call("POST", "/email-otp/resend", {
      body: { email, type: "forgot_password" },
    });
    const otp = await codeSentTo(api.deps, email);
    const { body } = await api.call("POST", "/email-otp/verify", {
      body: { email, otp, type: "forgot_password" },
    });
    const reset = { token: String(body["token"]), body: { password: `${PASSWORD} 2` } };
    expect((await api.call("POST", "/reset-password", reset)).status).toBe(200);
    expect((await accept(code)).status).toBe(400);
    expect(await api.login(email, `${PASSWORD} 2`)).toBeString();
  });
});

describe("the preview of an invitation", () => {
  test("names company, role and brand, and the inviter unless it is an operator; the code stays unused", async () => {
    const { code } = await invited();
    const company = { id: tenants.partners[0].id, type: "partner" };
    const { status, body } = await preview(code);
    expect(status).toBe(200);
    expect(body).toMatchObject({ role: "partner_admin", company, invited_by: null });
    expect(Object.keys(body).toSorted()).toEqual([
      "company",
      "invited_by",
      "role",
      "theme",
      "white_label",
    ]);
    expect((await accept(code)).status).toBe(200);

    const { owner } = tenants.partners[0];
    const token = await api.login(owner.email);
    const email = "mate@p1.test";
    const mate = { email, name: "Mate", role: "partner_admin" };
    expect((await api.call("POST", "/partner/users", { token, body: mate })).status).toBe(201);
    const { code: own } = await linkTo(email);
    const [named] = await database.db.sql<{ name: string }[]>`
      select name from users where id = ${owner.id}`;
    expect((await preview(own)).body).toMatchObject({ invited_by: named?.name });
    // The id of another inviter makes another code.
    const forged = own.replace(/\.\d+$/, `.${tenants.superAdmin.id}`);
    for (const other of [forged, own.split(".")[0] ?? ""])
      expect((await preview(other)).status).toBe(400);
    expect((await accept(own)).status).toBe(200);
  });

  test("gets the answer of a use for every code that cannot be used", async () => {
    const used = await invited();
    await accept(used.code);
    const gone = await invited();
    await admin(`/${gone.id}/deactivate`);
    const late = await invited();
    clock.advance(7 * DAY_MS);
    for (const code of [used.code, gone.code, late.code, "0".repeat(64), "x"]) {
      const answers = [await preview(code), await accept(code)];
      const [shown, refused] = answers.map(({ status, body }) => [
        status,
        { ...body, request_id: undefined },
      ]);
      expect(shown?.[0]).toBe(400);
      expect(shown).toEqual(refused);
    }
    root = await api.login(tenants.superAdmin.email);
  });
});

describe("another invitation", () => {
  test("replaces the one before, and is audited", async () => {
    const { id, code, email } = await invited();
    clock.advance(1_000);
    expect((await admin(`/${id}/invite`)).status).toBe(200);
    expect((await accept(code)).status).toBe(400);
    expect((await accept((await linkTo(email)).code)).status).toBe(200);
    const rows = await database.db.sql`
      select from audit_log where action = 'USER_INVITED' and details ->> 'user_id' = ${String(id)}`;
    expect(rows).toHaveLength(2);
  });

  test("is rejected for a user who has a password and for one who is not active", async () => {
    const inactive = await invited();
    await admin(`/${inactive.id}/deactivate`);
    for (const id of [tenants.partners[0].owner.id, inactive.id]) {
      const { status, body } = await admin(`/${id}/invite`);
      expect([status, body["code"]]).toEqual([409, "not_invitable"]);
    }
  });
});

const clock = createFakeClock();

const DAY_MS = 86_400_000;

let root = "";

let people = 0;

beforeAll(async () => {
  root = await api.login(tenants.superAdmin.email);
});

const admin = (path: string, body?: unknown): Promise<Answer> =>
  api.call("POST", `/admin/users${path}`, { token: root, body });

const accept = (code: string, password = PASSWORD): Promise<Answer> =>
  api.call("POST", "/auth/invitation", { body: { code, password } });

/** Creates a user without a password and reads the link in the mail. */
async function invited(fields: Record<string, unknown> = {}) {
  const email = `invited-${++people}@p1.test`;
  const company_id = tenants.partners[0].id;
  const user = { company_id, email, name: "New", role: "partner_admin", ...fields };
  const { status, body } = await admin("", user);
  expect(status).toBe(201);
  return { id: Number(body["id"]), email: String(body["email"]), ...(await linkTo(email)) };
}

const preview = (code: string): Promise<Answer> =>
  api.call("POST", "/auth/invitation/preview", { body: { code } });

async function linkTo(email: string) {
  const mail = (await mailsTo(api.deps, email)).at(-1);
  const link = /^ {4}(http\S+)$/m.exec(mail?.text ?? "")?.[1] ?? "";
  const fragment = new URLSearchParams(new URL(link).hash.slice(1));
  return { link, mail, code: fragment.get("invitation") ?? "" };
}
