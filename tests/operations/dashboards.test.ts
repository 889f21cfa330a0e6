// Asks a real Prometheus every query of deploy/grafana, after it has scraped a working API and dispatcher.
import { expect, test } from "bun:test";
import { spawn } from "node:child_process";
import { cpSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { migrate } from "../../db/migrate.ts";
import { freePort } from "../../scripts/demo/stores/keep.ts";
import { ROOT } from "../../scripts/install/install.ts";
import { until } from "../support/network/receiver.ts";
import { ApiProcess } from "../support/processes/api-process.ts";
import { DispatcherProcess } from "../support/processes/dispatcher-process.ts";
import {
  addEndpoints,
  type Drill,
  drills,
  openDb,
  settingsOf,
  startDurableStores,
  startLoad,
} from "../shipping/drill.ts";
import { lacks } from "../support/needs.ts";

const isHere = !lacks("prometheus");

const begin = drills();

test.skipIf(!isHere)(
  "every panel shows a series, and every alert rule can be evaluated",
  async () => {
    const drill = begin();
    const prometheus = await startPrometheus(drill, await startProduct(drill));
    let empty: readonly string[] = [];
    await until("a series in every panel", async () => {
      empty = await emptyPanels(prometheus);
      return empty.length === 0;
    }).catch(() => expect(empty).toEqual([]));
    const { data } = await ask(prometheus, "rules");
    const rules = data.groups.flatMap((group: { rules: object[] }) => group.rules);
    expect(rules.length).toBeGreaterThan(0);
    expect(rules.filter(({ health }: { health: string }) => health !== "ok")).toEqual([]);
  },
);

/** Returns the queries without a series. Prometheus scrapes once a second. */
async function emptyPanels(prometheus: string): Promise<string[]> {
  const dashboard: { panels: Panel[] } = JSON.parse(
    readFileSync(join(ROOT, "deploy/grafana/reviewrelay.json"), "utf8"),
  );
  const empty: string[] = [];
  for (const { title, targets = [] } of dashboard.panels)
    for (const { expr } of targets) {
      const query = encodeURIComponent(expr.replaceAll("$__rate_interval", INTERVAL));
      const { status, data } = await ask(prometheus, `query?query=${query}`);
      if (status !== "success" || !(data?.result.length > 0)) empty.push(`${title}: ${expr}`);
    }
  return empty;
}

const INTERVAL = "5s";

interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string }[];
}

/** Starts an API and a dispatcher that keep working; returns the ports of their metrics. */
async function startProduct(drill: Drill): Promise<[number, number]> {
  const stores = await startDurableStores(drill, { postgres: true });
  await migrate(stores.databaseUrl);
  const env = settingsOf(drill, stores);
  const [apiPort, dispatcherPort] = [await freePort(), await freePort()];
  const dispatcher = new DispatcherProcess({ ...env, METRICS_PORT: String(dispatcherPort) });
  dispatcher.start();
  drill.atEnd(() => dispatcher.stop());
  const api = await ApiProcess.start({ ...env, METRICS_PORT: String(apiPort) });
  drill.atEnd(() => api.kill());
  let requests = 0;
  const endpoints = await addEndpoints(drill, openDb(drill, stores.databaseUrl), () =>
    (requests += 1) % 10 === 0 ? 500 : 200,
  );
  const load = startLoad(api, endpoints);
  drill.atEnd(() => load.stop());
  await api.login("nobody@reviews.example", "wrong");
  return [apiPort, dispatcherPort];
}

/** Starts Prometheus with the shipped settings and rules; returns the root of its API. */
async function startPrometheus(
  { folder, atEnd }: Drill,
  [apiPort, dispatcherPort]: readonly [number, number],
): Promise<string> {
  cpSync(join(ROOT, "deploy/prometheus/rules.yaml"), join(folder, "rules.yaml"));
  const config = readFileSync(join(ROOT, "deploy/prometheus/prometheus.yaml"), "utf8")
    .replace("127.0.0.1:13000", `127.0.0.1:${apiPort}`)
    .replace("127.0.0.1:9465", `127.0.0.1:${dispatcherPort}`)
    .replaceAll("15s", "1s");
  writeFileSync(join(folder, "prometheus.yaml"), config);
  const port = await freePort();
  const log = openSync(join(folder, "prometheus.log"), "a");
  const options = {
    "config.file": join(folder, "prometheus.yaml"),
    "storage.tsdb.path": join(folder, "tsdb"),
    "web.listen-address": `127.0.0.1:${port}`,
  };
  const child = spawn(
    "prometheus",
    Object.entries(options).map(([name, value]) => `--${name}=${value}`),
    { stdio: ["ignore", log, log] },
  );
  const gone = new Promise((resolve) => child.once("exit", resolve));
  atEnd(() => {
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
