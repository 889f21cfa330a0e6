// Runs the commands of docs/operations/backup.md unchanged, on Debian's PostgreSQL (`POSTGRES_BIN`), and under load.
import { expect, test } from "bun:test";
import { spawn } from "node:child_process";
import { chownSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { freePort } from "../../scripts/demo/stores/keep.ts";
import { migrate } from "../../db/migrate.ts";
import { ROOT } from "../../scripts/install/install.ts";
import { created } from "../support/factory.ts";
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
  untilDelivered,
} from "./drill.ts";
import { lacks } from "../support/needs.ts";

const BIN = process.env["POSTGRES_BIN"] ?? "/usr/lib/postgresql/15/bin";
const begin = drills();

test.skipIf(lacks("bash", "postgresql", "psql"))(
  "a restore to a moment keeps every event from before it, and providers send the later ones again",
  async () => {
    const drill = begin();
    const page = await openPage(drill);
    await page.start();
    await page.run("archive");
    const databaseUrl = `postgres://postgres@127.0.0.1:${page.port}/reviewrelay`;
    await migrate(databaseUrl);
    const { redisUrl } = await startDurableStores(drill, { postgres: false });
    const env = settingsOf(drill, { databaseUrl, redisUrl });
    // The receivers are slower than the clients, so that entries are queued at any moment.
    const endpoints = await addEndpoints(drill, openDb(drill, databaseUrl), async () => {
      await Bun.sleep(ANSWERS_AFTER_MS);
      return 200;
    });
    const startBoth = async () => {
      const dispatcher = new DispatcherProcess(env);
      dispatcher.start();
      const api = await ApiProcess.start(env);
      const stop = async () => {
        api.signal("SIGTERM");
        await Promise.all([api.exited(), dispatcher.stop()]);
      };
      drill.atEnd(stop);
      return { api, stop };
    };
    const first = await startBoth();
    await page.run("backup");

    const load = startLoad(first.api, endpoints);
    await until("events before the moment", () => load.accepted.length >= EVENTS);
    await load.stop();
    const moment = new Date();
    await Bun.sleep(50);
    const later = startLoad(first.api, endpoints, { names: "later" });
    await until("events after the moment", () => later.accepted.length >= EVENTS);
    await later.stop();
    await first.stop();
    const delivered = new Set(endpoints.flatMap(({ receiver }) => receiver.eventIds));

    const told = await page.run("restore", { UNTIL: moment.toISOString().replace("Z", "+00") });
    expect(told).toContain(" entries wait, the oldest since ");
    const { api } = await startBoth();
    const db = openDb(drill, databaseUrl);
    await untilDelivered(db);
    const names = async () => {
      const rows = await db.sql<{ name: string }[]>`select external_review_id as name from reviews`;
      return rows.map(({ name }) => name).toSorted();
    };
    expect(await names()).toEqual(load.accepted.toSorted());
    const history = await db.sql<{ id: string }[]>`select event_id as id from review_history`;
    const arrived = new Set(endpoints.flatMap(({ receiver }) => receiver.eventIds));
    expect(history.filter(({ id }) => !arrived.has(id))).toEqual([]);
    // Events that were queued at the moment and delivered after it are delivered again, under the same id.
    const all = endpoints.flatMap(({ receiver }) => receiver.eventIds);
    expect(all.length).toBeGreaterThan(new Set(all).size);
    expect(delivered.size).toBeGreaterThan(0);

    const [{ provider, siteId }] = endpoints;
    for (const name of later.accepted)
      expect((await api.report(provider, [created(siteId, name)])).status).toBe(200);
    await untilDelivered(db);
    expect(await names()).toEqual([...load.accepted, ...later.accepted].toSorted());
  },
);

test.skipIf(lacks("bash", "postgresql", "psql"))(
  "a restore to a moment after the last commit ends with the reason, and one without a moment restores everything",
  async () => {
    const drill = begin();
    const page = await openPage(drill);
    await page.start();
    await page.run("archive");
    const databaseUrl = `postgres://postgres@127.0.0.1:${page.port}/reviewrelay`;
    await migrate(databaseUrl);
    await page.run("backup");
    await openDb(drill, databaseUrl).sql`insert into plans (name, features) values ('Last', '{}')`;

    const later = { UNTIL: "2100-01-01 00:00:00+00" };
    await expect(page.run("restore", later)).rejects.toThrow(
      "recovery ended before configured recovery target was reached",
    );
    await expect(page.run("restore", later)).rejects.toThrow("mv: ");
    const told = await page.run("retry restore");
    expect(told).toContain("0 entries wait, the oldest since -");
    const plans = await openDb(drill, databaseUrl).sql`select name from plans`;
    expect(plans.map(({ name }) => String(name))).toEqual(["Last"]);
  },
);

/** The number of events before and after the moment. */
const EVENTS = 400;
const ANSWERS_AFTER_MS = 5;
/** The user for PostgreSQL, which refuses to run as root. */
const NOBODY = 65_534;

/** Reads the page and returns functions that run its commands as the owner of the database. */
async function openPage({ folder, atEnd }: Drill) {
  const text = readFileSync(join(ROOT, "docs/operations/backup.md"), "utf8");
  const home = join(folder, "home");
  mkdirSync(home);
  const isRoot = process.getuid?.() === 0;
  if (isRoot) chownSync(home, NOBODY, NOBODY);
  const port = String(await freePort());
  const data = join(home, "data");
  const values = {
    PGPORT: port,
    BIN,
    DATA: data,
    ARCHIVE: join(home, "wal"),
    BASE: join(home, "base"),
  };
  const blockOf = (tag: string) =>
    [...text.matchAll(/^```sh (\w+) run .*\n([\s\S]*?)^```$/gm)].find(([, of]) => of === tag)?.[2];
  const given = Object.entries(values).reduce(
    (block, [name, value]) => block.replace(new RegExp(`\\b${name}=\\S+`), `${name}='${value}'`),
    blockOf("values") ?? "",
  );
  const shell = async (script: string, env: Readonly<Record<string, string>> = {}) => {
    // The output goes to a file, because a server that the script starts keeps its streams open.
    const path = join(folder, `shell-${performance.now()}.log`);
    const output = openSync(path, "a");
    const child = spawn("bash", ["--norc", "-eu", "-o", "pipefail", "-c", script], {
      ...(isRoot && { uid: NOBODY, gid: NOBODY }),
      cwd: home,
      env: { PATH: process.env["PATH"] ?? "", HOME: home, ...env },
      stdio: ["ignore", output, output],
    });
    const status = await new Promise((resolve) => child.once("exit", resolve));
    const told = readFileSync(path, "utf8");
    if (status !== 0) throw new Error(`${script}\n${told}`);
    return told;
  };
  return {
    port,
    async start() {
      await shell(
        `"${BIN}/initdb" -D "${data}" -U postgres -A trust --encoding UTF8 >/dev/null
         echo "port = ${port}
         listen_addresses = '127.0.0.1'
         unix_socket_directories = ''" >> "${data}/postgresql.conf"
         "${BIN}/pg_ctl" -D "${data}" -w -l "${data}.log" start`,
      );
      atEnd(() => shell(`"${BIN}/pg_ctl" -D "${data}" -w -m immediate stop || true`));
      await shell(`"${BIN}/createdb" -h 127.0.0.1 -p ${port} -U postgres reviewrelay`);
    },
    /** Runs the commands with these tags in one shell, with the values of this test. */
    run: (tags: string, env?: Readonly<Record<string, string>>) =>
      shell([given, ...tags.split(" ").map(blockOf)].join("\n"), env),
  };
}
