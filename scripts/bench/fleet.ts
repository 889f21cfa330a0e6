// `bun run bench fleet`: many lightly loaded dispatchers and APIs on one database and one machine. It measures their
// database sessions, their cost when idle and under load, the distribution of the load, and how soon the shards of a
// killed dispatcher deliver again.
//
//   --dispatchers N (64)   --apis N (16)   --rate N events a second (500)   --seconds N (20)   --kills N (3)
//   --direct: no pooler before the database, even if PgBouncer is installed
import { parseArgs } from "node:util";

import type { RawDb } from "../../db/client.ts";
import { SHARDS } from "../../src/outbox/schedule.ts";
import type { Running } from "../proof/product.ts";
import { unsettled } from "./events.ts";
import { quantile, round } from "./figures.ts";
import { type Fleet, type Load, openLoad, startFleet } from "./fleet-processes.ts";
import {
  cpuMs,
  hostsOf,
  memoryOf,
  subscribe,
  until,
  writeResult,
  type BenchSubscription,
} from "./rig.ts";

const { values } = parseArgs({
  args: process.argv.slice(2),
  options: {
    dispatchers: { type: "string", default: "64" },
    apis: { type: "string", default: "16" },
    rate: { type: "string", default: "500" },
    seconds: { type: "string", default: "20" },
    kills: { type: "string", default: "3" },
    direct: { type: "boolean", default: false },
  },
});
const COUNT = Number(values.dispatchers);
const RATE = Number(values.rate);
const SECONDS = Number(values.seconds);
/** Subscriptions per shard. */
const SUBSCRIPTIONS = 10;
const HOSTS = 100;
const SETTLE_MS = 10_000;
/** A takeover that takes longer counts as failed. */
const MOST_MS = 60_000;
const TOP = 10;

const say = (text: string) => console.log(text);
say("Starting stores …");
const fleet = await startFleet(values.direct);
try {
  await measure(fleet);
} finally {
  await fleet.stop();
}
process.exit(0);

async function measure({ db, sink, key }: Fleet): Promise<void> {
  const hosts = hostsOf(sink.port, HOSTS);
  const urls = Array.from({ length: SUBSCRIPTIONS * SHARDS }, (_, n) => hosts[n % HOSTS] ?? "");
  const subscriptions = await subscribe(db, key, urls);
  say(`Starting ${COUNT} dispatchers and ${values.apis} APIs …`);
  const dispatchers = await fleet.start("dispatcher", COUNT);
  const apis = await fleet.start("api", Number(values.apis));
  const all = [...dispatchers, ...apis];
  await until("equal shares", async () => {
    const { least, most, idle } = await sharesOf(db);
    return idle === 0 && most - least <= 1;
  });
  await Bun.sleep(SETTLE_MS);
  say("Idle …");
  const idle = await during(db, all, () => Bun.sleep(SECONDS * 1_000));
  const sessions = sessionsNow(dispatchers, apis);
  const onServer = await serverSessions(db);
  const shares = await sharesOf(db);
  say(`${RATE} events a second …`);
  const load = await openLoad(fleet, subscriptions);
  const loaded = await during(db, all, () => load.run(RATE, SECONDS * 1_000));
  await until("an empty outbox", async () => (await unsettled(db)) === 0);
  const delays = await load.delays();
  const byLoad = await loadShares(db);
  const sessionsLoaded = sessionsNow(dispatchers, apis);
  const takeovers = await killSome(dispatchers, load, subscriptions);
  const result = {
    pooler: fleet.before,
    dispatchers: COUNT,
    apis: apis.length,
    sessions,
    sessions_under_load: sessionsLoaded,
    sessions_of_the_server: onServer,
    shards_each: shares,
    deliveries_each: byLoad,
    commit_to_receipt_ms: delays,
    takeover_s: takeovers,
    mib_each: Math.round(
      quantile(
        dispatchers.map(({ pid }) => memoryOf(pid) ?? Number.NaN).toSorted((a, b) => a - b),
        0.5,
      ) /
        2 ** 20,
    ),
    idle,
    loaded,
  };
  console.log(JSON.stringify(result, null, 2));
  say(`Written to ${writeResult("fleet", result)}`);
  load.close();
}

function sessionsNow(dispatchers: readonly Running[], apis: readonly Running[]) {
  return { dispatchers: sessionsOf(dispatchers), apis: sessionsOf(apis) };
}

function sessionsOf(some: readonly Running[]) {
  const counts = some.map(({ pid }) => fleet.sessionsOf(pid));
  const all = counts.reduce((sum, one) => sum + one, 0);
  return { least: Math.min(...counts), most: Math.max(...counts), all };
}

async function serverSessions(db: RawDb): Promise<number> {
  const [row] = await db.sql<{ count: number }[]>`
    select count(*)::int as count from pg_stat_activity
     where datname = current_database() and application_name <> 'bench'`;
  return row?.count ?? 0;
}

async function sharesOf(db: RawDb) {
  const rows = await db.sql<{ held: number }[]>`
    select count(s.id)::int as held from dispatchers d left join shards s on s.dispatcher_id = d.id group by d.id`;
  const held = rows.map((row) => row.held);
  const none = held.length < COUNT ? COUNT - held.length : 0;
  return { least: Math.min(...held), most: Math.max(...held), idle: none };
}

/** Counts the deliveries for the shards that each dispatcher holds. */
async function loadShares(db: RawDb) {
  const rows = await db.sql<{ count: number }[]>`
    select count(a.id)::int as count
      from shards h join webhook_subscriptions s on s.shard = h.id
      left join delivery_attempts a on a.subscription_id = s.id
     group by h.dispatcher_id order by 1`;
  const counts = rows.map(({ count }) => count);
  return { least: counts[0], median: quantile(counts, 0.5), most: counts.at(-1) };
}

/** Measures the activity of the database and the processes per second while `work` runs. */
async function during(db: RawDb, processes: readonly Running[], work: () => Promise<void>) {
  const cpuOf = (role: string) =>
    processes
      .filter((one) => one.role === role)
      .reduce((sum, { pid }) => sum + (cpuMs(pid) ?? Number.NaN), 0);
  const read = async () => ({
    at: performance.now(),
    dispatchers: cpuOf("dispatcher"),
    apis: cpuOf("api"),
    postgres: fleet.postgresCpuMs() ?? Number.NaN,
    commits: await commits(db),
  });
  await db.sql`select pg_stat_statements_reset()`;
  const before = await read();
  await work();
  const after = await read();
  const seconds = (after.at - before.at) / 1_000;
  const each = (name: Exclude<keyof typeof before, "at">) =>
    round((after[name] - before[name]) / seconds, 1);
  return {
    seconds: round(seconds, 1),
    transactions_a_second: each("commits"),
    cpu_ms_a_second: {
      dispatchers: each("dispatchers"),
      apis: each("apis"),
      postgres: each("postgres"),
    },
    ...(await statements(db, seconds)),
  };
}

async function commits(db: RawDb): Promise<number> {
  const [row] = await db.sql<{ count: number }[]>`
    select xact_commit::float8 as count from pg_stat_database where datname = current_database()`;
  return row?.count ?? Number.NaN;
}

async function statements(db: RawDb, seconds: number) {
  const rows = await db.sql<{ calls: number; query: string }[]>`
    select calls::float8 as calls, query from pg_stat_statements
     where dbid = (select oid from pg_database where datname = current_database())
       and query !~* '^\s*(begin|commit|rollback|set|reset|discard)' order by calls desc`;
  const all = rows.reduce((sum, { calls }) => sum + calls, 0);
  const top = rows
    .slice(0, TOP)
    .map(
      ({ calls, query }) =>
        `${round(calls / seconds, 1)}: ${query.replaceAll(/\s+/g, " ").slice(0, 90)}`,
    );
  return { queries_a_second: round(all / seconds, 1), most_queries_a_second: top };
}

/**
 * Kills dispatchers one after the other under a small load; measures the time until another one holds the shards, and
 * until their first delivery.
 */
async function killSome(
  dispatchers: readonly Running[],
  load: Load,
  subscriptions: readonly BenchSubscription[],
) {
  const { db, sink } = fleet;
  const seen: { expired: number; held_again: number; delivers_again: number }[] = [];
  const kills = Number(values.kills);
  const step = Math.max(1, Math.floor(dispatchers.length / kills));
  for (const victim of dispatchers.filter((_, n) => n % step === 0).slice(0, kills)) {
    await until("no free shard", async () => (await free(db)) === 0);
    const before = await holders(db);
    const over = new AbortController();
    const running = load.run(subscriptions.length / SUBSCRIPTIONS, MOST_MS, over.signal);
    await Bun.sleep(1_000);
    process.kill(victim.pid, "SIGKILL");
    const killedAt = performance.timeOrigin + performance.now();
    const since = () => performance.timeOrigin + performance.now() - killedAt;
    const living = new Set((await holders(db)).values());
    await until("an expired lease", async () => (await ids(db)).length < living.size);
    const expiredMs = since();
    const left = new Set(await ids(db));
    const dead = new Set([...before].flatMap(([shard, id]) => (left.has(id) ? [] : [shard])));
    await until("a takeover", async () => {
      const now = await holders(db);
      return [...dead].every((shard) => left.has(now.get(shard) ?? ""));
    });
    const heldMs = since();
    let againMs = Infinity;
    await until("a delivery", async () => {
      const { arrivals } = await sink.report(true);
      for (const [id, , , at] of arrivals) {
        const isTheirs = dead.has(load.sent.get(id)?.shard ?? -1);
        if (isTheirs && at > killedAt + 200) againMs = Math.min(againMs, at - killedAt);
      }
      return againMs < Infinity;
    });
    over.abort();
    await running;
    seen.push({
      expired: round(expiredMs / 1_000, 2),
      held_again: round(heldMs / 1_000, 2),
      delivers_again: round(againMs / 1_000, 2),
    });
  }
  return seen;
}

async function holders(db: RawDb): Promise<Map<number, string>> {
  const rows = await db.sql<{ id: number; holder: string | null }[]>`
    select id, dispatcher_id as holder from shards`;
  return new Map(rows.map(({ id, holder }) => [id, holder ?? ""]));
}

async function ids(db: RawDb): Promise<string[]> {
  const rows = await db.sql<{ id: string }[]>`select id from dispatchers`;
  return rows.map(({ id }) => id);
}

async function free(db: RawDb): Promise<number> {
  return [...(await holders(db)).values()].filter((id) => id === "").length;
}
