// Proves a rolling upgrade: `bun scripts/rolling-upgrade.ts [--from HEAD~1] [--seconds 3]`. Two APIs and two
// dispatchers of an older commit run behind a proxy and under load. They are replaced one by one with those of this
// checkout, and then back again. The schema starts at the older version and is migrated under load. The report counts
// the clients' responses, and lost and misordered events.
import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { connect, type RawDb } from "../db/client.ts";
import { createSecretBox } from "../src/lib/secret-box.ts";
import { until } from "./bench/rig.ts";
import { freePort } from "./chaos/addresses.ts";
import { Client } from "./chaos/client.ts";
import { addTenants, type Partner, type Tenants } from "./chaos/tenants.ts";
import { startStores } from "./demo/stores/keep.ts";
import { type Receiver, report, reviewEvent, startReceiver } from "./proof/load.ts";
import { ROOT, type Role, type Running, startProcess } from "./proof/product.ts";
import { startReverseProxy } from "./proof/reverse-proxy.ts";
import { isSettled, compare } from "./proof/verdict.ts";

const { values } = parseArgs({
  options: {
    from: { type: "string", default: "HEAD~1" },
    seconds: { type: "string", default: "3" },
  },
});
const phaseMs = Number(values.seconds) * 1_000;
const PARTNERS = 2;
const CLIENTS = 4;
const UNHURRIED = { DRAIN_DELAY_MS: "1500", RETRY_DELAYS_MS: "300,600,900" };
/** Every request of a receiver with a multiple of this number fails, so that retries are always in progress. */
const FAILS_EACH = 25;

const folder = mkdtempSync(join(tmpdir(), "reviewrelay-rolling-"));
chmodSync(folder, 0o711);
const stops: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
let isGood = false;
try {
  isGood = await roll();
} finally {
  for (const stop of stops.toReversed()) await stop();
}
process.exit(isGood ? 0 : 1);

function insist(args: readonly string[], cwd: string, env: Record<string, string> = {}): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync([...args], {
    cwd,
    env: { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "", ...env },
  });
  if (exitCode !== 0)
    throw new Error(`${args.join(" ")}: ${stdout.toString()}${stderr.toString()}`);
  return stdout.toString().trim();
}

/** Checks out the older commit and installs its dependencies. */
function checkOut(): string {
  const tree = join(folder, "before");
  insist(["git", "worktree", "add", "--detach", tree, values.from], ROOT);
  stops.push(() => insist(["git", "worktree", "remove", "--force", tree], ROOT));
  insist(
    [process.execPath, "install", "--production", "--frozen-lockfile", "--omit=optional"],
    tree,
  );
  return tree;
}

function migrate(tree: string, databaseUrl: string): string {
  return insist([process.execPath, "scripts/migrate.ts"], tree, { DATABASE_URL: databaseUrl });
}

async function beginStores() {
  const stores = await startStores({
    folder,
    temporary: true,
    logFile: join(folder, "stores.log"),
    postgres: { durable: true },
    redis: true,
  });
  stops.push(() => stores.stop());
  const { databaseUrl = "", redisUrl = "" } = stores;
  return { databaseUrl, redisUrl };
}

async function roll(): Promise<boolean> {
  const before = checkOut();
  for (const tree of [before, ROOT])
    console.log(insist(["git", "log", "-1", "--format=%h %s"], tree));
  const { databaseUrl, redisUrl } = await beginStores();
  const key = randomBytes(32);
  migrate(before, databaseUrl);
  const db = connect(databaseUrl, { max: 2, name: "rolling" });
  stops.push(() => db.close());

  const proxy = startReverseProxy();
  stops.push(() => proxy.stop());
  const env = {
    ...UNHURRIED,
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    MASTER_KEY: key.toString("base64"),
    SERVER_ROOT: proxy.root,
  };
  const fleet: Running[] = [];
  const begin = async (tree: string, role: Role) => {
    const running = await startProcess({ tree, role, port: await freePort(), env, folder });
    stops.push(() => running.stop());
    fleet.push(running);
    if (role === "api") proxy.upstreams.add(running.port);
  };
  for (const role of ["api", "api", "dispatcher", "dispatcher"] as const) await begin(before, role);
  await Bun.sleep(500);
  const setting = new Client([proxy.root]);
  const tenants = await addTenants(
    { db, box: createSecretBox({ current: key }), client: setting },
    PARTNERS,
  );
  const load = await startLoad(proxy.root, tenants, setting);
  const counted: Record<string, Record<string, number>> = {};
  const phase = async (name: string, work: () => Promise<unknown>) => {
    load.take();
    await work();
    await Bun.sleep(phaseMs);
    counted[name] = load.take();
  };
  const replace = (tree: string, from: readonly Running[]) => async () => {
    for (const old of from) {
      await begin(tree, old.role);
      await Bun.sleep(500);
      const status = await old.stop();
      if (status !== 0) console.log(`${old.role} ended with ${status}`);
      proxy.upstreams.delete(old.port);
      fleet.splice(fleet.indexOf(old), 1);
    }
  };
  await phase("old", async () => {});
  await phase("migrated", async () => console.log(migrate(ROOT, databaseUrl)));
  await phase("old → new", () => replace(ROOT, [...fleet])());
  await phase("new → old", () => replace(before, [...fleet])());
  await phase("old → new again", () => replace(ROOT, [...fleet])());
  await load.stop();
  return tell(db, load, counted);
}

interface Load {
  readonly receivers: readonly Receiver[];
  readonly accepted: readonly string[];
  /** Returns the clients' responses since the last call. */
  take(): Record<string, number>;
  stop(): Promise<void>;
}

async function startLoad(root: string, tenants: Tenants, setting: Client): Promise<Load> {
  const receivers = await Promise.all(
    tenants.partners.map(async ({ token }) => {
      const receiver = startReceiver((nth) => (nth % FAILS_EACH === 0 ? 500 : 200));
      stops.push(() => receiver.stop());
      const body = { label: "One", delivery_kind: "immediate", webhook_url: receiver.url };
      await setting.insist("POST", "/partner/webhooks", { token, body, want: 201 });
      return receiver;
    }),
  );
  const client = new Client([root]);
  const accepted: string[] = [];
  const over = new AbortController();
  const sending = Array.from({ length: CLIENTS }, async (_, c) => {
    const partner = tenants.partners[c % PARTNERS];
    for (let n = 0; !over.signal.aborted; n++) {
      const event = reviewEvent(`c${c}-${n}`, partner?.sites[0] ?? 0);
      // Retries with the same id until the event is accepted, as a provider does.
      while ((await report(client, tenants, event)) !== "200") await Bun.sleep(50);
      accepted.push(event.review.external_review_id);
      await Bun.sleep(5);
    }
  });
  const reading = tenants.partners.map((partner: Partner) =>
    (async () => {
      while (!over.signal.aborted) {
        await client.call("GET", "/partner/webhooks", { token: partner.token });
        await Bun.sleep(50);
      }
    })(),
  );
  return {
    receivers,
    accepted,
    take() {
      const counts = Object.fromEntries(client.counts);
      client.counts.clear();
      return counts;
    },
    async stop() {
      over.abort();
      await Promise.all([...sending, ...reading]);
    },
  };
}

async function tell(
  db: RawDb,
  load: Load,
  counted: Record<string, Record<string, number>>,
): Promise<boolean> {
  await until("an empty queue", () => isSettled(db));
  const { facts, isValid } = await compare(db, load);
  console.table(counted);
  console.table(facts);
  const answers = Object.values(counted).flatMap((told) => Object.keys(told));
  return isValid && answers.every((told) => told === "200");
}
