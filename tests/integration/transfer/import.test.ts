// Import and export of a platform's records (contract 10.9).
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { RawDb } from "../../../db/client.ts";
import { MAX_TEXT_BYTES } from "../../../src/http/body.ts";
import { importFile, type Report } from "../../../src/transfer/import.ts";
import { history as historyOf } from "../../../src/transfer/queries/export.ts";
import { startApi } from "../../support/api.ts";
import { fixture } from "../../support/fixture.ts";
import { until } from "../../support/network/receiver.ts";
import {
  countAttempts,
  emailOf,
  FIRST_ID,
  type Line,
  OLD_HASHES,
  OLD_PASSWORD,
  oldClientSecret,
  oldSecret,
  platformLines,
} from "../../support/platform-lines.ts";
import { createDatabase, type TestDatabase } from "../../support/postgres.ts";
import { runCommand } from "../../support/processes/command.ts";
import { addTenants } from "../../support/tenants.ts";

describe("an import", () => {
  test("keeps ids, and a second run changes nothing", async () => {
    const file = await write("platform", PLATFORM);
    const first = await run("import", [file]);
    expect(first.said).toContain("lines (100 %)");
    expect(first.status).toBe(0);
    const counts = countAttempts(PLATFORM);
    expect(countsIn(first.said)).toEqual(mapped(counts, (count) => [count, 0, 0]));
    const before = await contentOf(database.db);
    const second = await run("import", [file]);
    expect(countsIn(second.said)).toEqual(mapped(counts, (count) => [0, count, 0]));
    expect(await contentOf(database.db)).toEqual(before);
    const { rows } = await reviewRow(FIRST_ID + 10);
    expect(rows).toEqual([
      {
        external_id: "r-10",
        store_review_site_id: FIRST_ID + 10,
        response_body: "Thank you for your visit.",
        is_imported: true,
      },
    ]);
  });

  test("causes no event, no mail and no alert", async () => {
    const { sql } = database.db;
    for (const table of ["mails", "alerts", "incidents"])
      expect([table, ...(await sql`select from ${sql(table)}`)]).toEqual([table]);
    expect(await sql`select from reviews where reviewer_email is not null`).not.toHaveLength(0);
    expect(await sql`select from reviews where flag_status = 'open'`).not.toHaveLength(0);
    expect(await sql`select from batch_entries`).toHaveLength(0);
    expect(await sql`select from outbox`).toHaveLength(0);
    expect(await sql`select from outbox_sequences where last_sequence > 0`).toHaveLength(0);
    expect(await sql`select from review_history where sequence is not null`).toHaveLength(0);
  });

  test("moves the sequences past the given ids", async () => {
    const token = await api.login(tenants.superAdmin.email);
    const made = await api.call("POST", "/admin/partners", { token, body: { name: "New" } });
    expect(made.body["id"]).toBeGreaterThanOrEqual(FIRST_ID + SIZES.partners + SIZES.accounts);
  });

  test.each(Object.keys(OLD_HASHES))(
    "takes over a hash of %s, which the first sign-in replaces",
    async (kind) => {
      const index = Object.keys(OLD_HASHES).indexOf(kind) + 6;
      const hashOf = async () => {
        const [row] = await database.db.sql<{ hash: string }[]>`
          select password_hash as hash from users where email = ${emailOf(index)}`;
        return row?.hash;
      };
      expect(await hashOf()).toBe(Object.values(OLD_HASHES)[index % 6]);
      const wrong = { email: emailOf(index), password: `${OLD_PASSWORD}!` };
      expect((await api.call("POST", "/login", { body: wrong })).status).toBe(401);
      await api.login(emailOf(index), OLD_PASSWORD);
      expect(await hashOf()).toStartWith("$argon2id$v=19$m=19456,t=2,p=1$");
      await api.login(emailOf(index), OLD_PASSWORD);
    },
  );

  test("keeps the ids and secrets of clients and subscriptions", async () => {
    const owner = await api.login(emailOf(0), OLD_PASSWORD);
    const { body } = await api.call("GET", "/partner/webhooks", { token: owner });
    const all = body["data"] as { id: string; delivery_kind: string; standard_webhooks: boolean }[];
    const [subscription] = all;
    for (const one of all) expect(one.standard_webhooks).toBe(one.delivery_kind === "batch");
    const shown = await api.call("POST", `/partner/webhooks/${subscription?.id}/secret`, {
      token: owner,
    });
    expect(shown.body["secret"]).toBe(oldSecret(0));
    const grant = async (secret: string) => {
      const form = new URLSearchParams({
        grant_type: "authorization_code",
        code: "unknown",
        redirect_uri: "https://app.moved.example/callback",
        client_id: "old.client-0",
        client_secret: secret,
      });
      const headers = { "Content-Type": "application/x-www-form-urlencoded" };
      const answer = await api.call("POST", "/oauth/token", {
        root: true,
        body: form.toString(),
        headers,
      });
      return answer.body["error"];
    };
    expect(await grant(oldClientSecret(0))).toBe("invalid_grant");
    expect(await grant(oldClientSecret(1))).toBe("invalid_client");
  });

  test("shows imported rows of the history as such, and recovers none of them", async () => {
    const owner = await api.login(emailOf(0), OLD_PASSWORD);
    const { body } = await api.call("GET", "/partner/review-history?limit=1", { token: owner });
    expect(body["data"]).toMatchObject([{ event: "review_received", is_imported: true }]);
    const list = await api.call("GET", "/partner/webhooks", { token: owner });
    const [{ id } = { id: "" }] = list.body["data"] as { id: string }[];
    const recovery = await api.call("POST", `/partner/webhooks/${id}/recover`, {
      token: owner,
      body: { since: new Date(Date.now() - 3_600_000).toISOString() },
    });
    expect(recovery.body).toMatchObject({ queued: 0 });
  });
});

describe("an export", () => {
  test("is readable by its owner alone, and replaces no file", async () => {
    const file = join(directory, "first.ndjson");
    expect((await run("export", [file])).status).toBe(0);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect((await run("export", [file])).status).toBe(1);
  });

  test("of a partner has its records alone, and no secret of a review site", async () => {
    const file = join(directory, "partner.ndjson");
    expect((await run("export", ["--partner", String(FIRST_ID), file])).status).toBe(0);
    const lines = await linesOf(file);
    expect(countAttempts(lines)).toMatchObject({
      partner: 1,
      account: 2,
      store: 4,
      subscription: 2,
    });
    expect(lines.filter(({ kind }) => kind === "account")).toSatisfy((some) =>
      some.every((one: Line) => one["partner_id"] === FIRST_ID),
    );
    expect(lines.find(({ kind }) => kind === "review_site")).not.toHaveProperty("secret");
  });

  test("of an account has its records alone, and nothing of its partner but that itself", async () => {
    const id = FIRST_ID + SIZES.partners;
    const file = join(directory, "account.ndjson");
    expect((await run("export", ["--account", String(id), file])).status).toBe(0);
    const lines = await linesOf(file);
    const counts = countAttempts(lines);
    expect(counts).toMatchObject({ partner: 1, account: 1, store: 2 });
    expect(counts).not.toContainAnyKeys(["oauth_client", "subscription"]);
    expect(lines.find(({ kind }) => kind === "account")).toMatchObject({ id });
  });
});

test("texts from before the limits are exported in reads of bounded bytes, and each is named by the import, which takes all others", async () => {
  const [from, to] = [await createDatabase(), await createDatabase()];
  try {
    await run("import", [await write("old", PLATFORM)], from);
    const { sql } = from.db;
    const [row] = await sql<{ columns: string }[]>`
      select string_agg(quote_ident(attname), ', ') as columns from pg_attribute
       where attrelid = 'review_history'::regclass and attnum > 0 and attname not in ('id', 'event_id', 'metadata')`;
    const sizes = [...Array.from({ length: 20 }, () => 260_000), 300_000, 15_000_000, 5];
    for (const [nth, size] of sizes.entries())
      await sql.unsafe(`
        insert into review_history (event_id, metadata, ${row?.columns})
        select '01JZZZZZZZZZZZZZZZZZZZZZ${10 + nth}', json_build_object('content', repeat('x', ${size}), 'reviewed_at', metadata ->> 'reviewed_at'), ${row?.columns}
          from review_history order by id limit 1`);
    const reads: number[] = [];
    await from.db.transaction(async (tx) => {
      for await (const rows of historyOf(tx, {}))
        reads.push(Buffer.byteLength(JSON.stringify(rows.map(({ metadata }) => metadata))));
    });
    expect(Math.max(...reads.filter((bytes) => bytes < 15_000_000))).toBeLessThan(5_000_000);
    expect(reads.length).toBeGreaterThan(2);
    const file = join(directory, "large.ndjson");
    expect((await run("export", [file], from)).status).toBe(0);
    const { status, said } = await run("import", ["--skip-faulty", file], to);
    expect(status).toBe(1);
    expect(said.match(/\S+ has .* bytes$/gm)).toEqual([
      "metadata.content has a text of more than 262144 bytes",
      "line has more than 4000000 bytes",
    ]);
    const rowsOf = async (db: RawDb) =>
      Number((await db.sql<{ n: number }[]>`select count(*)::int as n from review_history`)[0]?.n);
    expect(await rowsOf(to.db)).toBe((await rowsOf(from.db)) - 2);
  } finally {
    await Promise.all([from.drop(), to.drop()]);
  }
}, 60_000);

test("the example of the documentation is imported", async () => {
  const page = await Bun.file(join(import.meta.dir, "../../../docs/operations/import.md")).text();
  const [, example = ""] = /```json run [^\n]+\n([^`]+)```/.exec(page) ?? [];
  const other = await createDatabase();
  try {
    const { status, said } = await run("import", [await write("example", [example.trim()])], other);
    expect(said).toContain("(100 %)");
    expect(status).toBe(0);
    expect(Object.values(countsIn(said))).toEqual(Array.from({ length: 14 }, () => [1, 0, 0]));
  } finally {
    await other.drop();
  }
});

describe("a faulty line", () => {
  const partner = { kind: "partner", external_id: "f-1", name: "Faulty" };
  const account = {
    kind: "account",
    external_id: "f-2",
    name: "A",
    partner_id: FIRST_ID,
    plan_id: FIRST_ID,
  };
  const user = {
    kind: "user",
    email: "f@moved.example",
    name: "F",
    partner_id: FIRST_ID,
    role: "partner_admin",
  };
  const review = {
    kind: "review",
    connection_id: FIRST_ID,
    external_review_id: "f",
    rate: 5,
    content: null,
    reviewed_at: "2025-01-01T00:00:00.000+00:00",
  };
  const history = {
    kind: "history",
    event: "note_added",
    review_id: FIRST_ID,
    actor: { type: "user", user_id: FIRST_ID },
    metadata: { body: "x" },
    occurred_at: "2025-01-01T00:00:00.000+00:00",
  };
  const subscription = {
    kind: "subscription",
    partner_id: "p-9",
    label: "L",
    webhook_url: "http://127.0.0.1/",
    delivery_kind: "immediate",
    secret: "12345678",
  };
  test.each([
    ["no JSON", "{", "line is not JSON"],
    ["an array", [], "line must be a JSON object"],
    ["an unknown kind", { kind: "shop" }, "kind must be one of plan, partner"],
    ["a missing field", { kind: "plan" }, "name is required"],
    ["an unknown field", { ...partner, colour: 1 }, "colour is not a known field"],
    [
      "the id of another plan",
      { kind: "plan", id: FIRST_ID, name: "Other" },
      `id is that of the plan ${FIRST_ID} "Moved": omit id for a new record, and refer to it by name`,
    ],
    [
      "an id that is too large",
      { ...partner, id: 2_147_483_648 },
      "id must be a whole number from 1 to 2147483647; a record with another one needs external_id",
    ],
    [
      "an unknown parent",
      { ...account, partner_id: "nobody" },
      "partner_id names no partner in an earlier line or in the database",
    ],
    [
      "two companies",
      { ...user, account_id: "a-0" },
      "account_id must be absent if partner_id is given",
    ],
    [
      "a role of elsewhere",
      { ...user, role: "account_user" },
      "role must be one of partner_owner, partner_admin",
    ],
    [
      "stores of nobody",
      { ...user, store_ids: ["s-0"] },
      "store_ids is only allowed for location users",
    ],
    [
      "an unknown hash",
      { ...user, password_hash: "md5" },
      "password_hash must be a hash of bcrypt",
    ],
    [
      "a dear hash",
      { ...user, password_hash: OLD_HASHES.bcrypt.replace("06", "15") },
      "password_hash costs too much to verify: cost is too high",
    ],
    [
      "a short secret",
      { ...subscription, secret: "1234567" },
      "secret must be text of 8 to 256 characters",
    ],
    [
      "a reserved header",
      { ...subscription, partner_id: "f-1", headers: { "X-Key": "k", host: "h" } },
      "headers must not have host, which is reserved",
    ],
    ["an unknown connection", { ...review, connection_id: 1 }, "connection_id names no connection"],
    [
      "a review of another id",
      { ...review, external_review_id: "old-0", id: 9 },
      "external_review_id is that of the review",
    ],
    [
      "an event without review",
      { ...history, review_id: undefined },
      "review_id is required for note_added",
    ],
    ["wrong metadata", { ...history, metadata: {} }, "metadata.body is required"],
    [
      "a text of over 256 KiB",
      { ...history, metadata: { body: "x".repeat(MAX_TEXT_BYTES + 1) } },
      "metadata.body has a text of more than 262144 bytes",
    ],
    [
      "a line of over 4 MB",
      { ...history, metadata: { body: "x".repeat(4_000_000) } },
      "line has more than 4000000 bytes",
    ],
    [
      "an actor of none",
      { ...history, actor: { type: "user", user_id: "none" } },
      "actor.user_id names no user",
    ],
    ["an event of no catalog", { ...history, event: "webhook.test" }, "event must be one of"],
  ])("with %s is reported with its number and field", async (_, line, text) => {
    const faults: string[] = [];
    const report = {
      onFault: (fault: LineFault) =>
        void faults.push(`${fault.line}: ${fault.field} ${fault.text}`),
      onProgress: () => {},
    };
    const file = await write("faulty", [partner, line]);
    const { isWhole } = await importFile(api.deps, { file, ...AS_BY_DEFAULT }, report);
    expect(faults[0]).toStartWith(`2: ${text}`);
    expect(isWhole).toBe(false);
    expect(await exists("f-1")).toBe(false);
  });

  test("is left out with --skip-faulty, and the other lines are imported", async () => {
    const file = await write("skipped", [partner, "{", { ...account, partner_id: "f-1" }]);
    const { status, said } = await run("import", ["--skip-faulty", file]);
    expect(status).toBe(1);
    expect(countsIn(said)).toEqual({ partner: [1, 0, 0], unknown: [0, 0, 1], account: [1, 0, 0] });
    expect(await exists("f-1")).toBe(true);
  });

  test("is found by a dry run, which changes nothing", async () => {
    const lines = [
      { ...partner, external_id: "f-9" },
      { ...account, external_id: "f-8", partner_id: "f-9" },
    ];
    const before = await contentOf(database.db);
    const right = await run("import", ["--dry-run", await write("dry", lines)]);
    expect(countsIn(right.said)).toEqual({ partner: [1, 0, 0], account: [1, 0, 0] });
    expect(right.status).toBe(0);
    expect((await run("import", ["--dry-run", await write("dry", [...lines, "{"])])).status).toBe(
      1,
    );
    expect(await contentOf(database.db)).toEqual(before);
  });

  test("stops the import, which continues once the file is mended", async () => {
    const lines = Array.from({ length: 2_500 }, (_, i) => ({
      kind: "store",
      external_id: `many-${i}`,
      account_id: "a-0",
      name: `Store ${i}`,
    }));
    const faulty = lines.map((one, i) => (i === 2_100 ? { ...one, account_id: "none" } : one));
    const file = await write("many", faulty);
    const stopped = await run("import", [file]);
    expect(stopped.said).toContain(":2101: store many-2100: account_id names no account");
    expect(stopped.said).toContain("continue with --resume");
    expect(await countStores()).toBe(2_000);
    await write("many", lines);
    const resumed = await run("import", ["--resume", file]);
    expect(resumed.status).toBe(0);
    expect(countsIn(resumed.said)).toEqual({ store: [2_500, 0, 0] });
    expect(await countStores()).toBe(2_500);
    await write(
      "many",
      lines.map((one, i) => (i === 3 ? { ...one, name: "Another" } : one)),
    );
    const other = await run("import", ["--resume", file]);
    expect(other.status).toBe(1);
    expect(other.said).toContain("differ from those that were imported");
  });

  const countStores = async () => {
    const rows = await database.db.sql`select from stores where external_id like 'many-%'`;
    return rows.length;
  };
});

describe("an announced import", () => {
  const event = (id: string, minutes: number) => ({
    kind: "history",
    external_id: id,
    event: "note_added",
    review_id: FIRST_ID,
    actor: { type: "user", user_id: "u-0" },
    metadata: { body: id },
    occurred_at: `2025-01-01T00:${String(minutes).padStart(2, "0")}:00.000+00:00`,
  });

  test("records its history as events of the subscriptions, in the order of the lines, once", async () => {
    const file = await write("announced", [event("n-2", 5), event("n-1", 1)]);
    await run("import", ["--announce", file]);
    await run("import", ["--announce", file]);
    const rows = await database.db.sql`
      select metadata->>'body' as body, sequence, is_imported from review_history
       where metadata->>'body' like 'n-%' order by id`;
    expect([...rows]).toEqual([
      { body: "n-2", sequence: 1, is_imported: false },
      { body: "n-1", sequence: 2, is_imported: false },
    ]);
    expect(await database.db.sql`select from batch_entries`).toHaveLength(2);
  });

  test("reaches no subscription that begins later", async () => {
    const { sql } = database.db;
    await sql`update webhook_subscriptions set begins_at = now() + interval '1 hour'
               where partner_id = ${FIRST_ID}`;
    await run("import", ["--announce", await write("later", [event("n-3", 1)])]);
    const rows = await sql`select sequence from review_history where metadata->>'body' = 'n-3'`;
    expect([...rows]).toEqual([{ sequence: null }]);
    expect(await sql`select from batch_entries`).toHaveLength(2);
  });
});

test("a flag without a reason is imported, and exported as it was", async () => {
  const flag = { kind: "flag", review_id: FIRST_ID + 3, status: "open" };
  const { status, said } = await run("import", [await write("unreasoned", [flag])]);
  expect([status, countsIn(said)]).toEqual([0, { flag: [1, 0, 0] }]);
  const file = join(directory, "unreasoned-export.ndjson");
  expect((await run("export", [file])).status).toBe(0);
  expect((await linesOf(file)).filter((one) => one["review_id"] === FIRST_ID + 3)).toContainEqual(
    flag,
  );
});

test("an import of a response keeps what is committed to its review meanwhile, such as an erasure", async () => {
  const response = {
    kind: "response",
    review_id: FIRST_ID + 1,
    body: "Thank you.",
    responded_at: "2025-01-01T00:00:00.000+00:00",
  };
  const file = await write("meanwhile", [response]);
  const { sql } = database.db;
  await sql`update reviews set reviewer = 'Ada', reviewer_email = 'ada@mail.test' where id = ${FIRST_ID + 1}`;
  let running: ReturnType<typeof run> | undefined;
  await database.connect().transaction(async (tx) => {
    await tx.sql`update reviews set rate = 1, reviewer = null, reviewer_email = null where id = ${FIRST_ID + 1}`;
    running = run("import", [file]);
    await until("the import waits for the review", async () => {
      const rows = await sql`
        select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
      return rows.length > 0;
    });
  });
  expect((await running)?.status).toBe(0);
  const rows = await sql`
    select rate, reviewer, reviewer_email, response_body from reviews where id = ${FIRST_ID + 1}`;
  expect([...rows]).toEqual([
    { rate: 1, reviewer: null, reviewer_email: null, response_body: "Thank you." },
  ]);
});

test("an import that cannot reserve its ids in several short tries ends, and blocks no other writer", async () => {
  const file = await write("reserved", [{ kind: "plan", id: 50_000, name: "Later" }]);
  const other = database.connect();
  await other.transaction(async (tx) => {
    await tx.sql`insert into plans (name, features) values ('Open', '{}')`;
    const { status, said } = await run("import", [file]);
    expect(status).toBe(1);
    expect(said).toContain("lock timeout");
  });
  expect((await run("import", [file])).status).toBe(0);
});

test("a command without a file, and one for a file that is not there, explains itself", async () => {
  for (const args of [[], ["none.ndjson"], ["--unknown", "x"]]) {
    const { status, said } = await run("import", args);
    expect(status).toBe(64);
    expect(said).toContain("bun run import [options]");
  }
});

test("an integration is in no export, and no line of a user means or makes one", async () => {
  const { sql } = database.db;
  const [row] = await sql<{ id: number }[]>`
    insert into users (company_id, email, name, role, scopes, created_at, updated_at)
    values (${FIRST_ID}, 'integration:one', 'CRM', 'partner_integration', '{*}', now(), now()) returning id`;
  const user = { kind: "user", email: "m@moved.example", name: "M", partner_id: FIRST_ID };
  const said = async (fields: object) => {
    const ran = await run("import", [await write("integration", [{ ...user, ...fields }])]);
    expect(ran.status).toBe(1);
    return ran.said;
  };
  expect(await said({ id: row?.id, role: "partner_admin" })).toContain(
    `id is that of the integration ${row?.id} "CRM": integrations and users share their ids; omit id`,
  );
  expect(await said({ role: "partner_integration" })).toContain("role must be");
  const file = join(directory, "without-integrations.ndjson");
  expect((await run("export", [file])).status).toBe(0);
  expect((await linesOf(file)).filter((one) => one["name"] === "CRM")).toEqual([]);
});

type LineFault = Parameters<Report["onFault"]>[0];

const AS_BY_DEFAULT = { isDryRun: false, resumes: false, announces: false, skipsFaulty: false };

const SIZES = { partners: 3, accounts: 6, stores: 12, users: 24, reviews: 600 };
const URL_OF_RECEIVER = "http://127.0.0.1:9/hook";
const PLATFORM = [...platformLines(SIZES, URL_OF_RECEIVER)];

const directory = mkdtempSync(join(tmpdir(), "import-"));
afterAll(() => rmSync(directory, { recursive: true }));
const masterKey = Buffer.from(crypto.getRandomValues(new Uint8Array(32)));

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
const api = fixture(() => startApi({ db: database.db, config: { masterKey } }));

async function write(name: string, lines: readonly unknown[]): Promise<string> {
  const path = join(directory, `${name}.ndjson`);
  const texts = lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line)));
  await Bun.write(path, `${texts.join("\n")}\n`);
  return path;
}

const linesOf = async (path: string): Promise<Line[]> =>
  (await Bun.file(path).text())
    .trim()
    .split("\n")
    .map((text) => JSON.parse(text) as Line);

function run(command: "import" | "export", args: readonly string[], on: TestDatabase = database) {
  return runCommand(["src/operate/main.ts", command, ...args], {
    DATABASE_URL: on.url,
    REDIS_URL: "redis://unused.invalid",
    MASTER_KEY: masterKey.toString("base64"),
    WEBHOOK_ALLOW_HTTP: "1",
    WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8",
  });
}

/** Reads the table that the command prints: created, present and faulty lines by kind. */
function countsIn(said: string): Record<string, number[]> {
  const rows = said.matchAll(/^ {2}([a-z_]+) +(\d+) +(\d+) +(\d+)$/gm);
  return Object.fromEntries([...rows].map(([, kind = "", ...cells]) => [kind, cells.map(Number)]));
}

const mapped = <T>(counts: Record<string, number>, to: (count: number) => T) =>
  Object.fromEntries(Object.entries(counts).map(([kind, count]) => [kind, to(count)]));

const exists = async (externalId: string) =>
  (await database.db.sql`select from companies where external_id = ${externalId}`).length > 0;

async function reviewRow(id: number) {
  const rows = await database.db.sql`
    select external_id, store_review_site_id, response_body, is_imported from reviews where id = ${id}`;
  return { rows: [...rows] };
}

/** Returns a digest of the rows of every table that an import writes. */
async function contentOf({ sql }: RawDb): Promise<Record<string, unknown>> {
  const tables = [
    "plans",
    "companies",
    "stores",
    "review_sites",
    "store_review_sites",
    "users",
    "user_stores",
    "oauth_clients",
    "webhook_subscriptions",
    "reviews",
    "review_history",
  ];
  const found: Record<string, unknown> = {};
  for (const table of tables) {
    const [row] = await sql.unsafe(
      `select count(*)::int as count, md5(string_agg(t::text, ',' order by t::text)) as digest from ${table} t`,
    );
    found[table] = row;
  }
  return found;
}
