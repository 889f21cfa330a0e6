// Measures a failover: `bun scripts/postgres-failover.ts [--seconds 20] [--postgres 15]`. One API and one dispatcher
// run on a primary with a synchronous standby, both named in DATABASE_URL, while eight clients send signed events.
// After a third of the time the primary is killed, and two seconds later the standby is promoted. The report shows
// when events are accepted and delivered again, and checks that no accepted event is lost or out of order.
import { createHmac, randomBytes } from "node:crypto";
import { appendFileSync, chmodSync, cpSync, mkdtempSync, openSync, readFileSync } from "node:fs";
import { chownSync, readdirSync, realpathSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { ulid } from "ulid";

import { connect, type RawDb } from "../db/client.ts";
import { migrate } from "../db/migrate.ts";
import { createSecretBox } from "../src/lib/secret-box.ts";
import { until } from "./bench/rig.ts";
import { freePort } from "./chaos/addresses.ts";
import { Client } from "./chaos/client.ts";
import { supervise } from "./chaos/processes.ts";
import { addTenants, PROVIDER } from "./chaos/tenants.ts";
import { startEmbeddedPostgres } from "./demo/stores/embedded-postgres.ts";
import { startStores } from "./demo/stores/keep.ts";
import { installPostgres, postgresMajor } from "./demo/stores/postgres-versions.ts";
import { processesIn, signal } from "./demo/stores/processes.ts";

const { values } = parseArgs({
  options: { seconds: { type: "string", default: "20" }, postgres: { type: "string" } },
});
const runMs = Number(values.seconds) * 1_000;
const major = postgresMajor(values.postgres);
const native = installPostgres(major);
const CLIENTS = 8;
const STANDBY = "standby";
/** The time that a monitor usually needs to notice that the primary is down. */
const NOTICED_MS = 2_000;

const folder = mkdtempSync(join(tmpdir(), "reviewrelay-promotion-"));
chmodSync(folder, 0o711);
const log = openSync(join(folder, "stores.log"), "a");
const begin = (name: string, port: number) =>
  startEmbeddedPostgres({ folder: join(folder, name), port, durable: true, native, log });

const stops: (() => Promise<unknown> | void)[] = [() => rmSync(folder, { recursive: true })];
try {
  console.log(`Starting PostgreSQL ${major} as a primary with a synchronous standby …`);
  const [primaryPort, standbyPort] = [await freePort(), await freePort()];
  const password = await copyPrimary(primaryPort);
  const primary = await begin("primary", primaryPort);
  stops.push(() => primary.stop());
  const standby = await begin(STANDBY, standbyPort);
  stops.push(() => standby.stop());
  const one = connect(primary.url, { max: 1, name: "failover" });
  await one.sql.unsafe(`alter system set synchronous_standby_names = '${STANDBY}'`);
  await one.sql`select pg_reload_conf()`;
  await until("a synchronous standby", async () => {
    const [row] = await one.sql`select 1 from pg_stat_replication where sync_state = 'sync'`;
    return row !== undefined;
  });
  await one.close();
  const hosts = `127.0.0.1:${primaryPort},127.0.0.1:${standbyPort}`;
  const databaseUrl = `postgres://postgres:${password}@${hosts}/postgres`;
  await migrate(databaseUrl);
  await play(databaseUrl);
} finally {
  for (const stop of stops.toReversed()) await stop();
}
process.exit(0);

/** Creates the standby as a copy of the primary before its first start; returns the password of both. */
async function copyPrimary(primaryPort: number): Promise<string> {
  await (await begin("primary", primaryPort)).stop();
  const [from, to] = [realpathSync(join(folder, "primary")), join(folder, STANDBY)];
  cpSync(from, to, { recursive: true, verbatimSymlinks: true });
  const { uid, gid } = statSync(join(from, "data"));
  const password = readFileSync(join(to, "password"), "utf8");
  const source = `host=127.0.0.1 port=${primaryPort} user=postgres password=${password} application_name=${STANDBY}`;
  const data = join(to, "data");
  writeFileSync(join(data, "standby.signal"), "");
  appendFileSync(join(data, "postgresql.auto.conf"), `primary_conninfo = '${source}'\n`);
  for (const entry of ["", ...readdirSync(to, { encoding: "utf8", recursive: true })])
    chownSync(join(to, entry), uid, gid);
  return password;
}

/** Promotes the standby like `pg_ctl promote`, which some packages of the server lack. */
function promote(data: string): void {
  writeFileSync(join(data, "promote"), "");
  const [pid] = readFileSync(join(data, "postmaster.pid"), "utf8").split("\n");
  signal(Number(pid), "SIGUSR1");
}

interface Seen {
  /** The review's name for a sent event, the event id for a delivery. */
  readonly name: string;
  readonly atMs: number;
}

async function play(databaseUrl: string): Promise<void> {
  const arrivals: Seen[] = [];
  const receiver = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      await request.arrayBuffer();
      const name = request.headers.get("x-svc-delivery") ?? "";
      arrivals.push({ name, atMs: performance.now() });
      return new Response(null);
    },
  });
  stops.push(() => receiver.stop(true));
  const db = connect(databaseUrl, { max: 2, name: "failover" });
  stops.push(() => db.close());
  const key = randomBytes(32);
  const client = await startProduct(databaseUrl, key);
  const box = createSecretBox({ current: key });
  const { partners, providerSecret } = await addTenants({ db, box, client }, 1);
  const [partner] = partners;
  const [site] = partner?.sites ?? [];
  if (partner === undefined || site === undefined) throw new Error("There is no partner.");
  const webhook_url = `http://127.0.0.1:${receiver.port}/hook`;
  const body = { label: "Promotion", delivery_kind: "immediate", webhook_url };
  await client.insist("POST", "/partner/webhooks", { token: partner.token, body, want: 201 });

  const accepted: Seen[] = [];
  const endMs = performance.now() + runMs;
  const sending = Array.from({ length: CLIENTS }, async (_, n) => {
    for (let nth = 0; performance.now() < endMs; nth++) {
      const name = `c${n}-${nth}`;
      const isAccepted = await report(client, providerSecret, { name, site });
      if (isAccepted) accepted.push({ name, atMs: performance.now() });
      else await Bun.sleep(50);
    }
  });
  await Bun.sleep(runMs / 3);
  console.log(`Killing the primary after ${accepted.length} accepted events …`);
  const primary = realpathSync(join(folder, "primary", "data"));
  for (const pid of processesIn(primary)) signal(pid, "SIGKILL");
  await Bun.sleep(NOTICED_MS);
  const promotedMs = performance.now();
  promote(join(folder, STANDBY, "data"));
  await Promise.all(sending);
  await tell(db, { accepted, arrivals, promotedMs });
  console.log(`Answers: ${[...client.counts].map(([told, n]) => `${n} × ${told}`).join(", ")}`);
}

function ended({ name, how }: { name: string; how: string }): void {
  console.log(`${name} ended by itself: ${how}`);
}

/** Starts an API and a dispatcher; returns a client of the API. */
async function startProduct(databaseUrl: string, key: Uint8Array): Promise<Client> {
  const redisFolder = mkdtempSync(join(folder, "redis-"));
  const logFile = join(folder, "redis.log");
  const stores = await startStores({ folder: redisFolder, logFile, redis: true });
  stops.push(() => stores.stop());
  const port = await freePort();
  const env = {
    DATABASE_URL: databaseUrl,
    REDIS_URL: stores.redisUrl ?? "",
    MASTER_KEY: Buffer.from(key).toString("base64"),
    PORT: String(port),
    RATE_LIMITS: "off",
    WEBHOOK_ALLOW_HTTP: "1",
    WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8",
    LOG_LEVEL: "warn",
  };
  for (const [name, path] of [
    ["api", "src/main.ts"],
    ["dispatcher", "dispatcher/main.ts"],
  ] as const) {
    const run = supervise({ name, args: [path, name], env, folder, ended });
    stops.push(() => run.stop());
  }
  return new Client([`http://127.0.0.1:${port}`]);
}

async function tell(
  db: RawDb,
  run: { accepted: readonly Seen[]; arrivals: readonly Seen[]; promotedMs: number },
): Promise<void> {
  const { accepted, arrivals, promotedMs } = run;
  const recorded = await db.sql<{ event_id: string; name: string }[]>`
    select h.event_id, r.external_review_id as name
      from review_history h join reviews r on r.id = h.review_id order by h.id`;
  const delivered = () => [...new Set(arrivals.map(({ name }) => name))];
  await until("all delivered", async () => delivered().length >= recorded.length).catch(() => {});
  const known = new Set(recorded.map(({ name }) => name));
  const wanted = recorded.map(({ event_id }) => event_id);
  const since = (seen: readonly Seen[]) => {
    const first = seen.find(({ atMs }) => atMs > promotedMs);
    return first === undefined ? "never" : `${Math.round(first.atMs - promotedMs)} ms`;
  };
  console.table({
    accepted: accepted.length,
    "accepted, and not recorded": accepted.filter(({ name }) => !known.has(name)).length,
    recorded: recorded.length,
    "recorded, and not delivered": recorded.length - delivered().length,
    "in order": delivered().join() === wanted.join(),
    repeats: arrivals.length - delivered().length,
    "accepted again, since the promotion": since(accepted),
    "delivered again, since the promotion": since(arrivals),
  });
}

async function report(
  client: Client,
  secret: string,
  { name, site }: { name: string; site: number },
): Promise<boolean> {
  const at = new Date().toISOString();
  const review = {
    external_review_id: name,
    rate: 5,
    reviewer: name,
    content: "Friendly people, clean work.",
    reviewed_at: at,
  };
  const event = {
    id: ulid(),
    type: "review.created",
    occurred_at: at,
    store_review_site_id: site,
    review,
  };
  const body = JSON.stringify({ events: [event] });
  const digest = createHmac("sha256", secret).update(body).digest("hex");
  const headers = { "X-Provider-Signature": `sha256=${digest}` };
  const path = `/providers/${PROVIDER}/events`;
  return (await client.call("POST", path, { body, headers })).status === 200;
}
