import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";

import { connect, type RawDb } from "../../../db/client.ts";
import { LIMITS } from "../../../db/limits.ts";
import { endLostSessions } from "../../../dispatcher/maintenance/queries.ts";
import { createDatabase } from "../../support/postgres.ts";
import { until } from "../../support/network/receiver.ts";
import { proxyBefore, type TcpProxy } from "../../support/network/tcp-proxy.ts";
import { fixture } from "../../support/fixture.ts";

// A client disappears between two messages of one request, behind a proxy that keeps the connection open. PostgreSQL
// waits for the rest of the request. Neither statement_timeout nor idle_in_transaction_session_timeout ends that wait.

const database = fixture(createDatabase);

test("a lost session outlives all timeouts of the server, and ends only after the given time in `endLostSessions`", async () => {
  await loseSession("reviewrelay-dispatcher");
  const { idleMs, statementMs } = LIMITS.leases;
  await until("all limits have passed", async () => {
    const [session] = await waiting("reviewrelay-dispatcher");
    return (session?.since ?? 0) * 1_000 > Math.max(idleMs, statementMs);
  });
  expect(await isFree()).toBe(false);
  expect(await endLostSessions(db, 60)).toEqual([]);
  const [ended] = await endLostSessions(db, 1);
  expect(ended).toMatchObject({
    session: expect.stringMatching(/^reviewrelay-dispatcher \d+$/),
    isEnded: true,
  });
  await until("the row is free", isFree);
});

test("a long statement, an idle session and the session of another program are not ended", async () => {
  await loseSession("pg_restore");
  const idle = connect(database.url, { max: 1, name: "reviewrelay-idle" });
  await idle.sql`select 1`;
  const long = connect(database.url, { max: 1, name: "reviewrelay-long" });
  const slept = long.sql`select pg_sleep(1.5)`;
  await Bun.sleep(1_100);
  expect(await endLostSessions(db, 1)).toEqual([]);
  await slept;
  await idle.sql`select 1`;
  await Promise.all([idle.close(), long.close()]);
  await db.sql`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'pg_restore'`;
});

const DEAD = "01JD0000000000000000000000";

let db: RawDb;

let network: TcpProxy;

let lost: RawDb | undefined;

beforeAll(async () => {
  ({ db } = database);
  network = await proxyBefore(database.url);
});

afterAll(async () => {
  network.stop();
});

beforeEach(async () => {
  await db.sql`delete from dispatchers`;
});

/** Lets a lost session with this application name lock the lease of a dead dispatcher, which has all shards. */
async function loseSession(name: string): Promise<void> {
  await db.sql`insert into dispatchers (id, started_at, renewed_at) values (${DEAD}, now(), now())`;
  await db.sql`update shards set dispatcher_id = ${DEAD}`;
  lost = connect(network.in(database.url), { max: 1, name, limits: LIMITS.leases });
  const { sql } = lost;
  const renew = () => sql`update dispatchers set renewed_at = now() where id = ${DEAD}`;
  await renew();
  network.freezeBeforeSync();
  void renew().catch(() => undefined);
  await until("the rest of the request is missing", async () => (await waiting(name)).length === 1);
}

const waiting = (name: string) => db.sql<{ since: number }[]>`
  select extract(epoch from clock_timestamp() - state_change)::float8 as since from pg_stat_activity
   where application_name = ${name} and state = 'active' and wait_event = 'ClientRead'`;

/** Tells whether the lease row of the dead dispatcher can be locked within the time limits of lease statements. */
async function isFree(): Promise<boolean> {
  const other = connect(database.url, { max: 1, name: "other", limits: LIMITS.leases });
  try {
    await other.sql`select id from dispatchers for update`;
    return true;
  } catch {
    return false;
  } finally {
    await other.close();
  }
}
