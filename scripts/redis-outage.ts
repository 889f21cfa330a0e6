// Measures a Redis outage:
// `bun scripts/redis-outage.ts [--seconds 60] [--rate 50] [--signal SIGKILL|SIGSTOP] [--tree DIR]`. Two APIs run
// behind Caddy with the shipped deploy/Caddyfile, and two dispatchers. Provider events arrive at a steady rate,
// together with sign-ins and list requests. Redis is killed, or stopped so that it accepts connections and never
// answers; it returns after the given time. The report counts accepted, rejected, delivered, lost and misordered
// events. `--tree` runs another checkout.
import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { connect } from "../db/client.ts";
import { createSecretBox } from "../src/lib/secret-box.ts";
import { until } from "./bench/rig.ts";
import { freePort } from "./chaos/addresses.ts";
import { Client } from "./chaos/client.ts";
import { addTenants, PASSWORD, type Tenants } from "./chaos/tenants.ts";
import { startStores } from "./demo/stores/keep.ts";
import { hasRedisServer, startRedisServer } from "./demo/stores/redis-servers.ts";
import { hasCaddy, startCaddy } from "./proof/caddy.ts";
import { type Receiver, report, reviewEvent, startReceiver } from "./proof/load.ts";
import { ROOT, startProcess } from "./proof/product.ts";
import { isSettled, compare } from "./proof/verdict.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "60" },
    rate: { type: "string", default: "50" },
    signal: { type: "string", default: "SIGKILL" },
    tree: { type: "string", default: ROOT },
  },
});
const outageMs = Number(values.seconds) * 1_000;
const gapMs = 1_000 / Number(values.rate);
const signal = values.signal === "SIGSTOP" ? "SIGSTOP" : "SIGKILL";
const CALM_MS = 15_000;
const PARTNERS = 4;
/** The pause between two sign-ins, and between two list requests. */
const READ_GAP_MS = 1_000;

if (!hasRedisServer() || !hasCaddy()) process.exit(1);
const folder = mkdtempSync(join(tmpdir(), "reviewrelay-outage-"));
chmodSync(folder, 0o711);
const stops: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
let isGood = false;
try {
  isGood = await run();
} finally {
  for (const stop of stops.toReversed()) await stop();
}
process.exit(isGood ? 0 : 1);

async function run(): Promise<boolean> {
  const stores = await startStores({
    folder,
    temporary: true,
    logFile: join(folder, "stores.log"),
    postgres: { durable: true },
  });
  stops.push(() => stores.stop());
  const databaseUrl = stores.databaseUrl ?? "";
  const redis = await startRedisServer();
  stops.push(() => redis.stop());
  const key = randomBytes(32);
  await migrate(databaseUrl);
  const root = await startProduct({ databaseUrl, redisUrl: redis.url, key });
  const db = connect(databaseUrl, { max: 2, name: "outage" });
  stops.push(() => db.close());
  const tenants = await addTenants(
    { db, box: createSecretBox({ current: key }), client: new Client([root]) },
    PARTNERS,
  );
  const load = await startLoad(root, tenants);
  const counted: Record<string, Record<string, number>> = {};
  const phase = async (name: string, ms: number) => {
    load.take();
    await Bun.sleep(ms);
    counted[name] = load.take();
  };
  await phase("before", CALM_MS);
  redis.signal(signal);
  await phase(signal === "SIGSTOP" ? "Redis hangs" : "Redis is away", outageMs);
  if (signal === "SIGSTOP") redis.signal("SIGCONT");
  else await redis.start();
  await phase("after", CALM_MS);
  await load.stop();
  await until("an empty queue", () => isSettled(db));
  const { facts, isValid } = await compare(db, load);
  console.table(counted);
  console.table(facts);
  const answers = Object.values(counted).flatMap((told) => Object.keys(told));
  return isValid && answers.every((told) => told.endsWith("200"));
}

async function migrate(databaseUrl: string): Promise<void> {
  const child = Bun.spawn([process.execPath, "scripts/migrate.ts"], {
    cwd: values.tree,
    env: { PATH: process.env["PATH"] ?? "", DATABASE_URL: databaseUrl },
    stdout: "ignore",
    stderr: "inherit",
  });
  if ((await child.exited) !== 0) throw new Error("The database was not migrated.");
}

/** Starts two APIs behind Caddy and two dispatchers; returns the address for clients. */
async function startProduct(given: {
  readonly databaseUrl: string;
  readonly redisUrl: string;
  readonly key: Uint8Array;
}): Promise<string> {
  const [port, first, second] = [await freePort(), await freePort(), await freePort()];
  const env = {
    DATABASE_URL: given.databaseUrl,
    REDIS_URL: given.redisUrl,
    MASTER_KEY: Buffer.from(given.key).toString("base64"),
    SERVER_ROOT: `http://127.0.0.1:${port}`,
    TRUSTED_PROXIES: "127.0.0.1/32",
    RATE_LIMITS: "on",
  };
  const { tree } = values;
  for (const [role, at] of [
    ["api", first],
    ["api", second],
    ["dispatcher", await freePort()],
    ["dispatcher", await freePort()],
  ] as const) {
    const running = await startProcess({ tree, role, port: at, env, folder });
    stops.push(() => running.stop());
  }
  const caddy = await startCaddy({ port, upstreams: [first, second], tree });
  stops.push(() => caddy.stop());
  return caddy.root;
}

interface Load {
  readonly receivers: readonly Receiver[];
  /** The external ids of the reviews whose event was answered 200. */
  readonly accepted: readonly string[];
  /** Returns the responses since the last call, counted by status. */
  take(): Record<string, number>;
  stop(): Promise<void>;
}

async function startLoad(root: string, tenants: Tenants): Promise<Load> {
  const client = new Client([root]);
  const receivers = await Promise.all(
    tenants.partners.map(async ({ token }) => {
      const receiver = startReceiver();
      stops.push(() => receiver.stop());
      const body = { label: "One", delivery_kind: "immediate", webhook_url: receiver.url };
      await client.insist("POST", "/partner/webhooks", { token, body, want: 201 });
      return receiver;
    }),
  );
  const over = new AbortController();
  const accepted: string[] = [];
  const counts = new Map<string, number>();
  const count = (kind: string, told: string) =>
    void counts.set(`${kind} ${told}`, (counts.get(`${kind} ${told}`) ?? 0) + 1);
  const send = async (n: number) => {
    const event = reviewEvent(`e${n}`, tenants.partners[n % PARTNERS]?.sites[0] ?? 0);
    const told = await report(client, tenants, event);
    count("event", told);
    if (told === "200") accepted.push(event.review.external_review_id);
  };
  const read = async (n: number) => {
    const partner = tenants.partners[n % PARTNERS];
    const list = await client.call("GET", "/partner/webhooks", { token: partner?.token ?? "" });
    count("list", list.told);
    const login = await client.call("POST", "/login", {
      body: { email: partner?.email, password: PASSWORD },
    });
    count("sign-in", login.told);
  };
  const loads = [atEach(gapMs, over.signal, send), atEach(READ_GAP_MS, over.signal, read)];
  return {
    receivers,
    accepted,
    take() {
      const taken = Object.fromEntries(counts);
      counts.clear();
      return taken;
    },
    async stop() {
      over.abort();
      await Promise.all(loads);
    },
  };
}

/** Calls `act` at a steady rate, independently of how long each call takes; resolves when all calls have ended. */
async function atEach(ms: number, over: AbortSignal, act: (n: number) => Promise<void>) {
  const startedMs = performance.now();
  const acts: Promise<void>[] = [];
  for (let n = 0; !over.aborted; n++) {
    acts.push(act(n));
    await Bun.sleep(Math.max(0, startedMs + (n + 1) * ms - performance.now()));
  }
  await Promise.all(acts);
}
