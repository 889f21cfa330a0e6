// Proves docs/operations/upgrades.md. The older version is the commit `UPGRADE_FROM`, by default the one before the head.
import { expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { ROOT } from "../../scripts/install/install.ts";
import { until } from "../support/network/receiver.ts";
import { ApiProcess } from "../support/processes/api-process.ts";
import { DispatcherProcess } from "../support/processes/dispatcher-process.ts";
import {
  addEndpoints,
  type Drill,
  drills,
  expectAllInOrder,
  openDb,
  settingsOf,
  startDurableStores,
  startLoad,
} from "./drill.ts";
import { startReverseProxy } from "./reverse-proxy.ts";

const begin = drills();

test("two APIs and two dispatchers are replaced one by one under load, and back again, and every request is answered", async () => {
  const drill = begin();
  const older = checkOut(drill);
  const stores = await startDurableStores(drill, { postgres: true });
  migrate(older, stores.databaseUrl);
  const db = openDb(drill, stores.databaseUrl);
  const endpoints = await addEndpoints(drill, db, (_, count) =>
    (count + 1) % FAILS_EACH === 0 ? 500 : 200,
  );
  const proxy = startReverseProxy();
  drill.atEnd(() => proxy.stop());
  const env = { ...settingsOf(drill, stores), SERVER_ROOT: proxy.root, DRAIN_DELAY_MS: "1500" };
  const startBoth = async (tree: string) => {
    const api = await ApiProcess.start(env, { tree });
    drill.atEnd(() => api.kill());
    const dispatcher = new DispatcherProcess(env, { tree });
    dispatcher.start();
    drill.atEnd(() => dispatcher.stop());
    return { api, dispatcher };
  };
  let fleet = [await startBoth(older), await startBoth(older)];
  for (const { api } of fleet) proxy.upstreams.add(api.root);

  const load = startLoad(await ApiProcess.start(env), endpoints, { root: proxy.root });
  const more = async () => {
    const before = load.accepted.length;
    await until("more events", () => load.accepted.length >= before + EVENTS);
  };
  await more();
  migrate(ROOT, stores.databaseUrl);
  await more();
  for (const tree of [ROOT, older, ROOT]) {
    const next = [];
    for (const old of fleet) {
      const both = await startBoth(tree);
      next.push(both);
      proxy.upstreams.add(both.api.root);
      await Bun.sleep(SETTLES_MS);
      old.api.signal("SIGTERM");
      await old.api.exited();
      proxy.upstreams.delete(old.api.root);
      await old.dispatcher.stop();
    }
    fleet = next;
    await more();
  }
  await load.stop();
  expect([...load.answers.keys()]).toEqual(["200"]);
  await expectAllInOrder(db, endpoints, load.accepted);
});

/** Every request of a receiver with a multiple of this number fails, so that retries are always in progress. */
const FAILS_EACH = 25;
/** The number of events in each phase. */
const EVENTS = 500;
/** The time in milliseconds after which the proxy has seen that a new process is ready. */
const SETTLES_MS = 500;

function run(args: readonly string[], cwd: string, env: Record<string, string> = {}): void {
  const { exitCode, stdout, stderr } = Bun.spawnSync([...args], {
    cwd,
    env: { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "", ...env },
  });
  if (exitCode !== 0)
    throw new Error(`${args.join(" ")}: ${stdout.toString()}${stderr.toString()}`);
}

/** Checks out the older commit and installs its dependencies. */
function checkOut({ folder, atEnd }: Drill): string {
  const tree = join(folder, "older");
  mkdirSync(tree);
  const from = process.env["UPGRADE_FROM"] ?? "HEAD~1";
  run(["git", "worktree", "add", "--detach", tree, from], ROOT);
  atEnd(() => run(["git", "worktree", "remove", "--force", tree], ROOT));
  run([process.execPath, "install", "--production", "--frozen-lockfile"], tree);
  return tree;
}

function migrate(tree: string, databaseUrl: string): void {
  run([process.execPath, "scripts/migrate.ts"], tree, { DATABASE_URL: databaseUrl });
}
