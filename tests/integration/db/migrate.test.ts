import { beforeAll, expect, test } from "bun:test";

import { isLockTimeout } from "../../../db/errors.ts";
import { withPatience } from "../../../db/migrate.ts";
import { createDatabase } from "../../support/postgres.ts";
import { until } from "../../support/network/receiver.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);

test("a schema change that waits for a reader lets writers run meanwhile, and succeeds after it", async () => {
  let change: Promise<unknown> | undefined;
  await whileRead(async () => {
    change = alter("patient");
    // Each insert queues behind the change, and runs although the reader stays.
    for (let i = 0; i < 2; i++) {
      await until("the change waits", isWaiting);
      await database.db.sql`insert into changed default values`;
    }
  });
  await change;
  const [row] = await database.db.sql<{ n: number }[]>`
    select count(*) as n from changed where patient is null`;
  expect(row?.n).toBe(2);
});

test("a schema change whose lock is never free fails at last and changes nothing", async () => {
  await whileRead(async () => {
    const error: unknown = await alter("impatient", 1).catch((reason: unknown) => reason);
    expect(isLockTimeout(error)).toBe(true);
  });
  const columns = await database.db.sql`
    select from information_schema.columns where column_name = 'impatient'`;
  expect(columns).toHaveLength(0);
});

beforeAll(async () => {
  await database.db.sql`create table changed (id int generated always as identity)`;
});

/** Reads the table in a transaction that stays open, as a dump does. */
async function whileRead(work: () => Promise<void>): Promise<void> {
  await database.connect().transaction(async (tx) => {
    await tx.sql`select from changed`;
    await work();
  });
}

const isWaiting = async () => {
  const rows = await database.db.sql`
    select from pg_stat_activity
     where query like 'alter table changed%' and wait_event_type = 'Lock'
       and datname = current_database()`;
  return rows.length > 0;
};

const alter = (name: string, patienceMs?: number) =>
  withPatience(
    database.connect(),
    (tx) => tx.sql.unsafe(`alter table changed add column ${name} int`),
    patienceMs,
  );
