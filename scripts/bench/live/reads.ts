// Parts e, f and i: the cost of live streams, of reads with many pending entries, and of a system without work.
import { BASE_PATH } from "../../../src/http/access.ts";
import { quantile, round } from "../figures.ts";
import { asLoader, insertInto, insertRecent, insertReviews } from "./history.ts";
import type { LiveRig } from "./rig.ts";
import { addTenants, addUsers, type Tenant } from "../tenants.ts";
import { callsOf, costOfEach, readUsage, resetStatements, topStatements } from "./usage.ts";
import { bytesOf, Wire } from "../wire.ts";

const WATCHERS = 200;
/** The API's own limit. */
const STREAMS_PER_USER = 5;
const SETTLE_MS = 4_000;
/**
 * Duration in ms of a measurement with streams: a multiple of the polling interval, which is at most five queries in 5
 * s.
 */
const WATCH_MS = 20_000;

const IDLE_MS = 60_000;
/** Time in ms after which effects of earlier parts have ended. */
const CALM_MS = 10_000;

export type Idle = Awaited<ReturnType<typeof partI>>;

/** Measures the cost per second of a minute without work. */
export async function partI(rig: LiveRig) {
  rig.say("(i) a minute without work");
  // Otherwise the server would do pending work of earlier parts in this minute.
  await rig.stores.db.sql`vacuum (analyze)`;
  await rig.stores.db.sql`checkpoint`;
  await rest(rig, CALM_MS);
  await resetStatements(rig);
  const before = await readUsage(rig);
  const startedAt = performance.now();
  await rest(rig, IDLE_MS);
  const after = await readUsage(rig);
  const seconds = (performance.now() - startedAt) / 1_000;
  return { perEvent: costOfEach(before, after, seconds), top: await topStatements(rig, seconds) };
}

export type Watched = Awaited<ReturnType<typeof watch>>;

export async function partE(rig: LiveRig): Promise<Watched[]> {
  rig.say(`(e) ${WATCHERS} watchers`);
  const idle = await secondOf(rig);
  return [await watch(rig, 1, idle), await watch(rig, 10, idle)];
}

/** Measures the cost per second of the current activity. */
async function secondOf(rig: LiveRig) {
  await resetStatements(rig);
  const before = await readUsage(rig);
  const startedAt = performance.now();
  await rest(rig, WATCH_MS);
  const after = await readUsage(rig);
  const calls = await callsOf(rig);
  const seconds = (performance.now() - startedAt) / 1_000;
  return {
    calls: new Map([...calls].map(([id, count]) => [id, count / seconds])),
    postgresMs: (after.cpu.postgres - before.cpu.postgres) / seconds,
    apiMs: (after.cpu.api - before.cpu.api) / seconds,
  };
}

/**
 * Opens the streams of all watchers for this many subscriptions. Returns queries per second and watched subscription,
 * and CPU time in ms per second, without the amounts that occur without watchers.
 */
async function watch(rig: LiveRig, count: number, idle: Awaited<ReturnType<typeof secondOf>>) {
  const watched = rig.tenants.slice(0, count);
  const users = WATCHERS / STREAMS_PER_USER;
  const by = (n: number) => watched[n % count];
  const partners = Array.from({ length: users }, (_, n) => by(n)?.partnerId ?? 0);
  const tokens = await addUsers(rig, partners);
  let refused = 0;
  const sockets = await Promise.all(
    Array.from({ length: WATCHERS }, (_, n) =>
      openStream(rig, { tenant: by(n % users), token: tokens[n % users] ?? "" }, () => {
        refused += 1;
      }),
    ),
  );
  await rest(rig, SETTLE_MS);
  const busy = await secondOf(rig);
  const top = await topStatements(rig, (WATCH_MS / 1_000) * count);
  for (const socket of sockets) socket.end();
  await rest(rig, SETTLE_MS);
  // A sum over all statements would include the dispatcher's sweep, whose frequency varies.
  const own = [...busy.calls].filter(([id]) => !idle.calls.has(id));
  const row = {
    subscriptions: count,
    watchers: WATCHERS,
    refused,
    queriesPerSecond: rig.counted
      ? round(own.reduce((sum, [, calls]) => sum + calls, 0) / count, 2)
      : Number.NaN,
    postgresMs: round(busy.postgresMs - idle.postgresMs, 1),
    apiMs: round(busy.apiMs - idle.apiMs, 1),
    top,
  };
  rig.say(
    `  ${WATCHERS} watchers of ${count}: ${row.queriesPerSecond} queries/s each, Postgres ${row.postgresMs} ms/s, API ${row.apiMs} ms/s, ${refused} refused`,
  );
  return row;
}

async function openStream(
  { root }: LiveRig,
  { tenant, token }: { tenant: Tenant | undefined; token: string },
  refused: () => void,
) {
  const { hostname, port } = new URL(root);
  const path = `${BASE_PATH}/partner/webhooks/${tenant?.subscriptionId}/stream`;
  let first = true;
  return Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      open: (socket) =>
        void socket.write(bytesOf("GET", path, { headers: { Authorization: `Bearer ${token}` } })),
      data: (_, chunk) => {
        if (first && !chunk.toString("latin1").startsWith("HTTP/1.1 200")) refused();
        first = false;
      },
    },
  });
}

async function rest({ stop }: LiveRig, ms: number): Promise<void> {
  const endsAt = performance.now() + ms;
  while (performance.now() < endsAt && !stop.aborted) await Bun.sleep(50);
}

const CALLS = 60;

/**
 * The default number of recent attempts is more than the subscription could have had in this time in s, and they are
 * not counted yet.
 */
const RECENT_S = 420;

/** Measures reads while all pending entries belong to one subscription, whose receiver hangs. */
export async function partF(rig: LiveRig) {
  const { options, say, spareUrls, sink } = rig;
  say(`(f) reads with ${options.pending} entries pending`);
  const [url = ""] = spareUrls;
  await sink.reset({ hang: [new URL(url).hostname] });
  const [tenant] = await addTenants(rig, [url]);
  if (tenant === undefined) return [];
  await insertPending(rig, tenant);
  await insertRecent(rig.db, tenant.subscriptionId, {
    count: options.attempts,
    seconds: RECENT_S,
  });
  const path = `/partner/webhooks/${tenant.subscriptionId}`;
  const paths: [name: string, path: string][] = [
    ["subscriptions", "/partner/webhooks"],
    ["subscription", path],
    ["deliveries", `${path}/deliveries`],
    ["deliveries of an event", `${path}/deliveries?event=review_received`],
    ["deliveries of an absent event", `${path}/deliveries?event=note_added`],
    ["deliveries that failed", `${path}/deliveries?outcome=failed`],
    ["health", `${path}/health`],
    ["stats", `${path}/stats`],
  ];
  const rows = [];
  // Each path has a separate user, because the API limits the requests per user.
  const tokens = await addUsers(
    rig,
    paths.map(() => tenant.partnerId),
  );
  for (const [n, [name, one]] of paths.entries())
    rows.push(await timed(rig, name, { path: one, token: tokens[n] ?? "" }));
  return rows;
}

async function timed(
  { root, say, stop }: LiveRig,
  name: string,
  { path, token }: { path: string; token: string },
) {
  const headers = { Authorization: `Bearer ${token}` };
  const bytes = bytesOf("GET", BASE_PATH + path, { headers });
  const wire = await Wire.open(root);
  const times: number[] = [];
  let failed = 0;
  for (let n = 0; n < CALLS && !stop.aborted; n++) {
    const startedAt = performance.now();
    const { status } = await wire.ask(bytes);
    times.push(performance.now() - startedAt);
    if (status !== 200) failed += 1;
  }
  wire.close();
  const row = {
    name,
    calls: times.length,
    failed,
    p50Ms: round(quantile(times, 0.5), 1),
    p95Ms: round(quantile(times, 0.95), 1),
  };
  say(
    `  ${name}: p50 ${row.p50Ms} ms, p95 ${row.p95Ms} ms${failed > 0 ? `, ${failed} failed` : ""}`,
  );
  return row;
}

/** Inserts pending entries. They share 1,000 events, because only the outbox is measured. */
async function insertPending(rig: LiveRig, tenant: Tenant): Promise<void> {
  const { db, options } = rig;
  await insertReviews(db, [tenant]);
  await db.sql`
    insert into review_history (event_id, partner_id, account_id, store_id, review_id, store_review_site_id, event,
      actor, review, metadata, occurred_at, recorded_at)
    select lpad(upper(to_hex(partner_id)), 8, '0') || 'P' || lpad(n::text, 17, '0'), partner_id, account_id, store_id, id,
           store_review_site_id, 'review_received', '{"type":"system","id":null,"name":"google"}',
           '{"id":1,"external_review_id":"pending"}', '{"rate":4}', now(), now()
      from reviews, generate_series(1, 1000) n where partner_id = ${tenant.partnerId}`;
  const insert = await insertInto(db, "outbox", {
    shard: "s.shard",
    subscription_id: "s.id",
    sequence: "n",
    event_id: "lpad(upper(to_hex(s.partner_id)), 8, '0') || lpad(n::text, 18, '0')",
    event: "'review_received'",
    payload_mode: "'full'",
    review_history_id: "h.id",
    review_id: "h.review_id",
    recorded_at: "now()",
  });
  await asLoader(db, async (sql) => {
    await sql.unsafe(
      `${insert}
         from webhook_subscriptions s, generate_series(1, $2::int) n
         join (select id, review_id, row_number() over (order by id) - 1 as place from review_history
                where partner_id = $3) h on h.place = n % 1000
        where s.id = $1 order by n`,
      [tenant.subscriptionId, options.pending, tenant.partnerId],
    );
    await sql`update outbox_sequences set last_sequence = ${options.pending} where subscription_id = ${tenant.subscriptionId}`;
  });
  await db.sql`vacuum analyze outbox`;
}
