// Proves the backup guide: `bun scripts/restore.ts [--seconds 3]` runs the commands of docs/operations/backup.md
// unchanged, on Debian's PostgreSQL and under load. It makes a base backup, writes events, notes a moment, writes
// more events, and restores to that moment. It counts redelivered and lost events, and checks the result when the
// provider sends the lost ones again.
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, openSync } from "node:fs";
import { readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { connect, type RawDb } from "../db/client.ts";
import { migrate } from "../db/migrate.ts";
import { createSecretBox } from "../src/lib/secret-box.ts";
import { until } from "./bench/rig.ts";
import { freePort } from "./chaos/addresses.ts";
import { Client } from "./chaos/client.ts";
import { addTenants, type Tenants } from "./chaos/tenants.ts";
import { startStores } from "./demo/stores/keep.ts";
import { report, reviewEvent, startReceiver } from "./proof/load.ts";
import { ROOT, startProcess } from "./proof/product.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "3" },
    bin: { type: "string", default: "/usr/lib/postgresql/15/bin" },
  },
});
const phaseMs = Number(values.seconds) * 1_000;
const CLIENTS = 4;
const ANSWERS_AFTER_MS = 5;
/** The user for PostgreSQL, which refuses to run as root. */
const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;
const NOT_HERE = 2;

if (!existsSync(join(values.bin, "pg_basebackup")) || Bun.which("psql") === null) {
  console.error(`There is no PostgreSQL in ${values.bin} (--bin): nothing was restored.`);
  process.exit(NOT_HERE);
}
const folder = mkdtempSync(join(tmpdir(), "reviewrelay-restore-"));
chmodSync(folder, 0o711);
const stops: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
let isGood = false;
let sent = 0;
try {
  isGood = await play();
} finally {
  for (const stop of stops.toReversed()) await stop();
}
process.exit(isGood ? 0 : 1);

/** Opens the page and a shell as the database's owner to run its commands. */
async function openPage() {
  const text = readFileSync(join(ROOT, "docs/operations/backup.md"), "utf8");
  const home = join(folder, "home");
  const data = join(home, "data");
  const port = String(await freePort());
  mkdirSync(home);
  if (isRoot) chownSync(home, NOBODY, NOBODY);
  const given = {
    PGPORT: port,
    BIN: values.bin,
    DATA: data,
    ARCHIVE: join(home, "wal"),
    BASE: join(home, "base"),
  };
  const blockOf = (tag: string) =>
    [...text.matchAll(/^```sh (\w+) run .*\n([\s\S]*?)^```$/gm)].find(
      ([, of]) => of === tag,
    )?.[2] ?? "";
  const ours = Object.entries(given).reduce(
    (said, [name, value]) => said.replace(new RegExp(`\\b${name}=\\S+`), `${name}='${value}'`),
    blockOf("values"),
  );
  const shell = (script: string, env: Readonly<Record<string, string>> = {}) =>
    runShell(script, home, env);
  return {
    port,
    data,
    shell,
    /** Runs the commands with this tag, with this script's values. */
    blocks: (tag: string, env: Readonly<Record<string, string>> = {}) =>
      shell(`${ours}\n${blockOf(tag)}`, env),
  };
}

/**
 * Runs the script and returns its output. The output goes to a file, because a server that the script starts keeps
 * its streams open.
 */
async function runShell(
  script: string,
  home: string,
  env: Readonly<Record<string, string>>,
): Promise<string> {
  const path = join(folder, "shell.log");
  rmSync(path, { force: true });
  const output = openSync(path, "a");
  const child = spawn("bash", ["--norc", "-eu", "-o", "pipefail", "-c", script], {
    ...(isRoot && { uid: NOBODY, gid: NOBODY }),
    cwd: home,
    env: { PATH: process.env["PATH"] ?? "", HOME: home, ...env },
    stdio: ["ignore", output, output],
  });
  const status = await new Promise((resolve) => child.once("exit", resolve));
  const said = readFileSync(path, "utf8");
  if (status !== 0) throw new Error(`${script}\n${said}`);
  return said;
}

async function withDb<T>(url: string, work: (db: RawDb) => Promise<T>): Promise<T> {
  const db = connect(url, { max: 1, name: "restore" });
  try {
    return await work(db);
  } finally {
    await db.close();
  }
}

function untilDelivered(url: string): Promise<void> {
  return withDb(url, (db) =>
    until("an empty queue", async () => {
      const [row] = await db.sql<{ count: number }[]>`select count(*) from queued_entries`;
      return row?.count === 0;
    }),
  );
}

function recordedNames(url: string): Promise<ReadonlySet<string>> {
  return withDb(url, async (db) => {
    const rows = await db.sql<{ name: string }[]>`select external_review_id as name from reviews`;
    return new Set(rows.map(({ name }) => name));
  });
}

interface Setting {
  readonly databaseUrl: string;
  readonly key: Uint8Array;
  readonly client: Client;
  /** The URL of the receiver. */
  readonly url: string;
}

function setUp({ databaseUrl, key, client, url }: Setting): Promise<Tenants> {
  return withDb(databaseUrl, async (db) => {
    const tenants = await addTenants({ db, box: createSecretBox({ current: key }), client }, 1);
    const token = tenants.partners[0]?.token ?? "";
    const body = { label: "One", delivery_kind: "immediate", webhook_url: url };
    await client.insist("POST", "/partner/webhooks", { token, body, want: 201 });
    return tenants;
  });
}

/** Sends from four clients for this time; returns the accepted events. */
async function sendFor(client: Client, tenants: Tenants, ms: number) {
  const endMs = performance.now() + ms;
  const accepted: { name: string; event: object }[] = [];
  const send = async () => {
    while (performance.now() < endMs) {
      const name = `r${sent++}`;
      const event = reviewEvent(name, tenants.partners[0]?.sites[0] ?? 0);
      if ((await report(client, tenants, event)) === "200") accepted.push({ name, event });
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, send));
  return accepted;
}

async function beginPostgres(run: Awaited<ReturnType<typeof openPage>>): Promise<void> {
  await run.shell(
    `"${values.bin}/initdb" -D "${run.data}" -U postgres -A trust >/dev/null
     echo "port = ${run.port}
     listen_addresses = '127.0.0.1'
     unix_socket_directories = ''" >> "${run.data}/postgresql.conf"
     "${values.bin}/pg_ctl" -D "${run.data}" -w -l "${run.data}.log" start`,
  );
  stops.push(() =>
    run.shell(`"${values.bin}/pg_ctl" -D "${run.data}" -w -m immediate stop || true`),
  );
}

/** Starts an API and a dispatcher; returns a function that stops both. */
async function startBoth(port: number, env: Readonly<Record<string, string>>) {
  const at = { tree: ROOT, folder, env };
  const api = await startProcess({ ...at, role: "api", port });
  const dispatcher = await startProcess({ ...at, role: "dispatcher", port: await freePort() });
  return () => Promise.all([api.stop(), dispatcher.stop()]);
}

async function play(): Promise<boolean> {
  const run = await openPage();
  await beginPostgres(run);
  await run.blocks("archive");
  const databaseUrl = `postgres://postgres@127.0.0.1:${run.port}/postgres`;
  await migrate(databaseUrl);
  const stores = await startStores({ folder, logFile: join(folder, "redis.log"), redis: true });
  stops.push(() => stores.stop());
  const key = randomBytes(32);
  const apiPort = await freePort();
  const MASTER_KEY = key.toString("base64");
  const env = { DATABASE_URL: databaseUrl, REDIS_URL: stores.redisUrl ?? "", MASTER_KEY };
  const start = () => startBoth(apiPort, env);
  let stop = await start();
  stops.push(() => stop());
  const client = new Client([`http://127.0.0.1:${apiPort}`]);
  // The receiver is slower than the clients, so that entries are queued at any moment.
  const receiver = startReceiver(() => 200, ANSWERS_AFTER_MS);
  stops.push(() => receiver.stop());
  const tenants = await setUp({ databaseUrl, key, client, url: receiver.url });
  await run.blocks("backup");

  const accepted = await sendFor(client, tenants, phaseMs);
  const moment = new Date();
  await Bun.sleep(50);
  const later = await sendFor(client, tenants, phaseMs);
  await untilDelivered(databaseUrl);
  await stop();
  const before = receiver.arrivals.length;
  const began = performance.now();
  console.log(
    (await run.blocks("restore", { UNTIL: moment.toISOString().replace("Z", "+00") }))
      .trim()
      .split("\n")
      .at(-1),
  );
  const restoredMs = Math.round(performance.now() - began);
  stop = await start();
  await untilDelivered(databaseUrl);
  const again = receiver.arrivals.slice(before);
  const known = new Set(receiver.arrivals.slice(0, before).map(({ id }) => id));
  const recorded = await recordedNames(databaseUrl);
  const answers = await Promise.all(later.map(({ event }) => report(client, tenants, event)));
  await untilDelivered(databaseUrl);
  const facts = {
    "accepted before the moment": accepted.length,
    "of these lost": accepted.filter(({ name }) => !recorded.has(name)).length,
    "accepted after it": later.length,
    "of these gone": later.filter(({ name }) => !recorded.has(name)).length,
    "restored in ms": restoredMs,
    "delivered again, under the same id": again.filter(({ id }) => known.has(id)).length,
    "delivered for the first time": again.filter(({ id }) => !known.has(id)).length,
    "sent again by the provider, and accepted": answers.filter((told) => told === "200").length,
  };
  console.table(facts);
  const after = await recordedNames(databaseUrl);
  const isKept = facts["of these lost"] === 0 && facts["of these gone"] === later.length;
  return isKept && later.every(({ name }) => after.has(name));
}
