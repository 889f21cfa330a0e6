// Users whom the identity provider of their company creates at their first sign-in (contract 4.13).
import { afterAll, beforeAll, describe, expect, test } from "bun:test";

import { createSocket } from "node:dgram";

import { txtLookup } from "../../../src/lib/name-resolver.ts";
import { startApi } from "../../support/api.ts";
import { fixture } from "../../support/fixture.ts";
import { createDatabase } from "../../support/postgres.ts";
import { codeOrReason, connect, startProvider } from "../../support/sso.ts";
import { addTenants } from "../../support/tenants.ts";

/** The TXT records that DNS answers, by name. */
const records = new Map<string, string>();
const lookupTxt = async (name: string) => [...(records.get(name)?.split("\n") ?? [])];

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
const api = fixture(() => startApi({ db: database.db, lookupTxt }));

describe("a person whom nobody has created", () => {
  test("is refused before the domain is proved, and created afterwards with role, stores and name", async () => {
    expect(await signIn("nell")).toBe("unproved_domain");
    expect(await userOf("nell@corp.test")).toBeUndefined();

    const missing = await prove("corp.test");
    expect([missing.status, missing.body["errors"]]).toEqual([
      422,
      {
        domain: [
          `has no TXT record reviewrelay-connection=${provider.connection} at _reviewrelay.corp.test`,
        ],
      },
    ]);
    records.set("_reviewrelay.corp.test", `v=spf1\nreviewrelay-connection=${provider.connection}`);
    const proved = await prove("Corp.test");
    expect(proved.body["domain_proofs"]).toMatchObject([
      { domain: "corp.test", proved_at: expect.any(String) },
      { domain: "other.test", proved_at: null },
    ]);

    const code = await signIn("nell");
    const answer = await api.call("GET", `/auth/sso/exchange?code=${code}`);
    expect(answer.body).toMatchObject({
      user: { email: "nell@corp.test", name: "Nell Newcomer" },
      company: { id: account().id },
    });
    expect(await userOf("nell@corp.test")).toMatchObject({
      role: "location_user",
      company_id: account().id,
      password_hash: null,
      stores: [account().storeIds[0]],
    });
    const [audited] = await database.db.sql`
      select a.details from audit_log a join users u on u.id = a.actor_id
       where a.action = 'SSO_USER_CREATED' and u.email = 'nell@corp.test'`;
    expect(audited).toEqual({
      details: { connection_id: provider.connection, role: "location_user" },
    });
    expect(await database.db.sql`select from mails`).toHaveLength(0);
  });

  test("is created once by two sign-ins at the same time, and signs in again as the same user", async () => {
    const codes = await Promise.all([signIn("otto"), signIn("otto")]);
    expect(codes.filter((code) => code.length === 43).length).toBeGreaterThan(0);
    const rows = await database.db.sql`select id from users where email = 'otto@corp.test'`;
    expect(rows).toHaveLength(1);
    expect(await signIn("otto")).toHaveLength(43);
    // The address stands for the name that the provider did not send.
    expect(await userOf("otto@corp.test")).toMatchObject({ name: "otto@corp.test" });
  });

  test("is refused in a domain of the connection that is not proved, and in any other", async () => {
    for (const [login, reason] of [
      ["unproved", "unproved_domain"],
      ["foreign", "foreign_domain"],
      ["unverified", "unverified_email"],
    ] as const)
      expect(await signIn(login)).toBe(reason);
  });

  test("is refused once the connection creates nobody, or its stores are gone", async () => {
    await update({ new_users: { role: "location_user", store_ids: [account().storeIds[1]] } });
    await database.db.sql`
      update sso_connections set new_user_store_ids = '{999999}'`;
    expect(await signIn("late")).toBe("no_store");
    await update({ new_users: null });
    expect(await signIn("late")).toBe("unknown_user");
    expect(await userOf("late@corp.test")).toBeUndefined();
  });
});

describe("a connection", () => {
  test("keeps the proof of a domain that stays, and loses that of one that leaves", async () => {
    const proofs = async () => {
      const { body } = await api.call("GET", path(), { token: root });
      return (body["domain_proofs"] as { domain: string; proved_at: string | null }[]).map(
        (one) => [one.domain, one.proved_at !== null],
      );
    };
    await update({ domains: ["corp.test", "third.test"] });
    expect(await proofs()).toEqual([
      ["corp.test", true],
      ["third.test", false],
    ]);
    await update({ domains: ["third.test"] });
    await update({ domains: ["corp.test", "third.test"] });
    expect(await proofs()).toEqual([
      ["corp.test", false],
      ["third.test", false],
    ]);
    expect((await prove("stranger.test")).status).toBe(422);
  });

  test.each([
    [{ role: "partner_owner" }, ["new_users.role"]],
    [{ role: "super_admin" }, ["new_users.role"]],
    [{ role: "location_user" }, ["new_users.store_ids"]],
    [{ role: "location_user", store_ids: [999_999] }, ["new_users.store_ids"]],
    [{ role: "account_user", store_ids: [1] }, ["new_users.store_ids"]],
  ])("cannot create users with %p", async (newUsers, fields) => {
    const { status, body } = await update({ new_users: newUsers });
    expect([status, Object.keys(body["errors"] ?? {})]).toEqual([422, fields]);
  });
});

test("TXT records are read from DNS", async () => {
  const server = createSocket("udp4");
  server.on("message", (question, { port, address }) => {
    const text = "reviewrelay-connection=1";
    const data = Buffer.concat([Buffer.from([text.length]), Buffer.from(text)]);
    const head = Buffer.from([...question.subarray(0, 2), 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
    const record = Buffer.from([0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 0, 0, data.length]);
    // The question without the extensions that may follow it.
    const end = question.indexOf(0, 12) + 5;
    server.send(Buffer.concat([head, question.subarray(12, end), record, data]), port, address);
  });
  await new Promise<void>((resolve) => server.bind(0, "127.0.0.1", resolve));
  const found = await txtLookup([`127.0.0.1:${server.address().port}`])("_reviewrelay.corp.test");
  expect(found).toEqual(["reviewrelay-connection=1"]);
  server.close();
});

type Provider = Awaited<ReturnType<typeof startProvider>>;

let provider: Provider;
let root = "";
const account = () => tenants.partners[0].accounts[0];
const path = () => `/admin/sso-connections/${provider.connection}`;

beforeAll(async () => {
  root = await api.login(tenants.superAdmin.email);
  provider = await startProvider(
    (issuer) =>
      connect(api, root, {
        company_id: account().id,
        issuer,
        domains: ["corp.test", "other.test"],
        new_users: { role: "location_user", store_ids: [account().storeIds[0]] },
      }),
    {
      nell: { email: "Nell@Corp.test", name: " Nell Newcomer\u0007 " },
      otto: { email: "otto@corp.test" },
      late: { email: "late@corp.test" },
      unproved: { email: "x@other.test" },
      foreign: { email: "x@foreign.test" },
      unverified: { email: "x@corp.test", verified: false },
    },
  );
});

afterAll(() => provider.stop());

const signIn = (login: string) => codeOrReason(api, provider.connection, login);

const prove = (domain: string) =>
  api.call("POST", `${path()}/prove-domain`, { token: root, body: { domain } });

const update = (body: object) => api.call("PATCH", path(), { token: root, body });

async function userOf(email: string): Promise<Record<string, unknown> | undefined> {
  const [row] = await database.db.sql`
    select u.*, array(select store_id from user_stores where user_id = u.id) as stores
      from users u where email = ${email}`;
  return row;
}
