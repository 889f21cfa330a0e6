// The setup of the dispatcher benchmarks: durable stores, the receivers, and real dispatcher processes.
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync, mkdtempSync, chmodSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { ulid } from "ulid";

import { connect, type RawDb } from "../../db/client.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createLog } from "../../src/lib/log.ts";
import { connectRedis } from "../../src/lib/redis.ts";
import { createSecretBox } from "../../src/lib/secret-box.ts";
import { createSchedule, SHARDS, type Schedule, type Wake } from "../../src/outbox/schedule.ts";
import { webhookSecretAssociatedData } from "../../src/master-key.ts";
import { migrate } from "../../db/migrate.ts";
import { startStores } from "../demo/stores/keep.ts";
import { endInOrder } from "../proof/end.ts";
import type { Arrival, SinkAnswer, SinkOrder } from "./sink.ts";

const ROOT = join(import.meta.dir, "../..");
const log = createLog({ level: "warn", role: "bench", clock: systemClock });

export interface Rig {
  readonly db: RawDb;
  /** The environment that connects a process of the product to the same stores. */
  readonly env: Readonly<Record<string, string>>;
  readonly schedule: Schedule;
  readonly sink: Sink;
  /** Starts a dispatcher and waits until it holds its shards. */
  startDispatcher(env?: Record<string, string>): Promise<ChildProcess>;
  /** Creates a subscription for each URL, each with its own partner. */
  subscribe(urls: readonly string[]): Promise<BenchSubscription[]>;
  /** User and system time of all database processes so far, in ms; undefined without /proc. */
  postgresCpuMs(): number | undefined;
  stop(): Promise<void>;
}

export interface BenchSubscription extends Wake {
  readonly partnerId: number;
}

export interface Sink {
  readonly port: number;
  readonly tlsPort: number | undefined;
  reset(options?: Partial<Omit<SinkOrder & { kind: "reset" }, "kind">>): Promise<void>;
  report(take?: boolean): Promise<{ arrivals: readonly Arrival[]; count: number }>;
  /** Requests since the last reset, and the CPU time of the sink's process. */
  count(): Promise<{ count: number; cpuMs: number }>;
}

/** Returns URLs of the hosts 127.1.0.1, 127.1.0.2, … on the sink's port. */
export function hostsOf(port: number, count: number, scheme = "http"): string[] {
  return Array.from(
    { length: count },
    (_, n) => `${scheme}://127.1.${n >> 7}.${(n & 127) + 1}:${port}/hook`,
  );
}

/** Starts the setup; `prefix` is a command prefix for the dispatchers. */
export async function startRig(prefix: readonly string[] = []): Promise<Rig> {
  const folder = mkdtempSync(join(tmpdir(), "reviewrelay-bench-"));
  chmodSync(folder, 0o711);
  const stores = await startStores({
    folder,
    temporary: true,
    logFile: join(folder, "stores.log"),
    postgres: { durable: true },
    redis: true,
  });
  const { databaseUrl = "", redisUrl = "" } = stores;
  await migrate(databaseUrl);
  const key = randomBytes(32);
  const db = connect(databaseUrl, { max: 4, name: "bench" });
  const redis = await connectRedis(redisUrl, log);
  const tls = selfSigned(folder);
  const sink = await startSink(tls);
  const children: ChildProcess[] = [sink.child];
  const env = {
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    MASTER_KEY: key.toString("base64"),
    WEBHOOK_ALLOW_HTTP: "1",
    WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8",
    LOG_LEVEL: "warn",
    ...(tls && { WEBHOOK_CA_FILE: tls.certFile }),
  };
  return {
    db,
    env,
    schedule: createSchedule(redis, "rr:", log),
    sink,
    async startDispatcher(more = {}) {
      // Clears the receivers' behaviour of the previous scenario.
      await sink.reset();
      const script = [process.execPath, "dispatcher/main.ts", "dispatcher"];
      const [program = "", ...args] = [...prefix, ...script];
      const child = spawn(program, args, {
        cwd: ROOT,
        env: {
          PATH: process.env["PATH"] ?? "",
          PARENT_PID: String(process.pid),
          ...env,
          ...more,
        },
        stdio: ["ignore", "inherit", "inherit"],
      });
      children.push(child);
      await until("a dispatcher", async () => (await ownedShards(db)) === SHARDS);
      return child;
    },
    subscribe: (urls) => subscribe(db, key, urls),
    postgresCpuMs: () => postgresCpuMs(folder),
    async stop() {
      // Children end before their stores; otherwise they would log errors about missing stores and outlive this
      // process.
      await Promise.all(children.map(endInOrder));
      redis.disconnect();
      await db.close();
      await stores.stop();
    },
  };
}

async function ownedShards(db: RawDb): Promise<number> {
  const [row] = await db.sql<
    { count: number }[]
  >`select count(*) from shards where dispatcher_id is not null`;
  return row?.count ?? 0;
}

export async function startSink(tls?: {
  cert: string;
  key: string;
}): Promise<Sink & { child: ChildProcess }> {
  const child = spawn(process.execPath, [join(import.meta.dir, "sink.ts")], {
    env: {
      PATH: process.env["PATH"] ?? "",
      ...(tls && { BENCH_CERT: tls.cert, BENCH_KEY: tls.key }),
    },
    // Detached from Ctrl-C; it ends when the IPC channel closes.
    detached: true,
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const ask = <K extends SinkAnswer["kind"]>(kind: K, order?: SinkOrder) =>
    new Promise<SinkAnswer & { kind: K }>((resolve, reject) => {
      const fail = () => reject(new Error("The receivers have ended."));
      const take = (answer: SinkAnswer) => {
        if (answer.kind !== kind) return;
        child.off("message", take);
        child.off("disconnect", fail);
        resolve(answer as SinkAnswer & { kind: K });
      };
      if (!child.connected) return fail();
      child.on("message", take);
      child.once("disconnect", fail);
      if (order) child.send(order);
    });
  const { port, tlsPort } = await ask("listening");
  return {
    child,
    port,
    tlsPort,
    reset: async ({ failFirst = false, hang = [], fail = [], keys = false } = {}) => {
      await ask("done", { kind: "reset", failFirst, hang, fail, keys });
    },
    report: (take = false) => ask("report", { kind: "report", take }),
    count: () => ask("count", { kind: "count" }),
  };
}

/** Creates a certificate for the hosts; returns undefined without openssl, and the https scenario is skipped. */
function selfSigned(folder: string): { cert: string; key: string; certFile: string } | undefined {
  const certFile = join(folder, "cert.pem");
  const keyFile = join(folder, "key.pem");
  const names = Array.from({ length: 128 }, (_, n) => `IP:127.1.0.${n + 1}`).join(",");
  const { exitCode } = Bun.spawnSync(
    [
      "openssl",
      "req",
      "-x509",
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:P-256",
      "-nodes",
      "-days",
      "2",
      "-subj",
      "/CN=bench",
      "-addext",
      `subjectAltName=${names}`,
      "-keyout",
      keyFile,
      "-out",
      certFile,
    ],
    { stdout: "ignore", stderr: "ignore" },
  );
  if (exitCode !== 0) return undefined;
  return { cert: readFileSync(certFile, "utf8"), key: readFileSync(keyFile, "utf8"), certFile };
}

/** Subscriptions per statement. */
const SUBSCRIPTIONS_AT_ONCE = 5_000;

export async function subscribe(
  db: RawDb,
  key: Uint8Array,
  urls: readonly string[],
): Promise<BenchSubscription[]> {
  const box = createSecretBox({ current: key });
  const made: BenchSubscription[] = [];
  for (let from = 0; from < urls.length; from += SUBSCRIPTIONS_AT_ONCE) {
    const part = urls.slice(from, from + SUBSCRIPTIONS_AT_ONCE);
    const partners = await db.sql<{ id: number }[]>`
      insert into companies (type, name, primary_color, created_at)
      select 'partner', 'Bench', '#000000', now() from generate_series(1, ${part.length}::int) returning id`;
    const rows = part.map((url, n) => {
      const partnerId = partners[n]?.id ?? 0;
      const id = ulid();
      const secret = randomBytes(32).toString("hex");
      const sealed = box.seal(secret, webhookSecretAssociatedData(partnerId, id));
      return { id, partner_id: partnerId, shard: (from + n) % SHARDS, url, sealed };
    });
    await db.sql`
      with rows as (
        select * from json_to_recordset(${JSON.stringify(rows)}::text::json)
          as r(id text, partner_id int, shard smallint, url text, sealed text)
      ), subscriptions as (
        insert into webhook_subscriptions (id, partner_id, shard, label, webhook_url, delivery_kind, payload_mode,
          suppress_native_notifications, ordering, state, sealed_secret, secret_fingerprint, created_at, updated_at)
        select id, partner_id, shard, 'Bench', url, 'immediate', 'full', false, 'subscription', 'active', sealed,
               '0000000000000000', now(), now() from rows
      ), offsets as (
        insert into outbox_offsets (subscription_id) select id from rows
      )
      insert into outbox_sequences (subscription_id) select id from rows`;
    made.push(
      ...rows.map((row) => ({
        subscriptionId: row.id,
        shard: row.shard,
        partnerId: row.partner_id,
      })),
    );
  }
  return made;
}

/** Resolves when the condition holds; throws after two minutes. */
export async function until(
  what: string,
  holds: () => Promise<boolean>,
  everyMs = 50,
): Promise<void> {
  const end = performance.now() + 120_000;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`Not within two minutes: ${what}`);
    await Bun.sleep(everyMs);
  }
}

const TICKS_PER_S = 100;

/** Returns user and system time of one process in ms. */
export function cpuMs(pid: number | undefined): number | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
    return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_S;
  } catch {
    return undefined;
  }
}

/** Returns resident memory in bytes. */
export function memoryOf(pid: number | undefined): number | undefined {
  try {
    const [, kb] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return kb === undefined ? undefined : Number(kb) * 1024;
  } catch {
    return undefined;
  }
}

/** Returns user and system time of all processes of the database in this folder. */
export function postgresCpuMs(folder: string): number | undefined {
  return cpuOfTree(postmasterOf(folder));
}

function postmasterOf(folder: string): number | undefined {
  try {
    return Number(
      readFileSync(join(folder, "postgres", "data", "postmaster.pid"), "utf8").split("\n")[0],
    );
  } catch {
    return undefined;
  }
}

function cpuOfTree(root: number | undefined): number | undefined {
  if (root === undefined) return undefined;
  let sum = cpuMs(root) ?? 0;
  for (const name of readdirSync("/proc").filter((one) => /^\d+$/.test(one))) {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8");
      if (Number(stat.split(") ")[1]?.split(" ")[1]) === root) sum += cpuMs(Number(name)) ?? 0;
    } catch {
      // The process ended meanwhile.
    }
  }
  return sum;
}

export function writeResult(name: string, result: unknown): string {
  const folder = join(ROOT, "bench-results");
  Bun.spawnSync(["mkdir", "-p", folder]);
  const path = join(folder, `${name}.json`);
  writeFileSync(path, `${JSON.stringify(result, null, 2)}\n`);
  return path;
}
