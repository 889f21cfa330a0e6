// `bun run bench million` measures a sweep and a wake with many subscriptions of which few are busy, compared with a
// database that has only the busy ones. Blocks are those of `explain (analyze, buffers)`.
//
//   --subscriptions N (1000000)   --busy N with entries (10000)   --each N entries (2)   --postgres N its version (18)
import { parseArgs } from "node:util";

import { connect, type RawDb } from "../../db/client.ts";
import { LIMITS } from "../../db/limits.ts";
import { migrate } from "../../db/migrate.ts";
import { createStore } from "../../dispatcher/store/store.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createSecretBox } from "../../src/lib/secret-box.ts";
import { SHARDS } from "../../src/outbox/schedule.ts";
import { insertBacklog, insertPlace } from "./events.ts";
import { round } from "./figures.ts";
import { readingOf } from "./plan-blocks.ts";
import { programFolders, startServer, versionOf } from "./plan-servers.ts";
import { subscribe, writeResult, type BenchSubscription } from "./rig.ts";

const { values } = parseArgs({
  args: process.argv.slice(2),
  options: {
    subscriptions: { type: "string", default: "1000000" },
    busy: { type: "string", default: "10000" },
    each: { type: "string", default: "2" },
    postgres: { type: "string", default: "18" },
  },
});
const BUSY = Number(values.busy);
const IDLE = Number(values.subscriptions) - BUSY;
const BACKLOG_AT_ONCE = 2_000;
/** The fastest of these runs counts. */
const TIMES = 5;
/** How many shards one query of a sweep reads (dispatcher/shards/scheduler.ts). */
const SHARDS_AT_ONCE = 4;
const KEY = new Uint8Array(32);

const [programs = ""] = programFolders([]).filter((one) =>
  versionOf(one).startsWith(values.postgres),
);
const server = await startServer(programs);
const sent: { text: string; parameters: readonly unknown[] }[] = [];
await migrate(server.url);
const db = connect(server.url, {
  max: 1,
  name: "bench",
  limits: LIMITS.indexing,
  onStatement: (text, parameters) => void sent.push({ text, parameters }),
});
try {
  console.log(`${BUSY} busy subscriptions …`);
  const busy = await subscribe(
    db,
    KEY,
    Array.from({ length: BUSY }, () => "https://busy.example/hook"),
  );
  const place = await insertPlace(db);
  for (let from = 0; from < BUSY; from += BACKLOG_AT_ONCE)
    await insertBacklog(db, place, busy.slice(from, from + BACKLOG_AT_ONCE), Number(values.each));
  await db.sql.unsafe("vacuum analyze");
  const alone = await costsOf(busy);
  console.log(`${IDLE} that have nothing to do …`);
  await addIdle(db);
  await db.sql.unsafe("vacuum analyze");
  const among = await costsOf(busy);
  const result = {
    postgres: versionOf(programs),
    busy: BUSY,
    subscriptions: BUSY + IDLE,
    alone,
    among,
  };
  console.table(shown(alone));
  console.table(shown(among));
  console.log(`Written to ${writeResult("million", result)}`);
} finally {
  await db.close();
  await server.stop();
}
process.exit(0);

/** Adds idle subscriptions, half of them batches that are due in a day. */
async function addIdle(to: RawDb): Promise<void> {
  await to.sql`
    with partners as (
      insert into companies (type, name, primary_color, created_at)
      select 'partner', 'Idle', '#000000', now() from generate_series(1, ${IDLE}::int) returning id
    ), subscriptions as (
      insert into webhook_subscriptions (id, partner_id, shard, label, webhook_url, delivery_kind,
        batch_interval_hours, next_batch_at, payload_mode, suppress_native_notifications, ordering, state,
        sealed_secret, secret_fingerprint, created_at, updated_at)
      select 'Z' || lpad(id::text, 25, '0'), id, id / 2 % ${SHARDS}::int, 'Idle', 'https://idle.example/hook',
             case when id % 2 = 0 then 'immediate' else 'batch' end, case when id % 2 = 1 then 24 end,
             case when id % 2 = 1 then now() + interval '20 hours' end, 'full', false, 'subscription', 'active', '',
             '0000000000000000', now(), now()
        from partners returning id
    ), offsets as (
      insert into outbox_offsets (subscription_id) select id from subscriptions
    )
    insert into outbox_sequences (subscription_id) select id from subscriptions`;
}

async function costsOf(busy: readonly BenchSubscription[]) {
  const shards = Array.from({ length: SHARDS }, (_, shard) => shard);
  const [first] = busy;
  const wake = first && {
    id: first.subscriptionId,
    shard: first.shard,
    generation: 1,
    after: 0,
    limit: 4,
    exceptReviews: [],
  };
  return {
    [`sweep of ${SHARDS_AT_ONCE} shards, a query`]: await cost((store) =>
      store.sweep(shards.slice(0, SHARDS_AT_ONCE)),
    ),
    [`sweep of one shard, a query`]: await cost((store) => store.sweep([0])),
    "a wake: its load": await cost((store) => store.load(wake ? [wake] : [])),
  };
}

type Store = ReturnType<typeof createStore>;

async function cost(work: (store: Store) => Promise<unknown>) {
  const box = createSecretBox({ current: KEY });
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const config = { batchHourMs: 3_600_000, serverRoot: "https://reviews.example" };
  const one = {
    name: "",
    bound: Infinity,
    run: (on: Parameters<typeof createStore>[0]["db"]) =>
      work(createStore({ db: on, clock: systemClock, box, log, config })),
  };
  const readings = [];
  for (let n = 0; n < TIMES; n++)
    readings.push(await readingOf({ db, sent }, one, "force_generic_plan"));
  const quickest = Math.min(...readings.map(({ ms }) => ms));
  const { blocks, plans } = readings.at(-1) ?? {};
  return { blocks, ms: round(quickest, 2), plans };
}

/** Removes the plans for the output; the result file has them. */
function shown(costs: Awaited<ReturnType<typeof costsOf>>) {
  return Object.fromEntries(
    Object.entries(costs).map(([name, { blocks, ms }]) => [name, { blocks, ms }]),
  );
}
