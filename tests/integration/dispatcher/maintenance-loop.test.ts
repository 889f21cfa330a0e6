// The maintenance loop and its table of jobs, with several competing processes.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";

import { connect, type RawDb } from "../../../db/client.ts";
import { ensurePartitions } from "../../../db/partitions.ts";
import type { Done, Job } from "../../../dispatcher/maintenance/loop.ts";
import { checkRights } from "../../../src/operate/doctor/database.ts";
import { createSecretBox } from "../../../src/lib/secrets.ts";
import { setAlerts } from "../../support/alerts.ts";
import { createTestSchedule } from "../../support/dispatch.ts";
import { DispatcherProcess } from "../../support/processes/dispatcher-process.ts";
import { holding } from "../../support/holding.ts";
import { endLeases, hourly, maintenanceOf, tickOnce } from "../../support/maintenance.ts";
import { partitions } from "../../support/partitions.ts";
import { insertSubscription, insertTenant } from "../../support/outbox.ts";
import { createDatabase, type TestDatabase } from "../../support/postgres.ts";
import { Receiver, until } from "../../support/network/receiver.ts";

describe("a job", () => {
  test("that is due is run once, although several processes compete for it", async () => {
    const names = ["one", "two", "three"];
    for (const name of names) await addRow(name);
    const walks = names.map((name) => walk(name, 3));
    const jobs = walks.map(({ job }) => job);
    await Promise.all(Array.from({ length: 8 }, () => tickOnce({ db: database.connect(), jobs })));
    expect(walks.map(({ seen }) => seen)).toEqual([
      [1, 2, 3],
      [1, 2, 3],
      [1, 2, 3],
    ]);
    expect(await rowOf("one")).toMatchObject({
      rows: 3,
      succeeded: true,
      isFree: true,
      pauseS: 3_600,
    });
  });

  test("that fails is retried with growing pauses, records its error, and does not block other jobs", async () => {
    for (const name of ["bad", "good"]) await addRow(name);
    const good = walk("good", 2);
    const bad = walk("bad", 1, { run: () => db.sql`select 1 / 0`.then(() => ({ rows: 0 })) });
    const pauses: number[] = [];
    for (let n = 0; n < 4; n++) {
      await makeDue("bad");
      const jobs = [bad.job, good.job];
      await tickOnce({ db, jobs });
      pauses.push((await rowOf("bad")).pauseS);
    }
    expect(pauses).toEqual([15, 30, 60, 120]);
    expect(await rowOf("bad")).toMatchObject({
      failures: 4,
      error: "22012: division by zero",
      succeeded: false,
    });
    expect(good.seen).toEqual([1, 2]);
    expect(await rowOf("good")).toMatchObject({ rows: 2, failures: 0, succeeded: true });
    const mended = walk("bad", 1);
    await makeDue("bad");
    await tickOnce({ db, jobs: [mended.job] });
    expect(await rowOf("bad")).toMatchObject({ failures: 0, error: null, succeeded: true });
  });

  test("saves its progress, and continues there in another process after its lease has expired", async () => {
    await addRow("long");
    const { promise: stuck, resolve: markBlocked } = Promise.withResolvers<void>();
    const hanging = walk("long", 9, {
      async run({ reached }) {
        if (reached === "4") {
          markBlocked();
          await new Promise(() => {});
        }
        return { rows: 10, next: String(Number(reached) + 1) };
      },
    });
    const lost = maintenanceOf({ db, jobs: [hanging.job] });
    await lost.tick();
    await stuck;
    expect(await rowOf("long")).toMatchObject({ rows: 40, reached: "4", isFree: false });
    const next = walk("long", 6);
    await tickOnce({ db: database.connect(), jobs: [next.job] });
    expect(next.seen).toEqual([]);
    await makeDue("long");
    await tickOnce({ db: database.connect(), jobs: [next.job] });
    expect(next.seen).toEqual([5, 6]);
    expect(await rowOf("long")).toMatchObject({ rows: 42, reached: null, isFree: true });
  });

  test("ends in a process that has lost its lease, without overwriting the progress of the new holder", async () => {
    await addRow("stolen");
    const slow = walk("stolen", 5, {
      async run({ reached }) {
        if (reached === "1")
          await db.sql`update maintenance_jobs set holder = 'other' where name = 'stolen'`;
        return { rows: 1, next: String(Number(reached) + 1) };
      },
    });
    await tickOnce({ db, jobs: [slow.job] });
    expect(await rowOf("stolen")).toMatchObject({ rows: 1, reached: "1", isFree: false });
  });

  test("keeps its lease as long as its process ticks before the lease expires", async () => {
    await addRow("slow");
    const { promise: go, resolve: release } = Promise.withResolvers<void>();
    const slow = walk("slow", 1, { run: () => go.then(() => ({ rows: 1 })) });
    const own = maintenanceOf({ db, jobs: [slow.job] });
    await own.tick();
    await db.sql`update maintenance_jobs set leased_until = now() + interval '1 second' where name = 'slow'`;
    await own.tick();
    const [left] = await db.sql<{ s: number }[]>`
      select extract(epoch from leased_until - now())::float8 as s from maintenance_jobs where name = 'slow'`;
    expect(left?.s).toBeGreaterThan(10);
    release();
    await own.idle();
    expect((await rowOf("slow")).succeeded).toBe(true);
  });

  test("of a process that stops can be continued by another at once", async () => {
    await addRow("left");
    const stop = new AbortController();
    const first = walk("left", 4, {
      async run({ reached }) {
        stop.abort();
        return { rows: 1, next: String(Number(reached) + 1) };
      },
    });
    const own = maintenanceOf({ db, jobs: [first.job] }, stop.signal);
    await own.tick();
    await own.idle();
    const next = walk("left", 4);
    await tickOnce({ db: database.connect(), jobs: [next.job] });
    expect(next.seen).toEqual([2, 3, 4]);
  });
});

test("the job of history starts half an hour after the jobs that remove references to it", async () => {
  const jobs = hourly({ db, historyRetentionDays: 60 });
  const began = async (name: string) =>
    (await db.sql`select from maintenance_jobs where name = ${name} and began_at is not null`)
      .length;
  await tickOnce({ db, jobs });
  expect([await began("attempts"), await began("history")]).toEqual([1, 0]);
  await db.sql`update maintenance_jobs set began_at = began_at - interval '29 minutes'`;
  await tickOnce({ db, jobs });
  expect(await began("history")).toBe(0);
  await db.sql`update maintenance_jobs set began_at = began_at - interval '2 minutes'`;
  await tickOnce({ db, jobs });
  expect(await began("history")).toBe(1);
});

test("only one partition is dropped per hour, also if the run fails after the drop", async () => {
  await ensurePartitions(db, new Date("2020-01-01T12:00:00Z"));
  const [attempts] = hourly({ db }).filter(({ name }) => name === "attempts");
  if (attempts === undefined) throw new Error("There is no such job.");
  await db.sql`update maintenance_jobs set began_at = now() - interval '1 hour' where name = 'attempts'`;
  const before = (await partitions(db)).length;
  const failing: Job = {
    ...attempts,
    run: (at) => attempts.run(at).then(() => Promise.reject(new Error("lost"))),
  };
  await tickOnce({ db, jobs: [failing] });
  expect(await rowOf("attempts")).toMatchObject({ failures: 1, pauseS: 3_600 });
  for (let n = 0; n < 2; n++) await tickOnce({ db, jobs: [attempts] });
  expect(await partitions(db)).toHaveLength(before - 1);
});

test("a job without a connection of its own delays no other job while it waits", async () => {
  const { promise: answered, resolve: answer } = Promise.withResolvers<Done>();
  const job = (name: string, run: Job["run"]): Job => ({ name, paceS: 60, run });
  const ran: string[] = [];
  const waiting = job("audit_webhook", () => answered);
  const other = { ...job("stats", async () => (ran.push("stats"), { rows: 0 })), db };
  await db.sql`
    update maintenance_jobs set next_at = now() - interval '1 second', holder = null, leased_until = null
     where name in ('audit_webhook', 'stats')`;
  const maintenance = maintenanceOf({ db, jobs: [waiting, other] });
  await maintenance.tick();
  await until("the other job has run", () => ran.length === 1);
  answer({ rows: 1 });
  await maintenance.idle();
});

test("migrations insert a row for each job", async () => {
  const rows = await db.sql<{ name: string }[]>`select name from maintenance_jobs order by name`;
  const names = hourly({
    db,
    auditRetentionDays: 1,
    signInRetentionDays: 1,
    historyRetentionDays: 31,
  }).map(({ name }) => name);
  const others = [
    "alerts",
    "audit_webhook",
    "checks",
    "credentials",
    "deletions",
    "due_times",
    "emails",
    "erasures",
    "lost_sessions",
  ];
  expect(rows.map(({ name }) => name)).toEqual(
    [...names, ...others, "provider_secrets", "stats"].toSorted(),
  );
});

describe("dispatchers", () => {
  let schedule: Awaited<ReturnType<typeof createTestSchedule>>;
  let running: DispatcherProcess[] = [];
  beforeAll(async () => {
    schedule = await createTestSchedule();
  });
  afterEach(async () => {
    await Promise.all(running.map((one) => one.kill()));
    running = [];
  });
  afterAll(() => schedule.close());
  const start = (env: Record<string, string> = {}) => {
    const one = new DispatcherProcess({
      DATABASE_URL: database.url,
      REDIS_URL: process.env["TEST_REDIS_URL"] ?? "",
      REDIS_PREFIX: schedule.prefix,
      MASTER_KEY: randomBytes(32).toString("base64"),
      ...env,
    });
    running.push(one);
    one.start();
    return one;
  };
  const succeeded = async (name: string) => (await rowOf(name)).succeeded;

  test("take over a job whose dispatcher was killed during a run", async () => {
    // A lock on the table of the job keeps the dispatcher inside its statement.
    await db.sql`
      update maintenance_jobs set began_at = now() - interval '1 hour', next_at = now() - interval '1 second'`;
    const key = randomBytes(32).toString("base64");
    const release = await holding(
      database.connect(),
      ({ sql }) => sql`lock table incidents in access exclusive mode`,
    );
    const first = start({ MASTER_KEY: key });
    await until("the first one runs it", async () => !(await rowOf("incidents")).isFree);
    await first.kill();
    await release();
    await endLeases(db);
    start({ MASTER_KEY: key });
    await until("the second one has run it", () => succeeded("incidents"));
    expect(await rowOf("incidents")).toMatchObject({ isFree: true, failures: 0 });
  });

  test("run the jobs, and post alerts with the client and the retry delays of the process", async () => {
    const key = randomBytes(32);
    const hooks = await failingWithAlerts(key);
    await db.sql`
      update maintenance_jobs set began_at = now() - interval '1 hour', next_at = now() - interval '1 second'`;
    start({ MASTER_KEY: key.toString("base64") });
    try {
      await until("the POST of an alert", () => hooks.received.length > 0);
      expect(hooks.received[0]?.headers["x-svc-event"]).toBe("webhook.alert");
      const names = ["attempts", "default_partitions", "mails", "partitions", "day_indexes"];
      await until("the jobs have run", async () =>
        (await Promise.all([...names, "stats", "credentials"].map(succeeded))).every(Boolean),
      );
      expect(await db.sql`select from maintenance_jobs where failures > 0`).toHaveLength(0);
    } finally {
      await hooks.stop();
    }
  });
});

test("the doctor refuses the role of maintenance if it may create no tables, or is of another database", async () => {
  const role = `plain_${crypto.randomUUID().slice(0, 8)}`;
  await db.sql.unsafe(`create role ${role} login password '${role}'`);
  const url = Object.assign(new URL(database.url), { username: role, password: role });
  const plain = connect(url.href, { max: 1, name: "test" });
  const elsewhere = await createDatabase();
  const kindOf = async (of: RawDb) => (await checkRights(of, plain)).kind;
  try {
    expect([await kindOf(plain), await kindOf(db), await kindOf(elsewhere.db)]).toEqual([
      "fault",
      "ok",
      "fault",
    ]);
  } finally {
    await Promise.all([plain.close(), elsewhere.drop()]);
    await db.sql.unsafe(`drop role ${role}`);
  }
});

let database: TestDatabase;
let db: RawDb;

const rowOf = async (name: string) => {
  const [row] = await db.sql<
    {
      rows: number;
      reached: string | null;
      failures: number;
      error: string | null;
      succeeded: boolean;
      isFree: boolean;
      pauseS: number;
    }[]
  >`
    select rows, reached, failures, last_error as error, succeeded_at is not null as succeeded, holder is null as "isFree",
           -- Rounded to a quarter of a minute, because the run before the pause takes longer on a busy machine.
           (15 * round(extract(epoch from next_at - began_at) / 15))::int as "pauseS"
      from maintenance_jobs where name = ${name}`;
  if (row === undefined) throw new Error(`There is no job ${name}.`);
  return row;
};

beforeEach(async () => {
  database = await createDatabase("roles");
  db = database.db;
});

afterEach(() => database.drop());

const addRow = (name: string) =>
  db.sql`insert into maintenance_jobs (name, next_at) values (${name}, now() - interval '1 second')`;

/** Adds a subscription with five failures, and a receiver of the alerts of its partner. */
async function failingWithAlerts(key: Buffer): Promise<Receiver> {
  const hooks = await Receiver.start();
  const box = createSecretBox({ current: key });
  const { partnerId } = await insertTenant(db);
  await insertSubscription({ db, box }, { partnerId, url: hooks.url, failures: 5 });
  await setAlerts({ db, box }, partnerId, { url: hooks.url });
  return hooks;
}

const makeDue = (name: string) =>
  db.sql`
  update maintenance_jobs set next_at = now() - interval '1 second', leased_until = now() - interval '1 second'
   where name = ${name} and holder is not null`.then(
    () =>
      db.sql`update maintenance_jobs set next_at = now() - interval '1 second' where name = ${name}`,
  );

/** Builds a job that handles one row per chunk, from 1 to `last`. */
function walk(name: string, last: number, more: Partial<Job> = {}) {
  const seen: number[] = [];
  const job: Job = {
    name,
    paceS: 3_600,
    db,
    async run({ reached }) {
      const at = Number(reached) + 1;
      seen.push(at);
      return { rows: 1, next: at < last ? String(at) : undefined };
    },
    ...more,
  };
  return { job, seen };
}
