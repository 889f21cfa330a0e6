// `bun run bench takeover`: two dispatchers with a large backlog, one of which is killed. It measures how long the
// killed one's shards stand still, which attempts are recorded as interrupted, and the resources of the survivor.
//
//   --subscriptions N   (100000)    --each N   entries of each (10)
import { parseArgs } from "node:util";

import type { RawDb } from "../../db/client.ts";
import { SHARDS } from "../../src/outbox/schedule.ts";
import { insertBacklog, insertPlace } from "./events.ts";
import { quantile, round } from "./figures.ts";
import { hostsOf, memoryOf, startRig, until, writeResult, type BenchSubscription } from "./rig.ts";
import type { Arrival } from "./sink.ts";

const { values } = parseArgs({
  args: process.argv.slice(2),
  options: {
    subscriptions: { type: "string", default: "100000" },
    each: { type: "string", default: "10" },
  },
});
const COUNT = Number(values.subscriptions);
const EACH = Number(values.each);
const HOSTS = 100;
const SUBSCRIPTIONS_PER_STATEMENT = 5_000;
/** How long both deliver before the kill, and how long the survivor is observed. */
const BEFORE_MS = 5_000;
const AFTER_MS = 30_000;

const say = (text: string) => console.log(text);
say("Starting durable stores and the receivers …");
const rig = await startRig();
try {
  say(`Seeding ${COUNT * EACH} entries of ${COUNT} subscriptions …`);
  const hosts = hostsOf(rig.sink.port, HOSTS);
  const urls = Array.from({ length: COUNT }, (_, n) => hosts[n % HOSTS] ?? "");
  const subscriptions = await rig.subscribe(urls);
  await queue(rig.db, subscriptions);
  const one = await rig.startDispatcher();
  const other = await rig.startDispatcher();
  await until("equal shares", async () => {
    const shares = await sharesOf(rig.db);
    return shares.length === 2 && shares.every((held) => held === SHARDS / 2);
  });
  await Bun.sleep(BEFORE_MS);
  const dead = await shardsOfFirst(rig.db);
  say(`Killing one with ${dead.size} shards …`);
  one.kill("SIGKILL");
  const killedAt = performance.timeOrigin + performance.now();
  const memory: number[] = [];
  const seen: { expired?: number; claimed?: number } = {};
  for (let afterMs = 0; afterMs < AFTER_MS; afterMs = sinceMs(killedAt)) {
    memory.push((memoryOf(other.pid) ?? 0) / 2 ** 20);
    const [held = 0, second] = await sharesOf(rig.db);
    if (second === undefined) seen.expired ??= afterMs / 1_000;
    if (held === SHARDS) seen.claimed ??= afterMs / 1_000;
    await Bun.sleep(100);
  }
  const { arrivals } = await rig.sink.report();
  const result = {
    entries: COUNT * EACH,
    lease_expired_s: round(seen.expired ?? Number.NaN, 1),
    claimed_s: round(seen.claimed ?? Number.NaN, 1),
    ...takeover(arrivals, { dead, killedAt, subscriptions }),
    ...(await countMarked(rig.db)),
    repeats: arrivals.length - new Set(arrivals.map(([id, attempt]) => `${id} ${attempt}`)).size,
    survivor_mib: Math.round(Math.max(...memory)),
  };
  console.table(result);
  say(`Written to ${writeResult("takeover", result)}`);
} finally {
  await rig.stop();
}
process.exit(0);

/** Slices keep each statement below its time limit. */
async function queue(db: RawDb, subscriptions: readonly BenchSubscription[]): Promise<void> {
  const place = await insertPlace(db);
  for (let from = 0; from < subscriptions.length; from += SUBSCRIPTIONS_PER_STATEMENT)
    await insertBacklog(
      db,
      place,
      subscriptions.slice(from, from + SUBSCRIPTIONS_PER_STATEMENT),
      EACH,
    );
  await db.sql`analyze webhook_subscriptions`;
}

async function sharesOf(db: RawDb): Promise<number[]> {
  const rows = await db.sql<{ held: number }[]>`
    select count(*)::int as held from shards where dispatcher_id is not null group by dispatcher_id`;
  return rows.map(({ held }) => held);
}

function sinceMs(at: number): number {
  return performance.timeOrigin + performance.now() - at;
}

/** Returns the shards of the dispatcher that started first, because ids sort by time. */
async function shardsOfFirst(db: RawDb): Promise<Set<number>> {
  const rows = await db.sql<{ id: number }[]>`
    select id from shards where dispatcher_id = (select min(id) from dispatchers)`;
  return new Set(rows.map(({ id }) => id));
}

/** Computes when the killed dispatcher's shards delivered again, in seconds after the kill. */
function takeover(
  arrivals: readonly Arrival[],
  {
    dead,
    killedAt,
    subscriptions,
  }: {
    dead: ReadonlySet<number>;
    killedAt: number;
    subscriptions: readonly BenchSubscription[];
  },
) {
  const shardOf = new Map(subscriptions.map(({ partnerId, shard }) => [partnerId, shard]));
  const again = new Map<number, number>();
  let before = 0;
  for (const [id, , , at] of arrivals) {
    const shard = shardOf.get(Number.parseInt(id.slice(0, 8), 16)) ?? -1;
    if (at < killedAt) before += 1;
    // Requests in transit at the kill still arrive.
    else if (at > killedAt + 1_000 && dead.has(shard) && !again.has(shard))
      again.set(shard, (at - killedAt) / 1_000);
  }
  const seconds = [...again.values()].toSorted((a, b) => a - b);
  return {
    delivered_before: before,
    delivered_after: arrivals.length - before,
    dead_shards: dead.size,
    shards_back: seconds.length,
    first_back_s: round(seconds[0] ?? Number.NaN, 1),
    median_back_s: round(quantile(seconds, 0.5), 1),
    last_back_s: round(seconds.at(-1) ?? Number.NaN, 1),
  };
}

/** Counts records of interrupted attempts and of possible repeats; an older version has no column for the latter. */
async function countMarked(db: RawDb) {
  const [row] = await db.sql<{ interrupted: number; repeated: number }[]>`
    select count(*) filter (where outcome = 'interrupted')::int as interrupted,
           count(*) filter (where (to_jsonb(a) ->> 'possibly_repeated')::boolean)::int as repeated
      from (select * from delivery_attempts) a`;
  return { interrupted_records: row?.interrupted, possibly_repeated_records: row?.repeated };
}
