// The number of PostgreSQL sessions of a dispatcher, by purpose.
import { afterEach, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";

import { freePort } from "../../../scripts/demo/stores/keep.ts";
import { createTestSchedule } from "../../support/dispatch.ts";
import { DispatcherProcess } from "../../support/processes/dispatcher-process.ts";
import { createDatabase } from "../../support/postgres.ts";
import { until } from "../../support/network/receiver.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);
const schedule = fixture(createTestSchedule);

test("a dispatcher with one connection has two sessions: one for lease renewals and one for the rest", async () => {
  expect(await sessionsOfTwo("1")).toEqual({ dispatcher: 2, renewals: 2 });
});

test("a dispatcher with two or more connections has separate sessions for leases and readiness", async () => {
  const sessions = await sessionsOfTwo("2");
  expect(sessions).toMatchObject({ leases: 2, ready: 2, renewals: 2 });
  expect(sessions["dispatcher"]).toBeLessThanOrEqual(4);
});

const MASTER_KEY = randomBytes(32).toString("base64");

let running: DispatcherProcess[] = [];

afterEach(async () => {
  await Promise.all(running.map((one) => one.stop()));
  running = [];
});

/** Starts two dispatchers and checks their readiness; counts their sessions by name, without those of maintenance. */
async function sessionsOfTwo(connections: string): Promise<Record<string, number>> {
  const env = {
    DATABASE_URL: database.url,
    REDIS_URL: process.env["TEST_REDIS_URL"] ?? "",
    REDIS_PREFIX: schedule.prefix,
    MASTER_KEY,
    DISPATCHER_CONNECTIONS: connections,
  };
  const ports = await Promise.all([freePort(), freePort()]);
  for (const port of ports) {
    const one = new DispatcherProcess({ ...env, METRICS_PORT: String(port) });
    running.push(one);
    one.start();
  }
  const isReady = (port: number) =>
    fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until("both are ready", async () => (await Promise.all(ports.map(isReady))).every(Boolean));
  await until("both have their share", async () => {
    const held = await database.db.sql<{ shards: number }[]>`
      select count(*)::int as shards from shards where dispatcher_id is not null group by dispatcher_id`;
    return held.length === 2 && held.every(({ shards }) => shards === 32);
  });
  const rows = await database.db.sql<{ name: string; count: number }[]>`
    select substr(application_name, 13) as name, count(*)::int as count from pg_stat_activity
     where datname = current_database() and application_name like 'reviewrelay-%'
       and application_name not in ('reviewrelay-maintenance', 'reviewrelay-indexing')
     group by 1 order by 1`;
  return Object.fromEntries(rows.map(({ name, count }) => [name, count]));
}
