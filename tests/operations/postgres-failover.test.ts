// Proves docs/operations/recovery.md, "Failover".
import { expect, test } from "bun:test";
import {
  appendFileSync,
  chownSync,
  cpSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";

import { freePort } from "../../scripts/demo/stores/keep.ts";
import { migrate } from "../../db/migrate.ts";
import { startEmbeddedPostgres } from "../../scripts/demo/stores/embedded-postgres.ts";
import { installPostgres, postgresMajor } from "../../scripts/demo/stores/postgres-versions.ts";
import { processesIn, signal } from "../../scripts/demo/stores/processes.ts";
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
} from "../shipping/drill.ts";

const begin = drills();

test("a synchronous standby that is promoted after the primary was killed under load loses no accepted event", async () => {
  const drill = begin();
  const { databaseUrl, killPrimary, promote } = await startPair(drill);
  await migrate(databaseUrl);
  const db = openDb(drill, databaseUrl);
  const endpoints = await addEndpoints(drill, db);
  const { redisUrl } = await startDurableStores(drill, { postgres: false });
  const env = settingsOf(drill, { databaseUrl, redisUrl });
  const dispatcher = new DispatcherProcess(env);
  dispatcher.start();
  drill.atEnd(() => dispatcher.stop());
  const api = await ApiProcess.start(env);
  drill.atEnd(() => api.kill());

  const load = startLoad(api, endpoints);
  await until("events before the failover", () => load.accepted.length >= EVENTS);
  killPrimary();
  await Bun.sleep(NOTICED_MS);
  const before = load.accepted.length;
  promote();
  await until("events after the failover", () => load.accepted.length >= before + EVENTS);
  await load.stop();
  expect(load.accepted.length).toBeGreaterThan(before);
  await expectAllInOrder(db, endpoints, load.accepted);
});

/** The number of events before and after the failover. */
const EVENTS = 500;
/** The time in milliseconds that a monitor usually needs to notice that the primary is down. */
const NOTICED_MS = 2_000;
const STANDBY = "standby";

/** Starts a primary with a synchronous standby, of the major version `TEST_POSTGRES`. */
async function startPair({ folder, atEnd }: Drill) {
  const native = installPostgres(postgresMajor(process.env["TEST_POSTGRES"]));
  const log = openSync(join(folder, "postgres.log"), "a");
  const start = async (name: string, port: number) => {
    const at = { folder: join(folder, name), port, durable: true, native, log };
    const server = await startEmbeddedPostgres(at);
    atEnd(() => server.stop());
    return server;
  };
  const ports = [await freePort(), await freePort()] as const;
  // The standby is a copy of the primary from before its first start.
  await (await start("primary", ports[0])).stop();
  const from = realpathSync(join(folder, "primary"));
  const to = join(folder, STANDBY);
  cpSync(from, to, { recursive: true, verbatimSymlinks: true });
  const password = readFileSync(join(to, "password"), "utf8");
  const source = `host=127.0.0.1 port=${ports[0]} user=postgres password=${password} application_name=${STANDBY}`;
  const data = join(to, "data");
  writeFileSync(join(data, "standby.signal"), "");
  appendFileSync(join(data, "postgresql.auto.conf"), `primary_conninfo = '${source}'\n`);
  const { uid, gid } = statSync(join(from, "data"));
  for (const entry of ["", ...readdirSync(to, { encoding: "utf8", recursive: true })])
    chownSync(join(to, entry), uid, gid);

  const primary = await start("primary", ports[0]);
  await start(STANDBY, ports[1]);
  const db = openDb({ folder, masterKey: Buffer.alloc(0), atEnd }, primary.url);
  await db.sql.unsafe(`alter system set synchronous_standby_names = '${STANDBY}'`);
  await db.sql`select pg_reload_conf()`;
  await until("a synchronous standby", async () => {
    const rows = await db.sql`select from pg_stat_replication where sync_state = 'sync'`;
    return rows.length > 0;
  });
  const hosts = ports.map((port) => `127.0.0.1:${port}`).join(",");
  return {
    databaseUrl: `postgres://postgres:${password}@${hosts}/postgres`,
    killPrimary() {
      for (const pid of processesIn(join(from, "data"))) signal(pid, "SIGKILL");
    },
    /** Promotes the standby like `pg_ctl promote`, which some packages of the server lack. */
    promote() {
      writeFileSync(join(data, "promote"), "");
      const [pid] = readFileSync(join(data, "postmaster.pid"), "utf8").split("\n");
      signal(Number(pid), "SIGUSR1");
    },
  };
}
