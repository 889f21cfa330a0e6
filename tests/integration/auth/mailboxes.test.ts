// One mailbox in several spellings, and users whom an earlier version stored (contract 4.6).
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { completeEmails, emailsChunk } from "../../../src/auth/passwords/email-queries.ts";
import { checkAddresses, checkMailboxes } from "../../../src/operate/doctor/users.ts";
import { readDesiredState } from "../../../src/operate/setup/desired-state.ts";
import { importFile } from "../../../src/transfer/import.ts";
import { PASSWORD } from "../../support/api.ts";
import { fixture } from "../../support/fixture.ts";
import { HOSTILE_EMAILS, HOSTILE_NAMES } from "../../support/hostile-texts.ts";
import { startSignInWorld } from "../../support/sign-in.ts";
import { codeOrReason, connect, startProvider } from "../../support/sso.ts";
import { addUser } from "../../support/tenants.ts";

const world = fixture(startSignInWorld);
const partner = () => world.tenants.partners[0];

/** Spellings of one mailbox, the first as it is stored. */
const spellingsOf = (name: string) => [
  `${name}\u00e9@b\u00fccher.test`,
  `${name.toUpperCase()}E\u0301@B\u00dcCHER.Test`,
  `${name}\u00e9@xn--bcher-kva.test`,
  `${name}\u00e9@\uff42\u00fc\uff43\uff48\uff45\uff52\u3002test`,
];

describe("a user whose email has several spellings", () => {
  test("signs in by each of them, and is locked by all together", async () => {
    const [stored = "", ...others] = spellingsOf("zoe");
    await add(stored);
    for (const one of [stored, ...others]) expect([one, await logIn(one)]).toEqual([one, 200]);
    for (const one of [stored, ...others, stored]) await logIn(one, "wrong");
    for (const one of [stored, ...others]) expect([one, await logIn(one)]).toEqual([one, 429]);
  });

  test("gets one code for all of them, at the stored address", async () => {
    const [stored = "", ...others] = spellingsOf("code");
    await add(stored);
    const before = await mailCount();
    for (const email of [...others, stored])
      await world.api.call("POST", "/email-otp/resend", {
        body: { email, type: "forgot_password" },
      });
    expect((await mailCount()) - before).toBe(1);
  });

  test("cannot be made a second time, also by two requests at once, and is answered as typed", async () => {
    const [stored = "", ...others] = spellingsOf("twin");
    const made = await Promise.all([stored, ...others].map((email) => create(email)));
    expect(made.map(({ status }) => status).toSorted()).toEqual([201, 422, 422, 422]);
    const refused = made.filter(({ status }) => status === 422);
    for (const { body } of refused)
      expect(body["errors"]).toEqual({ email: ["is the address of another user"] });
    const winner = made.find(({ status }) => status === 201);
    expect([stored, ...others].map((one) => one.toLowerCase())).toContain(
      String(winner?.body["email"]),
    );
    const other = await create("somebody@b.test");
    for (const email of others)
      expect((await change(other.body["id"], { email })).status).toBe(422);
    // Another spelling of the own mailbox is no conflict.
    for (const email of others.slice(0, 2))
      expect((await change(winner?.body["id"], { email })).status).toBe(200);
  });
});

describe("users whom an earlier version stored", () => {
  test("share a mailbox: each has its exact spelling, a third one means nobody, and no more are made", async () => {
    const [first = "", , second = "", third = ""] = spellingsOf("both");
    const ids = [await insertOld(first), await insertOld(second)];
    for (const email of [first, second, first.toUpperCase()]) expect(await logIn(email)).toBe(200);
    const kept = await change(ids[0], { name: "Renamed", email: first });
    expect([kept.status, kept.body["email"]]).toEqual([200, first]);
    expect((await change(ids[0], { email: third })).status).toBe(422);
    expect(await logIn(third)).toBe(401);
    expect((await create(third)).status).toBe(422);
    const { said } = await checkMailboxes(world.database.db);
    expect(said).toContain("(both\\u{e9}@b\\u{fc}cher.test)");
    expect(said).toContain("(both\\u{e9}@xn--bcher-kva.test)");

    // The other user has the mailbox alone at once, and the job lets the unique index guard it again.
    await world.database.db.sql`update users set email = 'gone@b.test' where email = ${second}`;
    expect(await logIn("gone@b.test")).toBe(200);
    expect(await logIn(third)).toBe(200);
    while ((await emailsChunk(world.database.db)).next !== undefined);
    expect(await world.database.db.sql`select from users where shares_email`).toHaveLength(0);
    expect(await checkMailboxes(world.database.db)).toMatchObject({ kind: "ok" });
  });

  test.each(["inserted", "changed"])(
    "share a mailbox that an email in ASCII got when the other was complete: %s",
    async (how) => {
      const [wide, ascii, third] = [
        `${how}@b\u00fccher.test`,
        `${how}@xn--bcher-kva.test`,
        `${how}@\uff42\u00fccher.test`,
      ];
      await add(wide);
      expect(await logIn(third)).toBe(200);
      await insertOld(how === "inserted" ? ascii : `${how}@b.test`);
      await world.database.db
        .sql`update users set email = ${ascii} where email = ${`${how}@b.test`}`;
      for (const email of [wide, ascii]) expect([email, await logIn(email)]).toEqual([email, 200]);
      expect(await logIn(third)).toBe(401);
      expect((await create(third)).status).toBe(422);
      const { said } = await checkMailboxes(world.database.db);
      expect(said).toContain(`(${how}@b\\u{fc}cher.test)`);
      expect(said).toContain(`(${ascii})`);
      await world.database.db
        .sql`update users set email = ${`${how}-other@b.test`} where email = ${ascii}`;
    },
  );

  test("stop no sign-in if their email is too long for an index, and are named by the doctor", async () => {
    // It fits into the index of emails to the byte. It is random, because PostgreSQL compresses what repeats.
    const long = `\u00e9${randomBytes(1_345).toString("hex")}`;
    const id = await insertOld(long);
    const [stored = "", , , other = ""] = spellingsOf("beside");
    await insertOld(stored);
    expect(await logIn(other)).toBe(200);
    expect((await create("beside@b.test")).status).toBe(201);
    expect((await checkAddresses(world.database.db)).said).toContain(`${id} (`);
    await world.database.db.sql`delete from users where id = ${id}`;
  });

  test("are completed, and keep no normal form of an email that such a version replaced", async () => {
    const [stored = "", , , other = ""] = spellingsOf("moved");
    await insertOld(stored);
    expect(await logIn(other)).toBe(200);
    await world.database.db.sql`update users set email = 'away@b.test' where email = ${stored}`;
    expect(await logIn("away@b.test")).toBe(200);
    expect(await logIn(other)).toBe(401);
    expect(await completeEmails(world.database.db)).toBe(0);
  });

  test("are named by the doctor if they cannot be mailed, and stop no mail of others", async () => {
    const [odd = ""] = HOSTILE_EMAILS;
    const id = await insertOld(odd, null);
    expect((await checkAddresses(world.database.db)).said).toContain(`${id} (a(b@corp.test)`);
    const { sql } = world.database.db;
    const texts = [
      ...HOSTILE_EMAILS.filter((one) => one === one.toLowerCase()).map((email) => ({ email })),
      ...HOSTILE_NAMES.map((name) => ({ name })),
    ];
    for (const text of texts) {
      await sql`update users set ${sql({ email: "old@b.test", name: "Old", ...text })} where id = ${id}`;
      expect([text, (await checkAddresses(world.database.db)).kind]).toEqual([text, "advice"]);
    }
    await sql`update users set email = ${odd}, name = 'Old' where id = ${id}`;
    const before = await mailCount();
    const invited = await world.api.call("POST", `/admin/users/${id}/invite`, { token: root });
    expect(invited.status).toBe(200);
    expect(await mailCount()).toBe(before + 1);
    await world.database.db.sql`update users set email = 'mended@b.test' where id = ${id}`;
    expect(await checkAddresses(world.database.db)).toMatchObject({ kind: "ok" });
  });
});

describe("recipients of alerts", () => {
  test("are one mailbox each, which stays confirmed in another spelling", async () => {
    const token = await world.api.login(partner().owner.email);
    const patch = (recipients: readonly string[]) =>
      world.api.call("PATCH", "/partner/alerts", { token, body: { recipients } });
    const spellings = spellingsOf("ops");
    const before = await mailCount();
    expect((await patch(spellings)).body["errors"]).toEqual({
      recipients: ["must contain each mailbox only once"],
    });
    expect(await mailCount()).toBe(before);
    const statuses = [];
    for (const one of spellings) statuses.push((await patch([one])).status);
    // Three mails a minute to a mailbox (contract 4.22).
    expect(statuses).toEqual([200, 200, 200, 429]);
    await world.database.db.sql`
      update alert_settings set confirmed_recipients = recipients where partner_id = ${partner().id}`;
    const moved = await patch([spellings[3] ?? ""]);
    expect([moved.status, moved.body["unconfirmed_recipients"]]).toEqual([200, []]);
  });
});

describe("an address or a name that no route accepts", () => {
  test.each([
    ["bad_email", { email: "a(b@corp.test", name: "Ada" }],
    ["bad_name", { email: "ada@corp.test", name: "Ada\u202eevil" }],
  ])("is refused by single sign-on with the reason %s", async (reason, person) => {
    people["ada"] = person;
    expect(await codeOrReason(world.api, provider.connection, "ada")).toBe(reason);
    const made = await world.database.db.sql`select from users where email like '%corp.test%'`;
    expect(made).toHaveLength(0);
  });

  test("is refused by import and setup", async () => {
    for (const { email, name, field } of [
      ...HOSTILE_EMAILS.map((one) => ({ email: one, name: "Ada", field: "email" })),
      ...HOSTILE_NAMES.map((one) => ({ email: "ada@corp.test", name: one, field: "name" })),
    ]) {
      expect([email, name, await importOf({ email, name })]).toEqual([email, name, [field]]);
      const args = ["--admin-email", email, "--admin-name", name];
      expect(() => readDesiredState(args, {})).toThrow(
        /^The administrator's email|^The name of the/,
      );
    }
  });
});

const directory = mkdtempSync(join(tmpdir(), "mailboxes-"));
const people: Record<string, { email: string; name: string }> = { ada: { email: "", name: "" } };
let provider: Awaited<ReturnType<typeof startProvider>>;
let root = "";

beforeAll(async () => {
  root = await world.api.login(world.tenants.superAdmin.email);
  provider = await startProvider(
    (issuer) =>
      connect(world.api, root, {
        company_id: partner().id,
        issuer,
        domains: ["corp.test"],
        new_users: { role: "partner_admin" },
      }),
    people,
  );
  await world.database.db.sql`update sso_domains set proved_at = now()`;
});

afterAll(() => {
  rmSync(directory, { recursive: true });
  return provider.stop();
});

/** Imports one user; answers the fields that are refused. */
async function importOf(user: { email: string; name: string }): Promise<string[]> {
  const file = join(directory, "users.ndjson");
  const line = { kind: "user", partner_id: partner().id, role: "partner_admin", ...user };
  await Bun.write(file, `${JSON.stringify(line)}\n`);
  const fields: string[] = [];
  const report = {
    onFault: ({ field }: { field: string }) => fields.push(field),
    onProgress() {},
  };
  const options = { file, isDryRun: true, resumes: false, announces: false, skipsFaulty: true };
  await importFile(world.api.deps, options, report);
  return fields;
}

const add = (email: string) =>
  addUser(world.database.db, { companyId: partner().id, role: "partner_admin", email });

/** Inserts a user as version 0.1.0 does, without a normal form. */
async function insertOld(email: string, hash: string | null = ""): Promise<number> {
  const [row] = await world.database.db.sql<{ id: number }[]>`
    insert into users (company_id, email, name, role, password_hash, created_at, updated_at)
    select company_id, ${email}, 'Old', 'partner_admin', case when ${hash}::text is not null then password_hash end, now(), now()
      from users where id = ${partner().owner.id} returning id`;
  return row?.id ?? 0;
}

async function logIn(email: string, password = PASSWORD): Promise<number> {
  return (await world.api.call("POST", "/login", { body: { email, password } })).status;
}

const create = (email: string) =>
  world.api.call("POST", "/admin/users", {
    token: root,
    body: { email, name: "Ada", role: "partner_admin", company_id: partner().id },
  });

const change = (id: unknown, body: object) =>
  world.api.call("PATCH", `/admin/users/${String(id)}`, { token: root, body });

async function mailCount(): Promise<number> {
  return (await world.database.db.sql`select from mails`).length;
}
