// Moves a generated platform in, with a kill on the way; `IMPORT_SHARE=1` takes the full size of 1,000,000 reviews.
import { expect, test } from "bun:test";
import { spawn } from "node:child_process";
import { createHash, createHmac } from "node:crypto";
import { createReadStream, createWriteStream, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { once } from "node:events";
import { createInterface } from "node:readline";

import { ROOT } from "../../scripts/install/install.ts";
import { created } from "../support/factory.ts";
import { fixture } from "../support/fixture.ts";
import { Receiver, until } from "../support/network/receiver.ts";
import {
  countAttempts,
  emailOf,
  FIRST_ID,
  type Line,
  OLD_HASHES,
  OLD_PASSWORD,
  oldSecret,
  platformLines,
} from "../support/platform-lines.ts";
import { createDatabase } from "../support/postgres.ts";
import { ApiProcess } from "../support/processes/api-process.ts";
import { runCommand } from "../support/processes/command.ts";
import { DispatcherProcess } from "../support/processes/dispatcher-process.ts";
import { addTenants } from "../support/tenants.ts";

const SHARE = Number(process.env["IMPORT_SHARE"] ?? "0.02");
const FULL = { partners: 200, accounts: 5_000, stores: 20_000, users: 100_000, reviews: 1_000_000 };
const SIZES = {
  partners: Math.ceil(FULL.partners * SHARE),
  accounts: Math.ceil(FULL.accounts * SHARE),
  stores: Math.ceil(FULL.stores * SHARE),
  users: Math.ceil(FULL.users * SHARE),
  reviews: Math.ceil(FULL.reviews * SHARE),
};

const directory = fixture(() => {
  const path = mkdtempSync(join(tmpdir(), "platform-"));
  return { path, stop: () => rmSync(path, { recursive: true }) };
});
const database = fixture(createDatabase);
const receiver = fixture(() => Receiver.start());
const masterKey = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64");
const environment = () => ({
  DATABASE_URL: database.url,
  MASTER_KEY: masterKey,
  REDIS_URL: process.env["TEST_REDIS_URL"] ?? "",
  WEBHOOK_ALLOW_HTTP: "1",
  WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8",
});

test("a platform is imported over a kill, exported and imported elsewhere, and its partners change nothing", async () => {
  await addTenants(database.db);
  const file = join(directory.path, "platform.ndjson");
  const counts = await writePlatform(file);
  await killAfterSomeLines(file);
  const resumed = await command("import", "--resume", file);
  expect(countsIn(resumed)).toEqual(mapped(counts, (count) => [count, 0, 0]));
  const again = await command("import", file);
  expect(countsIn(again)).toEqual(mapped(counts, (count) => [0, count, 0]));
  for (const [table, rows] of Object.entries(tablesOf(counts)))
    expect([table, await rowsOf(table)]).toEqual([table, rows]);
  for (const table of ["mails", "outbox", "batch_entries", "delivery_attempts"])
    expect([table, await rowsOf(table)]).toEqual([table, 0]);

  const exported = join(directory.path, "first.ndjson");
  await command("export", exported);
  await expectMoved(exported);
  const other = await createDatabase();
  const second = join(directory.path, "second.ndjson");
  await command("import", exported, { DATABASE_URL: other.url });
  await command("export", second, { DATABASE_URL: other.url });
  await other.drop();
  expect(await digestOf(second)).toBe(await digestOf(exported));

  await signInWithEachHash();
}, 3_600_000);

/** Kills an import with SIGKILL once it has committed at least a third of the lines. */
async function killAfterSomeLines(file: string): Promise<void> {
  const child = spawn(process.execPath, ["src/operate/main.ts", "import", file], {
    cwd: ROOT,
    env: { PATH: process.env["PATH"] ?? "", ...environment() },
    stdio: "ignore",
  });
  const third = SIZES.reviews / 3;
  await until("a third of the reviews", async () => (await rowsOf("reviews")) > third, 1_800_000);
  child.kill("SIGKILL");
  await once(child, "exit");
  expect(await rowsOf("reviews")).toBeLessThan(SIZES.reviews);
}

/** The fields that identify a line of a kind in an export. Other kinds have an `id`. */
const KEYS: Readonly<Record<string, readonly string[]>> = {
  oauth_client: ["client_id"],
  subscription: ["partner_id", "label"],
  response: ["review_id"],
  flag: ["review_id"],
  history: ["review_id", "event"],
};

const keyOf = (line: Line): string =>
  JSON.stringify([line.kind, ...(KEYS[line.kind] ?? ["id"]).map((name) => line[name])]);

/** Expects a line of the export for each line of the platform, with each of its fields as it was given. */
async function expectMoved(exported: string): Promise<void> {
  const ids = new Map<unknown, unknown>();
  const wanted = new Map<string, object>();
  for (const one of platformLines(SIZES, receiver.url)) {
    const { external_id: externalId, client_secret: secret, ...given } = one;
    if (externalId !== undefined) ids.set(externalId, given["id"]);
    // An export refers to records by their ids, and has the hash of a client's secret.
    const referring = Object.entries(given).map(([name, value]) => [name, ids.get(value) ?? value]);
    const line: Line = { ...given, ...Object.fromEntries(referring) };
    const hash = createHash("sha256").update(String(secret)).digest("hex");
    wanted.set(keyOf(line), {
      ...line,
      // A row of the history keeps no external id.
      ...(externalId !== undefined && line.kind !== "history" && { external_id: externalId }),
      ...(secret !== undefined && { secret_hash: `sha256:${hash}` }),
    });
  }
  for await (const text of createInterface({ input: createReadStream(exported) })) {
    const line = JSON.parse(text) as Line;
    const given = wanted.get(keyOf(line));
    // The tenants of the test itself are exported as well.
    if (given === undefined) continue;
    expect(line).toMatchObject(given);
    wanted.delete(keyOf(line));
  }
  expect([...wanted.keys()]).toEqual([]);
}

async function signInWithEachHash(): Promise<void> {
  const api = await ApiProcess.start(environment());
  const dispatcher = new DispatcherProcess(environment());
  dispatcher.start();
  try {
    // The first users are the owners of partners, whose subscriptions receive the event below.
    for (const [index, kind] of Object.keys(OLD_HASHES).entries()) {
      const user = SIZES.partners + index;
      const email = emailOf(user + ((6 - (SIZES.partners % 6)) % 6));
      const answer = await api.login(email, OLD_PASSWORD);
      expect([kind, answer.status]).toEqual([kind, 200]);
    }
    const renewed = await database.db.sql`
      select from users where external_id is not null and password_hash like '$argon2id$v=19$m=19456,t=2,p=1$%'`;
    expect(renewed).toHaveLength(6);
    // The review site signs with the secret that it had before.
    const site = { id: FIRST_ID, name: "Old site", slug: "old-site", secret: "site-secret" };
    expect((await api.report(site, [created(FIRST_ID, "new-1")])).status).toBe(200);
    await until("the delivery", () => receiver.received.length > 0);
    const [received] = receiver.received;
    const signature = createHmac("sha256", oldSecret(0))
      .update(received?.body ?? "")
      .digest("hex");
    expect(received?.headers["x-svc-signature"]).toBe(`sha256=${signature}`);
    expect(received?.headers["x-svc-event"]).toBe("review_received");
  } finally {
    api.kill();
    await dispatcher.stop();
  }
}

async function writePlatform(file: string): Promise<Record<string, number>> {
  const out = createWriteStream(file);
  for (const line of platformLines(SIZES, receiver.url))
    if (!out.write(`${JSON.stringify(line)}\n`)) await once(out, "drain");
  out.end();
  await once(out, "finish");
  return countAttempts(platformLines(SIZES, receiver.url));
}

async function command(name: "import" | "export", ...args: (string | Record<string, string>)[]) {
  const startedMs = performance.now();
  const texts = args.filter((one) => typeof one === "string");
  const env = Object.assign(environment(), ...args.filter((one) => typeof one === "object"));
  const { status, said } = await runCommand(["src/operate/main.ts", name, ...texts], env);
  const seconds = Math.round((performance.now() - startedMs) / 1_000);
  console.log(`${name} ${texts.join(" ").replaceAll(directory.path, "")}: ${seconds} s`);
  console.log(said.split("\n").slice(-18).join("\n"));
  expect(status).toBe(0);
  return said;
}

/** Reads the table that the command prints: created, present and faulty lines by kind. */
function countsIn(said: string): Record<string, number[]> {
  const rows = said.matchAll(/^ {2}([a-z_]+) +(\d+) +(\d+) +(\d+)$/gm);
  return Object.fromEntries([...rows].map(([, kind = "", ...cells]) => [kind, cells.map(Number)]));
}

const mapped = <T>(counts: Record<string, number>, to: (count: number) => T) =>
  Object.fromEntries(Object.entries(counts).map(([kind, count]) => [kind, to(count)]));

/** Returns the expected rows of the imported tables; `where` leaves out those of the test's own tenants. */
const tablesOf = (counts: Record<string, number>) => ({
  "companies where external_id is not null": (counts["partner"] ?? 0) + (counts["account"] ?? 0),
  "stores where external_id is not null": counts["store"] ?? 0,
  "users where external_id is not null": counts["user"] ?? 0,
  oauth_clients: counts["oauth_client"] ?? 0,
  webhook_subscriptions: counts["subscription"] ?? 0,
  "reviews where is_imported": counts["review"] ?? 0,
  "reviews where response_body is not null": counts["response"] ?? 0,
  "reviews where flag_status is not null": counts["flag"] ?? 0,
  "review_history where is_imported": counts["history"] ?? 0,
});

async function rowsOf(table: string): Promise<number> {
  const [row] = await database.db.sql.unsafe<{ count: number }[]>(
    `select count(*)::int as count from ${table}`,
  );
  return row?.count ?? 0;
}

async function digestOf(path: string): Promise<string> {
  const hasher = new Bun.CryptoHasher("sha256");
  for await (const part of Bun.file(path).stream()) hasher.update(part);
  return hasher.digest("hex");
}
