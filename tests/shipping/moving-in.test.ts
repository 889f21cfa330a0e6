// Follows docs/operations/moving-in.md with a small platform of each shape, whose ids begin with 1, and takes the ways back.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

import postgres from "postgres";

import { freePort } from "../../scripts/demo/stores/keep.ts";
import { startSmtpSink } from "../../scripts/demo/smtp-sink.ts";
import { ROOT } from "../../scripts/install/install.ts";
import { isSigned } from "../../src/docs/verify/verify.ts";
import { fixture } from "../support/fixture.ts";
import { type PlatformProxy, startAnyProxy } from "../support/platform-proxy.ts";
import { Receiver, until } from "../support/network/receiver.ts";
import { FIRST_OWN_ID } from "../../db/own-ids.ts";
import {
  ACCOUNT_ID,
  PARTNERS,
  Platform,
  PLATFORM,
  type Shape,
  SHOWN,
} from "../support/platform.ts";
import { Shell } from "../support/processes/shell.ts";
import { lacks } from "../support/needs.ts";

const SHAPES: readonly [string, Shape][] = [
  ["partners and accounts in one table", "one"],
  ["partners and accounts in two tables", "two"],
];

describe.skipIf(lacks("bash", "psql", "openssl", "curl")).each(SHAPES)(
  "moving in with %s",
  (_, wanted) => {
    beforeAll(() => start(wanted));
    afterAll(finish);

    test("1 to 3: installs beside tables of the same names, imports, and goes back without a trace", async () => {
      await install();
      // Two users of one mailbox are named, and merged at the platform.
      const said = await shell.run(
        `{ ${blocks("moving-in", "2", shape).join("\n")}\n } 2>&1 || true`,
      );
      expect(said).toContain(
        `user ${PLATFORM.doubledId}: email is that of the user 2 "ada@alder.example" (external_id u2): omit id`,
      );
      await platform.mergeUsers();
      expect(counts(await run("2"))).toEqual(IMPORTED);
      expect(
        await query`select from ${query(name)}.users where id = ${PLATFORM.userId}`,
      ).toHaveLength(0);
      expect(counts(await run("3"))).toEqual(IMPORTED);
      // The way back does not depend on the shape.
      if (shape === "one") {
        await run("1", "back");
        expect(await platform.countUsers()).toBe(4);
        expect(await query`select from pg_namespace where nspname = ${name}`).toHaveLength(0);
        await install();
        await run("2");
        await run("3");
      }
      expect(counts(await run("3"))).toEqual(IMPORTED.map(([kind, made]) => [kind, 0, made, 0]));
      expect(platform.service.id).toBeGreaterThanOrEqual(FIRST_OWN_ID);
      expect(await importedIds()).toEqual({
        companies: [1, ACCOUNT_ID[shape]],
        plans: [1],
        stores: [1],
        review_sites: [1],
        store_review_sites: [1],
        users: [1, 2],
        reviews: [1, 2],
      });
      const keys = await fetch(`${proxy.root}/.well-known/jwks.json`);
      expect([keys.status, (await login()).token]).toEqual([200, "old-token"]);
    });

    test("4: signs a user in with the old password, checks the token in both ways, and goes back", async () => {
      const old = (await login()).token;
      await proxy.move(["tokens", "sign-in"]);
      await until("the sign-in has moved", async () => (await login()).token !== "old-token");
      expect(await run("4")).toContain(PLATFORM.email);
      const { token } = await login();
      const user = String(PLATFORM.userId);
      expect(await platform.check(token)).toEqual({ keys: user, asked: user });
      expect([
        await visit("/account/billing", token),
        await visit("/account/billing", old),
      ]).toEqual([200, 200]);
      expect([await visit("/verify-token", token), await visit("/verify-token", old)]).toEqual([
        200, 401,
      ]);
      expect(await visit("/logout", token)).toBe(200);
      expect(await platform.check(token)).toEqual({ keys: user, asked: "-" });

      const { token: another } = await login();
      await proxy.move(["tokens"]);
      await until("the sign-in is back", async () => (await login()).token === "old-token");
      expect(await visit("/account/billing", another)).toBe(200);
      await proxy.move(["tokens", "sign-in"]);
      await until("the sign-in has moved", async () => (await login()).token !== "old-token");
    });

    test("5: takes actions over from the platform's transactions, while the platform sends its webhooks", async () => {
      const between = await platform.addReview();
      await run("5");
      const notes = [await platform.addNote(), await platform.addNote({ review: between })];
      const later = await platform.addReview();
      notes.push(await platform.addNote({ review: later }));
      await until("the notes are in the history", async () => {
        const known = await notesInHistory();
        return notes.every((note) => known.includes(note));
      });
      expect(await notesInHistory()).toContain("Called back.");
      const without = await platform.addNote({ inserts: false });
      expect(await notesInHistory()).not.toContain(without);
      const [first = "", second = "", third = ""] = notes;
      const sent = [`Review ${between}`, first, second, `Review ${later}`, third, without];
      expect(deliveries()).toEqual(sent.map((text) => ["platform", text]));
    });

    test("6: switches the webhooks of a partner under its old secret, and back, and announces each new review once", async () => {
      await proxy.move(["tokens", "sign-in", "webhooks"]);
      const before = deliveries().length;
      const [prepare = "", change = ""] = blocks("moving-in", "6");
      // Without an owner the first block is refused, and nothing has changed.
      await query`update ${query(name)}.users set role = 'partner_admin' where id = ${PLATFORM.userId}`;
      const refused = await shell.run(`set +e; (set -e\n${prepare}\n) 2>&1; set -e`);
      expect(refused).toContain("409");
      expect(refused).not.toContain("webhooks:write");
      const owner = { kind: "user", id: 9, external_id: "u9", partner_id: "p1", name: "Olga" };
      await importLine({ ...owner, email: "olga@northwind.example", role: "partner_owner" });
      const stays = await platform.addReview();

      expect(await shell.run(prepare)).toEndWith("webhooks:read webhooks:write");
      await shell.run(change);
      const review = await platform.addReview();
      const note = await platform.addNote({ review });
      await until("the note is delivered", () => deliveries().length > before + 2);
      expect(deliveries().slice(before)).toEqual([
        ["platform", `Review ${stays}`],
        ["ReviewRelay", `Review ${review}`],
        ["ReviewRelay", note],
      ]);

      const last = await platform.addReview();
      await run("6", "back");
      // The other way to an owner.
      await query`update ${query(name)}.users set role = 'partner_admin' where role = 'partner_owner'`;
      const asOwner = `-H 'Content-Type: application/json' -d '{"role": "partner_owner"}'`;
      const patch = `curl -fsS -X PATCH "$API/admin/users/${PLATFORM.userId}" ${asOwner}`;
      await shell.run(`${patch} -H "Authorization: Bearer $TOKEN"; echo`);
      await until("the last review is delivered", () => deliveries().length > before + 3);
      const isRecorded = async (text: string) => (await notesInHistory()).includes(text);
      const back = await platform.addReview();
      const sent = await platform.addNote({ review: back });
      await until("it is recorded", () => isRecorded(sent));
      // What comes between the instant of the platform and the enable is held, skipped, and queued by the recovery.
      const [stop = "", enable = ""] = change.split(/^(?=send )/m);
      await shell.run(prepare + stop);
      const between = await platform.addReview();
      const held = await platform.addNote({ review: between });
      await until("it is recorded", () => isRecorded(held));
      await shell.run(enable);
      const end = await platform.addNote();
      await until("the last note is delivered", () => deliveries().length > before + 8);
      expect(deliveries().slice(before + 3)).toEqual([
        ["ReviewRelay", `Review ${last}`],
        ["platform", `Review ${back}`],
        ["platform", sent],
        ["ReviewRelay", `Review ${between}`],
        ["ReviewRelay", held],
        ["ReviewRelay", end],
      ]);
    });

    test("7: keeps both sides in step by the platform's ids", async () => {
      const said = await run("7");
      expect(said.split("\n")).toEqual(
        expect.arrayContaining(["Northwind Group", "p1 Northwind Group", "p9 A new partner"]),
      );
      // A record that a `PUT` creates takes the id of the platform's next one.
      const put = `put admin/partners/external/other '{"name": "Other"}' | field id`;
      const drawn = Number(await shell.run(put));
      expect(drawn).toBe(Math.max(9, ACCOUNT_ID[shape]) + 1);
      const line = { kind: "partner", id: drawn, external_id: "next", name: "Next" };
      const refused = await importLine(line);
      expect(refused).toContain(`partner ${drawn}: id is that of the partner ${drawn} "Other"`);
      expect(await shell.run("bun run doctor 2>&1")).not.toContain("FAULT");
    });

    test("8: takes the reports of the pullers over, and gives reviews ids above those of the platform", async () => {
      const before = deliveries().length;
      const last = await platform.addReview();
      await run("8");
      await proxy.move(["tokens", "sign-in", "webhooks", "reviews"]);
      await until("a report is taken", async () => (await report(`Review ${last + 1}`)) === 200);
      await until("the review is delivered", () => deliveries().length > before + 1);
      expect(deliveries().slice(before)).toEqual(
        [last, last + 1].map((id) => ["ReviewRelay", `Review ${id}`]),
      );
    });
  },
);

/** The name of the platform's database, of ReviewRelay's role in it, and of its schema. */
let name = "";
let shape: Shape = "one";
let folder = "";
const server = new URL(process.env["TEST_DATABASE_URL"] ?? "postgres://unset");
const mails = fixture(() => startSmtpSink(mkdtempSync(join(tmpdir(), "moving-in-mail-"))));
const receiver = fixture(() => Receiver.start());

let admin: postgres.Sql;
/** Queries the platform's database as the administrator. */
let query: postgres.Sql;
let platform: Platform;
let proxy: PlatformProxy;
let shell: Shell;

/** The names and ports that differ from those of the guides. */
let values: Readonly<Record<string, string>> = {};
let metrics: readonly number[] = [];

async function start(wanted: Shape): Promise<void> {
  shape = wanted;
  name = `moving_${crypto.randomUUID().slice(0, 8)}`;
  folder = mkdtempSync(join(tmpdir(), "moving-in-"));
  receiver.received.splice(0);
  const [port = 0, ours = 0, theirs = 0, ...others] = await Promise.all(
    Array.from({ length: 5 }, freePort),
  );
  metrics = others;
  const root = `http://127.0.0.1:${port}`;
  const own = `${name}_own`;
  admin = postgres(server.href, { max: 1, onnotice: () => {} });
  await admin.unsafe(`create role ${own} login password '${own}'`);
  await admin.unsafe(`create database ${name}`);
  const owned = Object.assign(new URL(server), { pathname: `/${name}` });
  query = postgres(owned.href, { max: 1 });
  await query.unsafe(`grant all on schema public to ${own}`);
  const databaseUrl = Object.assign(owned, { username: own, password: own }).href;
  const webhookUrl = receiver.url;
  const settings = { shape, databaseUrl, port: theirs, root, schema: name, webhookUrl };
  platform = await Platform.start(settings);
  proxy = await startAnyProxy({ port, platform: theirs, reviewrelay: ours });
  await proxy.move(["tokens"]);
  values = {
    PGHOST: server.hostname,
    PGPORT: server.port,
    PGUSER: decodeURIComponent(server.username),
    DATABASE: name,
    ROLE: name,
    OWN: own,
    PARTNERS: `public.${PARTNERS[shape]}`,
    TESTER: PLATFORM.email,
    TESTER_PASSWORD: PLATFORM.password,
    REDIS: process.env["TEST_REDIS_URL"] ?? "",
    ROOT: root,
    LISTEN: String(ours),
    SMTP: mails.url,
    PRIVATE: join(folder, "private"),
  };
  shell = new Shell(folder, {
    PATH: `${dirname(process.execPath)}:${process.env["PATH"] ?? ""}`,
    HOME: folder,
    PGPASSWORD: decodeURIComponent(server.password),
    REDIS_PREFIX: `${name}:`,
    RATE_LIMITS: "off",
    // The receiver of the partner is on this machine.
    WEBHOOK_ALLOW_HTTP: "1",
    WEBHOOK_ALLOWED_NETWORKS: "127.0.0.1/32",
  });
}

async function finish(): Promise<void> {
  await shell.stop();
  await Promise.all([proxy.stop(), platform.stop(), query.end()]);
  rmSync(folder, { recursive: true, force: true });
  await admin.unsafe(`drop database ${name} with (force)`);
  await admin.unsafe(`drop role ${name}_own`);
  await admin.unsafe(`drop role if exists ${name}`);
  await admin.end();
}

const page = (file: string) => readFileSync(join(ROOT, "docs/operations", file), "utf8");
const PAGES = { "moving-in": page("moving-in.md"), production: page("production.md") };

/** The blocks for all readers, those for platforms of one shape besides, the way back, and the values. */
type Kind = "" | "back" | "values" | Shape;

/** Returns the blocks of a step of a kind. The values are this test's instead of the reader's. */
function blocks(of: keyof typeof PAGES, step: string, kind: Kind = ""): string[] {
  const section = PAGES[of].split(/^## /m).find((one) => one.startsWith(`${step}. `)) ?? "";
  const found = [...section.matchAll(/^```sh( \w+)? run .*\n([\s\S]*?)^```$/gm)];
  return found.flatMap(([, mark = "", text = ""]) => {
    const isShaped = kind === "one" || kind === "two";
    if (mark.trim() !== kind && !(isShaped && mark === "")) return [];
    const [api = 0, dispatcher = 0] = metrics;
    return kind === "values"
      ? [withValues(text)]
      : [text.replaceAll("9464", String(api)).replaceAll("9465", String(dispatcher))];
  });
}

const withValues = (text: string) =>
  text.replaceAll(/\b([A-Z_]+)=\S+/g, (line, key: string) =>
    values[key] === undefined ? line : `${key}='${values[key]}'`,
  );

/** Runs a step of the guide, or its way back, and answers what it prints. */
async function run(step: string, kind: Kind = shape): Promise<string> {
  return shell.run(blocks("moving-in", step, kind).join("\n"));
}

/** Imports a record, and answers what the import prints, also of a refusal. */
const importLine = (line: Readonly<Record<string, unknown>>) =>
  shell.run(`echo '${JSON.stringify(line)}' > "$PRIVATE/line.ndjson"
    bun run import "$PRIVATE/line.ndjson" 2>&1 || true`);

/** Follows step 1, with the steps of production.md that it names. */
async function install(): Promise<void> {
  const [schema = "", setup = "", service = ""] = blocks("moving-in", "1");
  const [, settings = ""] = blocks("production", "3");
  const before = [...blocks("production", "2", "values"), ...blocks("moving-in", "1", "values")];
  const rest = ["5", "6"].flatMap((step) => blocks("production", step));
  for (const block of [...before, schema, settings, setup, ...rest, service])
    await shell.run(block);
  const [id = "", token = ""] = (await shell.run('echo "$SERVICE $SERVICE_TOKEN"')).split(" ");
  platform.service = { id: Number(id), token };
}

/** The lines of the export by kind: new, present and faulty ones. */
const IMPORTED: [string, number, number, number][] = [
  ["plan", 1, 0, 0],
  ["partner", 1, 0, 0],
  ["account", 1, 0, 0],
  ["store", 1, 0, 0],
  ["review_site", 1, 0, 0],
  ["connection", 1, 0, 0],
  ["user", 2, 0, 0],
  ["subscription", 1, 0, 0],
  ["review", 2, 0, 0],
];

/** Reads the table that an import prints. */
const counts = (said: string) =>
  [...said.matchAll(/^ +([a-z_]+) +(\d+) +(\d+) +(\d+)$/gm)].map(([, kind, ...numbers]) => [
    kind,
    ...numbers.map(Number),
  ]);

// Without kept connections: the proxy closes idle ones when it takes new paths, maybe while a request is sent.
const call = (path: string, init: RequestInit) =>
  fetch(`${proxy.root}/api/v1${path}`, { ...init, keepalive: false });

/** Signs in through the proxy with the password that the user had before. */
async function login(): Promise<{ token: string }> {
  const { email, password } = PLATFORM;
  const headers = { "Content-Type": "application/json" };
  const body = JSON.stringify({ email, password });
  const answer = await call("/login", { method: "POST", headers, body });
  return (await answer.json()) as { token: string };
}

/** Reports a review as the puller of its site. Answers the status. */
async function report(content: string): Promise<number> {
  const reviewed_at = "2025-09-01T12:00:00Z";
  const review = {
    external_review_id: "site-last",
    rate: 4,
    reviewer: "Sam",
    content,
    reviewed_at,
  };
  const event = { id: "last", type: "review.created", occurred_at: reviewed_at, review };
  const body = JSON.stringify({ events: [{ ...event, store_review_site_id: SHOWN.site }] });
  const digest = createHmac("sha256", PLATFORM.pullerSecret).update(body).digest("hex");
  const headers = {
    "Content-Type": "application/json",
    "X-Provider-Signature": `sha256=${digest}`,
  };
  return (await call("/providers/google/events", { method: "POST", headers, body })).status;
}

const visit = async (path: string, token: string) =>
  (await call(path, { headers: { Authorization: `Bearer ${token}` } })).status;

const TABLES = [
  "companies",
  "plans",
  "stores",
  "review_sites",
  "store_review_sites",
  "users",
  "reviews",
];

/** Reads the ids of the records that the platform brought, by table. */
async function importedIds(): Promise<Record<string, number[]>> {
  const read = async (table: string) => {
    const rows = await query<{ id: number }[]>`
      select id from ${query(name)}.${query(table)} where id < ${FIRST_OWN_ID} order by id`;
    return [table, rows.map(({ id }) => id)] as const;
  };
  return Object.fromEntries(await Promise.all(TABLES.map(read)));
}

async function notesInHistory(): Promise<string[]> {
  const rows = await query<{ note: string }[]>`
    select metadata ->> 'body' as note from ${query(name)}.review_history where event = 'note_added'`;
  return rows.map(({ note }) => note);
}

/**
 * Returns the sender and the text of each webhook, after a check of its signature with the partner's old secret and of its
 * ids, which are the same from both senders. The texts end with the id of their review.
 */
function deliveries(): [string, string][] {
  return receiver.received.map(({ body, headers }) => {
    const signature = headers["x-svc-signature"];
    expect([body, isSigned(PLATFORM.secret, body, signature)]).toEqual([body, true]);
    const { event, from = "ReviewRelay", metadata, partner, actor, review } = JSON.parse(body);
    const ids = { partner: partner.id, store: review.store_id, site: review.review_site_id };
    const { actor: author, ...shown } = SHOWN;
    expect([ids, actor.id]).toEqual([shown, event === "note_added" ? author : null]);
    const text: string = metadata.body ?? metadata.content;
    expect(text.toLowerCase()).toEndWith(`review ${review.id}`);
    return [from, text];
  });
}
