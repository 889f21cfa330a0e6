// `bun run bench live` measures the running product from outside; see `--help`.
import { encodeTime } from "ulid";

import { watchForStop } from "../install/stop-signal.ts";
import {
  type Bare,
  bareLoops,
  evaluate,
  type Loaded,
  meanOf,
  partA,
  partB,
  partC,
  partI,
} from "./live-parts.ts";
import { type LiveRig, readOptions, type TopStatement, withLiveRig } from "./live-rig.ts";
import { atRate, latencies, prepare } from "./load.ts";
import { commitOf, memoryOf, round, writeResult } from "./rig.ts";
import { addReviews } from "./tenants.ts";

const USAGE = `bun run bench live: the running product as processes of their own, on real stores, driven from outside.
  --only a,b     the parts to run (all): a one event a request, b open loop, c 500 events a request, i a minute without work
  --rows N       history and attempts that are there before (1000000), written contiguously
  --seconds N    how long each load lasts (8)
  --clients N    publishers in part a (64)
  --rates 20,200 events a second in part b (200)
  --tree PATH    the checkout whose API, dispatcher and migrations run (this one)
  --postgres N   the version of the embedded server, 15 to 18 (18); DATABASE_URL and REDIS_URL take others
  --label NAME   the result is written to bench-results/live-NAME.json
  --soak 10m     instead of the parts: events at --rate a second (200) to receivers of which a tenth fails at times`;

/** Exit status that shells use for a process that Ctrl-C has ended. */
const EXIT_STOPPED = 130;

const PARTS = { a: partA, b: partB, c: partC, i: partI };

interface LiveResult {
  readonly tree: string;
  readonly commit: string;
  readonly stores: string;
  readonly rows: number;
  bare?: Bare;
  a?: Loaded;
  b?: Loaded[];
  c?: Loaded;
  i?: Awaited<ReturnType<typeof partI>>;
  soak?: Awaited<ReturnType<typeof soak>>;
}

async function run(rig: LiveRig): Promise<LiveResult> {
  const { options, stores, stop } = rig;
  const { tree, rows } = options;
  const result: LiveResult = { tree, commit: commitOf(tree), stores: stores.kind, rows };
  await insertPast(rig);
  if (options.soakMs !== undefined) {
    result.soak = await soak(rig, options.soakMs);
    return result;
  }
  const before = await bareLoops(rig);
  for (const part of options.parts) {
    if (stop.aborted) return result;
    Object.assign(result, { [part]: await PARTS[part](rig) });
  }
  result.bare = stop.aborted ? before : meanOf(before, await bareLoops(rig));
  return result;
}

const DAY_MS = 86_400_000;
/** Number of instants over which the rows are spread, and number of instants per statement. */
const INSTANTS = 1_000;
const AT_ONCE = 100;

/**
 * Inserts the history and attempts of a system that has been running for a while, over today. Rows are inserted with few
 * statements and in the order of time, so they are stored more contiguously than in reality.
 */
async function insertPast({ db, options, tenants, say, stop }: LiveRig): Promise<void> {
  if (options.rows === 0) return;
  say(`Writing ${options.rows} rows of history and as many attempts …`);
  const each = Math.ceil(options.rows / INSTANTS);
  const today = Date.now() - (Date.now() % DAY_MS);
  const step = (Date.now() - today) / (INSTANTS + 1);
  const instants = Array.from({ length: INSTANTS }, (_, n) => Math.floor(today + n * step));
  await addReviews(db, tenants, ["past"]);
  for (let from = 0; from < INSTANTS && !stop.aborted; from += AT_ONCE) {
    const part = instants.slice(from, from + AT_ONCE);
    const ids = part.map((at) => encodeTime(at, 10));
    await db.transaction(async ({ sql }) => {
      // Without foreign-key checks, and without waiting for the disk.
      await sql`set local session_replication_role = replica`;
      await sql`set local synchronous_commit = off`;
      await sql`
        with tenants as (
          select row_number() over (order by s.id) - 1 as place, count(*) over () as tenants, s.id as subscription_id,
                 r.partner_id, r.account_id, r.store_id, r.id as review_id, r.store_review_site_id
            from webhook_subscriptions s
            join reviews r on r.partner_id = s.partner_id and r.external_review_id = 'past'
        ), rows as (
          select t.id || lpad(upper(to_hex(n)), 16, '0') as event_id, to_timestamp(t.ms / 1000) as at, tenants.*
            from unnest(${ids}::text[], ${part}::float8[]) as t(id, ms)
           cross join generate_series(1, ${each}::int) n
            join tenants on place = n % tenants
        ), history as (
          insert into review_history (event_id, partner_id, account_id, store_id, review_id, store_review_site_id, event,
                                      actor, review, metadata, occurred_at, recorded_at)
          select event_id, partner_id, account_id, store_id, review_id, store_review_site_id, 'review_received',
                 '{"type":"system","id":null,"name":"google"}',
                 '{"id":1,"external_review_id":"past","source_platform":"google","rate":4}', '{"rate":4}', at, at
            from rows order by event_id
        )
        insert into delivery_attempts (id, subscription_id, sequence, event_id, event, round, attempt, started_at,
                                       duration_ms, outcome, status_code, response_headers, response_excerpt,
                                       response_truncated, payload_mode, recorded_at, payload_format, host, signature,
                                       body_digest)
        select event_id, subscription_id, 0, event_id, 'review_received', 1, 1, at, 5, 'delivered', 200,
               '{"content-length":"0"}', '', false, 'full', at, 1, 'partner.example', sha256(''),
               substr(sha256(''), 1, 16)
          from rows order by event_id`;
    });
  }
  for (const table of ["review_history", "delivery_attempts", "reviews"])
    await db.sql.unsafe(`vacuum analyze ${table}`);
  await db.sql`checkpoint`;
}

const MINUTE_MS = 60_000;
/** Minimum number of steps; a short soak has shorter steps. */
const FEWEST_STEPS = 4;
/** One of this many receivers fails from time to time. */
const FAILING_OF = 10;
const LATEST_MS = 1_000;

/** Measures whether any figure grows while events arrive, receivers fail and autovacuum runs. */
async function soak(rig: LiveRig, totalMs: number) {
  const stepMs = Math.min(MINUTE_MS, totalMs / FEWEST_STEPS);
  const perSecond = rig.options.rate;
  const fail = rig.tenants.filter((_, n) => n % FAILING_OF === 0).map(({ host }) => host);
  rig.say(
    `Soak: ${perSecond} events/s, ${fail.length} of ${rig.tenants.length} receivers fail at times`,
  );
  await rig.sink.reset({ keys: true, fail });
  const minutes: Minute[] = [];
  const failing = new Set(fail);
  for (let at = 0; at < totalMs && !rig.stop.aborted; at += stepMs) {
    const minute = await soakStep(rig, minutes.length + 1, { stepMs, failing });
    minutes.push(minute);
    const figures = Object.entries(minute).map(([name, value]) => `${name} ${value}`);
    rig.say(`  ${figures.join(", ")}`);
  }
  return { perSecond, minutes, slopes: slopesOf(minutes) };
}

type Minute = Awaited<ReturnType<typeof soakStep>>;

/** Offers events for `stepMs`. The delays are those of receivers that never fail. */
async function soakStep(
  rig: LiveRig,
  minute: number,
  { stepMs, failing }: { stepMs: number; failing: ReadonlySet<string> },
) {
  const perSecond = rig.options.rate;
  const count = Math.round((perSecond * stepMs) / 1_000);
  const requests = prepare(rig.sign, rig.tenants, { name: `soak${minute}`, count, perRequest: 1 });
  const offered = await atRate(rig.root, requests, perSecond, rig.stop);
  await Bun.sleep(LATEST_MS);
  const arrivals = await rig.sink.takeArrivals();
  const healthy = arrivals.filter(([, , host]) => !failing.has(host));
  const { inversions, fromPublishMs } = evaluate(requests, offered, healthy);
  const { p50Ms, p99Ms } = latencies(fromPublishMs);
  const [dead] = await rig.db.sql<{ rows: number }[]>`
    select coalesce(sum(n_dead_tup), 0)::float8 as rows from pg_stat_user_tables where relname ~ '^outbox'`;
  return {
    minute,
    accepted: offered.count - offered.refused,
    delivered: new Set(arrivals.map(([id]) => id)).size,
    p50Ms,
    p99Ms,
    inversions,
    apiMb: round(memoryOf(rig.api.pid) / 1e6, 1),
    dispatcherMb: round(memoryOf(rig.dispatcher.pid) / 1e6, 1),
    deadOutboxRows: dead?.rows ?? Number.NaN,
  };
}

const FIGURES = ["p50Ms", "p99Ms", "apiMb", "dispatcherMb", "deadOutboxRows"] as const;

/** Fits a line to each figure. The first step is ignored, because it is the warm-up. */
function slopesOf(minutes: readonly Minute[]) {
  return FIGURES.map((figure) => {
    const values = minutes.slice(1).map((minute) => minute[figure]);
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    const middle = (values.length - 1) / 2;
    const covariance = values.reduce((sum, value, n) => sum + (n - middle) * (value - mean), 0);
    const variance = values.reduce((sum, _, n) => sum + (n - middle) ** 2, 0);
    const slope = covariance / variance;
    const percentPerStep = round((slope * 100) / mean, 2);
    return { figure, mean: round(mean, 2), perStep: round(slope, 3), percentPerStep };
  });
}

function report(result: LiveResult): void {
  const { bare, a, b = [], c, i, soak: soaked } = result;
  console.log(`\n${result.commit}, ${result.stores}, ${result.rows} rows of history and attempts`);
  if (bare !== undefined) console.table([bare]);
  const loads = [a, c, ...b].flatMap((one) => one ?? []);
  if (loads.length > 0) {
    console.table(loads.map((one) => rates(one, bare)));
    console.log(
      "CPU of an event in µs by process; the product is API, dispatcher, Postgres and Redis:",
    );
    console.table(loads.map(costs));
  }
  for (const one of [a, c])
    if (one !== undefined)
      tops(`Where ${one.name} spends most time in Postgres, by event`, one.top);
  if (i !== undefined) {
    const { top, ...rest } = i;
    console.log("A second without work: CPU in µs, and counts");
    console.table([costs({ name: "idle", ...rest })]);
    tops("What is asked in a second without work", top);
  }
  if (soaked !== undefined) {
    console.table(soaked.minutes);
    console.table(soaked.slopes);
  }
}

function rates(one: Loaded, bare: Bare | undefined) {
  return {
    load: one.name,
    "accepted/s": one.acceptedPerSecond,
    "delivered/s": one.deliveredPerSecond,
    inversions: one.inversions,
    missing: one.missing,
    refused: one.refused,
    "accept p50": one.accept.p50Ms,
    "accept p99": one.accept.p99Ms,
    "publish p50": one.publishToReceipt.p50Ms,
    "publish p99": one.publishToReceipt.p99Ms,
    "commit p50": one.answerToReceipt.p50Ms,
    "commit p99": one.answerToReceipt.p99Ms,
    ...(bare !== undefined && {
      "/insert": round(one.acceptedPerSecond / bare.insertsPerSecond, 2),
      "/fetch": round(one.deliveredPerSecond / bare.fetchPerSecond, 2),
      "/client": round(one.deliveredPerSecond / bare.clientPerSecond, 2),
    }),
  };
}

function costs({ name, perEvent }: Pick<Loaded, "name" | "perEvent">) {
  const { cpuUs, productUs, ...rest } = perEvent;
  return { load: name, product: productUs, ...cpuUs, ...rest };
}

function tops(title: string, top: readonly TopStatement[]): void {
  if (top.length === 0) return;
  console.log(`${title}, in µs of execution and of planning:`);
  for (const { perEvent, usPerEvent, planUsPerEvent, blocksPerEvent, text } of top) {
    const times = [usPerEvent.toFixed(1).padStart(8), planUsPerEvent.toFixed(1).padStart(8)];
    const counts = `${perEvent.toFixed(2).padStart(7)} times  ${blocksPerEvent.toFixed(1).padStart(6)} blocks`;
    console.log(`  ${times.join(" + ")}  ${counts}  ${text}`);
  }
}

async function live(): Promise<number> {
  const options = readOptions();
  const stop = watchForStop(() => process.exit(EXIT_STOPPED));
  const result = await withLiveRig(options, stop, run);
  // An interrupted run has no useful result.
  if (stop.aborted) return EXIT_STOPPED;
  report(result);
  writeResult(options.label === "" ? "live" : `live-${options.label}`, result);
  return 0;
}

if (process.argv.includes("--help")) console.log(USAGE);
else process.exitCode = await live();
