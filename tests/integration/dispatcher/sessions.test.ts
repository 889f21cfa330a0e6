// The number of PostgreSQL sessions of a dispatcher, by purpose.
import { afterEach, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { join } from "node:path";

import { poolsOf, sumOf } from "../../../db/pools.ts";
import { freePort } from "../../../scripts/demo/stores/keep.ts";
import { ROOT } from "../../../scripts/install/install.ts";
import { readConfig } from "../../../src/lib/config.ts";
import { createSecretBox } from "../../../src/lib/secrets.ts";
import { checkServer } from "../../../src/operate/doctor/database.ts";
import { SHARDS } from "../../../src/outbox/schedule.ts";
import { ApiProcess } from "../../support/processes/api-process.ts";
import { addSigningKeys } from "../../support/signing-keys.ts";
import { createTestSchedule } from "../../support/dispatch.ts";
import { DispatcherProcess } from "../../support/processes/dispatcher-process.ts";
import { createDatabase } from "../../support/postgres.ts";
import { until } from "../../support/network/receiver.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(() => createDatabase("sessions"));
const schedule = fixture(createTestSchedule);

test("the doctor and sizes.md count the sessions that an API and a dispatcher open", async () => {
  const env = { DATABASE_URL: database.url, REDIS_URL, MASTER_KEY };
  const config = readConfig(env);
  const { api, dispatcher, maintenance } = poolsOf(config.connections);
  await addSigningKeys(database.db, createSecretBox({ current: config.masterKey }), new Date());
  const process = await ApiProcess.start(env);
  running.push({ stop: async () => process.kill() });
  const { ready, ...sessions } = await sessionsOf(String(dispatcher.dispatcher));
  expect(ready).toBe(api.ready + dispatcher.ready);
  expect(sessions).toMatchObject({ renewals: dispatcher.renewals, leases: dispatcher.leases });
  const sizes: Partial<Record<string, number>> = { ...api, ...dispatcher };
  for (const [name, count] of Object.entries(sessions))
    expect([name, count <= (sizes[name] ?? 0)]).toEqual([name, true]);

  const { said } = await checkServer(database.db, config);
  const [ofApi, ofDispatcher, more] = [sumOf(api), sumOf(dispatcher), sumOf(maintenance)];
  expect(said).toContain(
    `an API uses ${ofApi}, a dispatcher ${ofDispatcher}, and ${more} more while it runs maintenance`,
  );
  const page = await Bun.file(join(ROOT, "docs/operations/sizes.md")).text();
  expect(page).toContain(`An API has at most ${ofApi}:`);
  expect(page).toContain(`A dispatcher has at most ${ofDispatcher}:`);
  expect(page).toContain(`A dispatcher that runs maintenance has ${more} more`);
  const { connections } = config;
  const ofAllApis = `API_CONNECTIONS + INTAKE_CONNECTIONS + ${ofApi - connections.api - connections.writerPool}`;
  const ofAllDispatchers = `DISPATCHER_CONNECTIONS + ${ofDispatcher - connections.dispatcher}`;
  expect(page).toContain(`APIs × (${ofAllApis}) + dispatchers × (${ofAllDispatchers}) +`);
  expect(sumOf(poolsOf({ ...connections, dispatcher: 1 }).dispatcher)).toBe(2);
});

const MASTER_KEY = randomBytes(32).toString("base64");
const REDIS_URL = process.env["TEST_REDIS_URL"] ?? "";

let running: Pick<DispatcherProcess, "stop">[] = [];

afterEach(async () => {
  await Promise.all(running.map((one) => one.stop()));
  running = [];
});

/** Starts a dispatcher that holds all shards and is ready; counts the sessions by name, without those of maintenance. */
async function sessionsOf(connections: string): Promise<Record<string, number>> {
  const port = await freePort();
  const one = new DispatcherProcess({
    DATABASE_URL: database.url,
    REDIS_URL,
    REDIS_PREFIX: schedule.prefix,
    MASTER_KEY,
    DISPATCHER_CONNECTIONS: connections,
    METRICS_PORT: String(port),
  });
  running.push(one);
  one.start();
  await until("it is ready", () =>
    fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    ),
  );
  await until("it has all shards", async () => {
    const held = await database.db.sql`select from shards where dispatcher_id is not null`;
    return held.length === SHARDS;
  });
  const rows = await database.db.sql<{ name: string; count: number }[]>`
    select substr(application_name, 13) as name, count(*)::int as count from pg_stat_activity
     where datname = current_database() and application_name like 'reviewrelay-%'
       and application_name not in ('reviewrelay-maintenance', 'reviewrelay-indexing')
     group by 1 order by 1`;
  return Object.fromEntries(rows.map(({ name, count }) => [name, count]));
}
