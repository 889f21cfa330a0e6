// Checks the shipped dashboards: `bun scripts/dashboards.ts` runs each query of deploy/grafana and each rule of
// deploy/prometheus against a real Prometheus that has scraped a working API and dispatcher for some seconds. It
// fails if a query returns nothing. Needs `prometheus`.
import { randomBytes } from "node:crypto";
import { spawn } from "node:child_process";
import {
  chmodSync,
  cpSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { connect } from "../db/client.ts";
import { migrate } from "../db/migrate.ts";
import { createSecretBox } from "../src/lib/secret-box.ts";
import { freePort } from "./chaos/addresses.ts";
import { Client } from "./chaos/client.ts";
import { addTenants } from "./chaos/tenants.ts";
import { startStores } from "./demo/stores/keep.ts";
import { report, reviewEvent, startReceiver } from "./proof/load.ts";
import { ROOT, startProcess } from "./proof/product.ts";

const WATCHED_MS = 15_000;
const INTERVAL = "5s";

interface Panel {
  readonly title: string;
  readonly type: string;
  readonly targets?: readonly { readonly expr: string }[];
}

if (Bun.which("prometheus") === null) {
  console.error("There is no `prometheus` here: nothing was asked.");
  process.exit(2);
}
const folder = mkdtempSync(join(tmpdir(), "reviewrelay-dashboards-"));
chmodSync(folder, 0o711);
const stops: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
let failures = 0;
try {
  failures = await check();
} finally {
  for (const stop of stops.toReversed()) await stop();
}
process.exit(failures === 0 ? 0 : 1);

async function check(): Promise<number> {
  const [api, dispatcher] = await startProduct();
  const prometheus = await startPrometheus(api, dispatcher);
  await Bun.sleep(WATCHED_MS);
  const dashboard: { panels: Panel[] } = JSON.parse(
    readFileSync(join(ROOT, "deploy/grafana/reviewrelay.json"), "utf8"),
  );
  let failed = 0;
  for (const { title, targets = [] } of dashboard.panels)
    for (const { expr } of targets) {
      const { status, data } = await ask(
        prometheus,
        `query?query=${encodeURIComponent(expr.replaceAll("$__rate_interval", INTERVAL))}`,
      );
      const series = Number(data?.result?.length ?? 0);
      if (status !== "success" || series === 0) failed += 1;
      console.log(`${series === 0 ? "NOTHING" : `${series} series`.padEnd(9)} ${title}: ${expr}`);
    }
  const { data } = await ask(prometheus, "rules");
  const rules = data.groups.flatMap((group: { rules: object[] }) => group.rules);
  for (const { name, health, state } of rules) {
    if (health !== "ok") failed += 1;
    if (health !== "ok" || state !== "inactive") console.log(`${name}: ${health}, ${state}`);
  }
  console.log(`${rules.length} rules were evaluated, ${failed} panels or rules failed.`);
  return failed;
}

/** Starts an API and a dispatcher that keep working; returns the ports of their metrics. */
async function startProduct(): Promise<[number, number]> {
  const stores = await startStores({
    folder,
    temporary: true,
    logFile: join(folder, "stores.log"),
    postgres: { durable: false },
    redis: true,
  });
  stops.push(() => stores.stop());
  const { databaseUrl = "", redisUrl = "" } = stores;
  await migrate(databaseUrl);
  const key = randomBytes(32);
  const env = {
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    MASTER_KEY: key.toString("base64"),
    RETRY_DELAYS_MS: "500,500,500",
  };
  const [port, apiMetrics, dispatcherMetrics] = [
    await freePort(),
    await freePort(),
    await freePort(),
  ];
  const at = { tree: ROOT, folder };
  const api = await startProcess({
    ...at,
    role: "api",
    port,
    env: { ...env, METRICS_PORT: String(apiMetrics) },
  });
  stops.push(() => api.stop());
  const dispatcher = await startProcess({
    ...at,
    role: "dispatcher",
    port: dispatcherMetrics,
    env,
  });
  stops.push(() => dispatcher.stop());
  await work(databaseUrl, key, port);
  return [apiMetrics, dispatcherMetrics];
}

async function work(databaseUrl: string, key: Uint8Array, port: number): Promise<void> {
  const db = connect(databaseUrl, { max: 1, name: "dashboards" });
  stops.push(() => db.close());
  const client = new Client([`http://127.0.0.1:${port}`]);
  const tenants = await addTenants({ db, box: createSecretBox({ current: key }), client }, 1);
  const [partner] = tenants.partners;
  const site = partner?.sites[0] ?? 0;
  const receiver = startReceiver((nth) => (nth % 10 === 0 ? 500 : 200));
  stops.push(() => receiver.stop());
  await client.insist("POST", "/partner/webhooks", {
    token: partner?.token ?? "",
    body: { label: "One", delivery_kind: "immediate", webhook_url: receiver.url },
    want: 201,
  });
  const over = new AbortController();
  const working = (async () => {
    for (let n = 0; !over.signal.aborted; n++) {
      await report(client, tenants, reviewEvent(`r${n}`, site));
      await client.call("POST", "/login", { body: { email: "x@y.example", password: "wrong" } });
      await Bun.sleep(50);
    }
  })();
  stops.push(async () => {
    over.abort();
    await working;
  });
}

async function startPrometheus(api: number, dispatcher: number): Promise<string> {
  cpSync(join(ROOT, "deploy/prometheus/rules.yaml"), join(folder, "rules.yaml"));
  const config = readFileSync(join(ROOT, "deploy/prometheus/prometheus.yaml"), "utf8")
    .replace("127.0.0.1:9464", `127.0.0.1:${api}`)
    .replace("127.0.0.1:9465", `127.0.0.1:${dispatcher}`)
    .replaceAll("15s", "1s");
  writeFileSync(join(folder, "prometheus.yaml"), config);
  const port = await freePort();
  const log = openSync(join(folder, "prometheus.log"), "a");
  const child = spawn(
    "prometheus",
    [
      `--config.file=${join(folder, "prometheus.yaml")}`,
      `--storage.tsdb.path=${join(folder, "tsdb")}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { stdio: ["ignore", log, log] },
  );
  const gone = new Promise((resolve) => child.once("exit", resolve));
  stops.push(() => {
    child.kill("SIGTERM");
    return gone;
  });
  return `http://127.0.0.1:${port}/api/v1/`;
}

// Prometheus' responses have no types here.
// oxlint-disable-next-line typescript/no-explicit-any
async function ask(root: string, path: string): Promise<any> {
  return (await fetch(root + path)).json();
}
