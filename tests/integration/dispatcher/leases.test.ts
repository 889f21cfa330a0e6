import { beforeEach, expect, test } from "bun:test";

import { createLeases } from "../../../dispatcher/shards/lease-queries.ts";
import { createDatabase } from "../../support/postgres.ts";
import { untilSomebodyWaits } from "../../support/auth-races.ts";
import { holding } from "../../support/holding.ts";
import { fixture, lazy } from "../../support/fixture.ts";

const database = fixture(createDatabase);
const db = lazy(() => database.db);
const leases = fixture(() => createLeases(database.connect(), database.connect()));

test("a late release does not free shards that the same dispatcher has claimed again", async () => {
  const owned = await holds("one");
  const released = new Map([...owned].slice(0, 10));
  await leases.release("one", released);
  const { owned: ownedAgain } = await leases.assign("one");
  expect(ownedAgain.size).toBe(64);

  await leases.release("one", released);

  expect(await counts()).toEqual([{ holder: "one", unclean: false, shards: 64 }]);
  await leases.release("one", ownedAgain);
  expect(await counts()).toEqual([{ holder: null, unclean: false, shards: 64 }]);
});

test("a release marks exactly the shards as unclean whose claims are", async () => {
  const owned = await holds("one");
  const claims = new Map(
    [...owned].map(([shard, claim]) => [shard, { ...claim, unclean: shard % 4 === 0 }]),
  );
  await leases.release("one", claims);
  expect(await counts()).toEqual([
    { holder: null, unclean: false, shards: 48 },
    { holder: null, unclean: true, shards: 16 },
  ]);
});

test("a lease that was renewed after it was read does not expire", async () => {
  await holds("one");
  const read = await heartbeatOf("one");
  await leases.renew("one");
  expect(await leases.expire(read)).toBeUndefined();
  expect(await counts()).toEqual([{ holder: "one", unclean: false, shards: 64 }]);
});

test("expiring a lease waits for a commit of the dead dispatcher, and delays no other dispatcher", async () => {
  await holds("dead");
  await leases.join("living");
  const dead = await heartbeatOf("dead");
  const commit = await holding(
    db,
    ({ sql }) => sql`select from dispatchers where id = 'dead' for key share`,
  );
  let isExpired = false;
  const expiry = leases.expire(dead).then((shards) => {
    isExpired = true;
    return shards;
  });
  await untilSomebodyWaits(db);
  expect(await leases.renew("living")).toBeDefined();
  expect((await leases.assign("living")).owned.size).toBe(0);
  expect(isExpired).toBe(false);
  await commit();
  expect(await expiry).toBe(64);
  // Another dispatcher that saw the same heartbeat comes too late.
  expect(await leases.expire(dead)).toBeUndefined();
  expect((await leases.assign("living")).owned.size).toBe(64);
  expect(await counts()).toEqual([{ holder: "living", unclean: true, shards: 64 }]);
});

test("a claim is answered again if its response was lost, with shards still marked as uncleanly released", async () => {
  await holds("dead");
  await leases.expire(await heartbeatOf("dead"));
  await leases.join("survivor");
  // The test ignores this response, as if it were lost.
  await leases.assign("survivor");
  const { owned } = await leases.assign("survivor");
  expect(owned.size).toBe(64);
  expect([...owned.values()].every((claim) => claim.unclean)).toBe(true);
});

test("a dispatcher that leaves before it took its unclean shards in leaves them unclean", async () => {
  await holds("dead");
  await leases.expire(await heartbeatOf("dead"));
  await holds("survivor");
  await leases.leave("survivor", new Map());
  expect(await counts()).toEqual([{ holder: null, unclean: true, shards: 64 }]);
});

test("a renewal moves the heartbeat on although the clock of PostgreSQL has stepped back", async () => {
  await leases.join("one");
  await db.sql`update dispatchers set renewed_at = now() + interval '1 hour'`;
  const before = await heartbeatOf("one");
  await leases.renew("one");
  await leases.renew("one");
  const { renewedAt } = await heartbeatOf("one");
  expect(renewedAt.getTime() - before.renewedAt.getTime()).toBe(2);
});

test("a renewal tells whether the dispatcher is the only one and holds every shard", async () => {
  const isAlone = async () => (await leases.renew("one"))?.isAlone;
  await leases.join("one");
  expect(await isAlone()).toBe(false);
  await leases.assign("one");
  expect(await isAlone()).toBe(true);
  await leases.join("two");
  expect(await isAlone()).toBe(false);
  await leases.assign("two");
  await leases.leave("two", new Map());
  expect(await isAlone()).toBe(true);
  await db.sql`update shards set dispatcher_id = null where id = 7`;
  expect(await isAlone()).toBe(false);
});

test("a renewal answers PostgreSQL's time, or undefined after the lease has expired", async () => {
  await leases.join("one");
  const [row] = await db.sql<{ now: Date }[]>`select now()`;
  const renewed = await leases.renew("one");
  expect(Math.abs((renewed?.now.getTime() ?? 0) - (row?.now.getTime() ?? 0))).toBeLessThan(60_000);
  await leases.expire(await heartbeatOf("one"));
  expect(await leases.renew("one")).toBeUndefined();
});

beforeEach(async () => {
  await db.sql`delete from dispatchers`;
  await db.sql`update shards set unclean = false`;
});

async function holds(id: string) {
  await leases.join(id);
  return (await leases.assign(id)).owned;
}

async function heartbeatOf(id: string) {
  const found = (await leases.heartbeats()).find((row) => row.id === id);
  if (found === undefined) throw new Error(`${id} is not there.`);
  return found;
}

async function counts() {
  const rows = await db.sql<{ holder: string | null; unclean: boolean; shards: number }[]>`
    select dispatcher_id as holder, unclean, count(*) as shards from shards group by 1, 2 order by 1, 2`;
  return [...rows];
}
