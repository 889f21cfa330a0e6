import { afterAll, beforeAll, expect, test } from "bun:test";

import { createLeases } from "../../dispatcher/shards/leases.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createLog } from "../../src/lib/log.ts";
import { createDatabase, type TestDatabase } from "../support/postgres.ts";

let database: TestDatabase;

beforeAll(async () => {
  database = await createDatabase();
});
afterAll(() => database.drop());

test("a release that is carried out late leaves alone what the same dispatcher has claimed again", async () => {
  const log = createLog({ level: "error", role: "dispatcher", clock: systemClock });
  const leases = createLeases(database.db, log);
  await leases.join("one");
  const { owned } = await leases.renew("one", false);
  const released = new Map([...owned].slice(0, 10));
  await leases.release("one", released);
  const { owned: ownedAgain } = await leases.renew("one", false);
  expect(ownedAgain.size).toBe(64);

  await leases.release("one", released);

  const holders = await database.db.sql<{ holder: string; shards: number }[]>`
    select dispatcher_id as holder, count(*) as shards from shards group by 1`;
  expect([...holders]).toEqual([{ holder: "one", shards: 64 }]);
  await leases.release("one", ownedAgain);
  const [free] = await database.db.sql<{ shards: number }[]>`
    select count(*) as shards from shards where dispatcher_id is null`;
  expect(free?.shards).toBe(64);
});
