// Measures reads of deliveries and health with many attempts: `bun run bench attempts [--rows 10000000]`. It fills
// the daily partitions of 30 days, nine of ten attempts for one subscription, and calls the running API with each
// filter.
import { parseArgs } from "node:util";

import { ulid } from "ulid";

import { connect, type Db, type RawDb } from "../../db/client.ts";
import { indexEndedDays, ensurePartitions, ulidFloor } from "../../db/partitions.ts";
import { addMs, systemClock } from "../../src/lib/clock.ts";
import { countStats, showHealth } from "../../src/webhooks/actions/stats.ts";
import { attemptsOf, attemptsOfEvent } from "../../src/webhooks/queries/attempts.ts";
import { deliveryOf } from "../../src/webhooks/queries/events.ts";
import { subscriptionById } from "../../src/webhooks/queries/subscriptions.ts";
import { BENCH_PASSWORD, startAuthRig, type AuthRig } from "./auth-rig.ts";

const { values } = parseArgs({
  options: {
    rows: { type: "string", default: "10000000" },
    calls: { type: "string", default: "200" },
  },
});
const ROWS = Number(values.rows);
const CALLS = Number(values.calls);
const DAYS = 30;
const DAY_MS = 86_400_000;
const OTHERS = 100;
const PLAN_LINES = 16;

const rig = await startAuthRig(1);
try {
  await run(rig);
} finally {
  await rig.stop();
}

async function run({ db, config, apiRoot, emails }: AuthRig): Promise<void> {
  const api = await client(`${apiRoot}/api/v1`, emails[0] ?? "");
  const made = await api("POST", "/partner/webhooks", {
    label: "Busy",
    webhook_url: "https://93.184.215.14/hook",
    delivery_kind: "immediate",
  });
  const id = String(made["id"]);
  await fill(db, id);
  // The API already counted statistics while the days were filled, so its progress is reset.
  await db.sql`delete from stats_progress`;
  await timed("counted into figures", () => countAll(db, config));
  const rare = await rareOf(db, id);
  for (const [name, path] of paths(id, rare))
    console.log(await measure(name, () => api("GET", path)));
  await explainAll({ db, url: config.databaseUrl }, id, rare.eventId);
}

async function countAll(db: RawDb, config: AuthRig["config"]): Promise<void> {
  // `until` is undefined while the API is counting.
  for (;;) {
    const { until, next } = await countStats({ db, config }, systemClock.now());
    if (until !== undefined && next === undefined) break;
    if (until === undefined) await Bun.sleep(200);
  }
}

interface Rare {
  readonly eventId: string;
  readonly since: string;
  readonly until: string;
  readonly cursor: string;
}

function paths(id: string, rare: Rare): [name: string, path: string][] {
  const base = `/partner/webhooks/${id}`;
  const filters = [
    "",
    "?limit=100",
    `?cursor=${rare.cursor}`,
    `?event_id=${rare.eventId}`,
    "?outcome=delivered",
    "?outcome=retry",
    "?outcome=failed",
    "?outcome=interrupted",
    "?event=review_received",
    "?event=review_removed",
    "?event=review_pull_disconnected",
    "?event=note_added",
    "?event=note_added&outcome=failed",
    "?event=review_removed&outcome=failed",
    `?since=${rare.since}&until=${rare.until}`,
    `?event=review_removed&since=${rare.since}&until=${rare.until}`,
  ];
  return [
    ...filters.map((query): [string, string] => [
      `deliveries${decodeURIComponent(query)}`,
      `${base}/deliveries${query}`,
    ]),
    ["one delivery", `${base}/deliveries/${rare.eventId}`],
    ["health", `${base}/health`],
    ["stats of a day", `${base}/stats`],
    ["stats of 15 days", `${base}/stats?since=${rare.since}&step=86400`],
  ];
}

async function measure(name: string, call: () => Promise<unknown>): Promise<string> {
  for (let i = 0; i < 10; i++) await call();
  const times: number[] = [];
  for (let i = 0; i < CALLS; i++) {
    const start = performance.now();
    await call();
    times.push(performance.now() - start);
  }
  times.sort((a, b) => a - b);
  const at = (share: number) => (times[Math.ceil(share * times.length) - 1] ?? 0).toFixed(1);
  return `${name.slice(0, 90).padEnd(92)} p50 ${at(0.5).padStart(6)} ms  p95 ${at(0.95).padStart(6)} ms`;
}

async function client(base: string, email: string) {
  const call = async (method: string, path: string, body?: unknown, token = "") => {
    const response = await fetch(base + path, {
      method,
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const answer = (await response.json()) as Record<string, unknown>;
    // A 404 for a delivery is expected here: there are attempts, but no entries.
    if (!response.ok && response.status !== 404)
      throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
    return answer;
  };
  const { token } = await call("POST", "/login", { email, password: BENCH_PASSWORD });
  return (method: string, path: string, body?: unknown) => call(method, path, body, String(token));
}

/**
 * Inserts attempts set-based, day by day. Their ULIDs are built in SQL from the attempt's instant and a running
 * number.
 */
async function fill(db: RawDb, id: string): Promise<void> {
  const now = systemClock.now();
  for (let days = DAYS; days >= 0; days -= 7)
    await ensurePartitions(db, addMs(now, -days * DAY_MS));
  const digits = Array.from(
    { length: 10 },
    (_, i) =>
      `substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', ((ms >> ${45 - 5 * i}) & 31)::int + 1, 1)`,
  );
  await db.sql.unsafe(`
    create function bench_ulid(ms bigint, n bigint) returns text language sql immutable as $$
      select ${digits.join(" || ")} || lpad(upper(to_hex(n)), 16, '0') $$`);
  await db.sql`
    insert into webhook_subscriptions (id, partner_id, shard, label, webhook_url, delivery_kind, payload_mode,
      suppress_native_notifications, ordering, state, sealed_secret, secret_fingerprint, created_at, updated_at, deleted_at)
    select 'OTHER' || n, partner_id, 1, 'Other', 'https://x.example', 'immediate', 'full', false, 'subscription',
           'deleted', 'x', 'x', now(), now(), now()
      from webhook_subscriptions, generate_series(0, ${OTHERS - 1}::int) n where id = ${id}`;
  const perDay = Math.floor(ROWS / DAYS);
  await timed(`filled ${perDay * DAYS} attempts`, async () => {
    for (let day = 0; day < DAYS; day++)
      await fillDay(db, id, {
        from: addMs(now, (day - DAYS) * DAY_MS),
        rows: perDay,
        first: day * perDay,
      });
  });
  await timed("indexed the days that have ended", async () => {
    while ((await indexEndedDays(db)).length > 0);
  });
  await timed("vacuumed and analyzed", () => db.sql`vacuum (analyze) delivery_attempts`);
  const [size] = await db.sql<{ size: string }[]>`
    select pg_size_pretty(sum(pg_total_relation_size(inhrelid))) as size from pg_inherits
     where inhparent = 'delivery_attempts'::regclass`;
  console.log(`delivery_attempts with its indexes: ${size?.size}`);
}

async function fillDay(
  db: RawDb,
  id: string,
  { from, rows, first }: { from: Date; rows: number; first: number },
): Promise<void> {
  await db.sql`
    insert into delivery_attempts (id, subscription_id, sequence, event_id, event, round, attempt, started_at,
      duration_ms, outcome, status_code, error_code, response_headers, response_excerpt, response_truncated,
      next_attempt_at, payload_format, host, signature, body_digest)
    select bench_ulid(ms, n), case when n % 10 = 0 then 'OTHER' || n / 10 % ${OTHERS}::int else ${id} end, n,
           bench_ulid(ms - 5, n),
           case when n % 1000003 = 1 then 'review_pull_disconnected' when n % 1000 = 3 then 'review_removed'
                when n % 3 = 1 then 'review_updated' else 'review_received' end,
           1, 1, to_timestamp(ms / 1000.0), 5 + (random() ^ 8 * 2000)::int, outcome,
           case when outcome = 'delivered' then 200 else 500 end,
           case when outcome <> 'delivered' then 'http_status' end, '{}', '', false,
           case when outcome = 'retry' then to_timestamp(ms / 1000.0 + 60) end, 1, 'x.example',
           sha256(n::text::bytea), substr(sha256(n::text::bytea), 1, 16)
      from (select n, ${from.getTime()}::bigint + (n - ${first}::bigint) * ${DAY_MS}::bigint / ${rows}::bigint as ms,
                   case when n % 100003 = 1 then 'interrupted' when n % 200 = 7 then 'failed'
                        when n % 50 = 9 then 'retry' else 'delivered' end as outcome
              from generate_series(${first}::bigint, ${first + rows - 1}::bigint) n) a`;
}

async function rareOf(db: RawDb, id: string): Promise<Rare> {
  const middle = addMs(systemClock.now(), -DAYS * 0.5 * DAY_MS);
  const [row] = await db.sql<{ id: string; eventId: string }[]>`
    select id, event_id as "eventId" from delivery_attempts
     where subscription_id = ${id} and id >= ${ulidFloor(middle)} order by id limit 1`;
  return {
    eventId: row?.eventId ?? ulid(),
    since: encodeURIComponent(middle.toISOString()),
    until: encodeURIComponent(addMs(middle, DAY_MS / 24).toISOString()),
    cursor: Buffer.from(row?.id ?? ulid()).toString("base64url"),
  };
}

/** Prints the plan of every statement that a read runs. */
async function explainAll(
  { db, url }: { db: RawDb; url: string },
  id: string,
  eventId: string,
): Promise<void> {
  const subscription = await subscriptionOf(db, id);
  const none = {
    event: undefined,
    eventId: undefined,
    outcome: undefined,
    since: undefined,
    until: undefined,
  };
  const page = { limit: 50, after: undefined };
  const reads: [string, (db: Db) => Promise<unknown>][] = [
    ["deliveries", (to) => attemptsOf(to, id, none, page)],
    ["deliveries?event_id", (to) => attemptsOf(to, id, { ...none, eventId }, page)],
    [
      "deliveries?event=review_received",
      (to) => attemptsOf(to, id, { ...none, event: "review_received" }, page),
    ],
    [
      "deliveries?event=note_added",
      (to) => attemptsOf(to, id, { ...none, event: "note_added" }, page),
    ],
    [
      "deliveries?outcome=delivered",
      (to) => attemptsOf(to, id, { ...none, outcome: "delivered" }, page),
    ],
    ["deliveries?outcome=failed", (to) => attemptsOf(to, id, { ...none, outcome: "failed" }, page)],
    [
      "one delivery",
      (to) => Promise.all([deliveryOf(to, id, eventId), attemptsOfEvent(to, id, eventId, 100)]),
    ],
    ["health", (to) => showHealth({ db: to, clock: systemClock }, subscription)],
  ];
  for (const [name, read] of reads) {
    console.log(`\n=== ${name}`);
    for (const plan of await plansOf({ db, url }, read)) console.log(plan);
  }
}

async function subscriptionOf(db: RawDb, id: string) {
  const [row] = await db.sql<{ partnerId: number }[]>`
    select partner_id as "partnerId" from webhook_subscriptions where id = ${id}`;
  const found = await subscriptionById(db, row?.partnerId ?? 0, id);
  if (found === undefined) throw new Error("The subscription is gone.");
  return found;
}

/** Runs a read on its own connection and explains each of its statements. */
async function plansOf(
  { db, url }: { db: RawDb; url: string },
  read: (db: Db) => Promise<unknown>,
): Promise<string[]> {
  const statements: [text: string, parameters: readonly unknown[]][] = [];
  const onStatement = (...statement: (typeof statements)[number]) => {
    // The driver's type queries, begin and commit are skipped, because they have no interesting plan.
    const [text] = statement;
    if (!text.includes("pg_catalog") && !/^(begin|commit)/.test(text)) statements.push(statement);
  };
  const watched = connect(url, { max: 1, name: "explain", onStatement });
  await read(watched);
  await watched.close();
  const plans: string[] = [];
  for (const [text, parameters] of statements) {
    const explain = `explain (analyze, buffers, summary) ${text}`;
    plans.push(planOf(await db.sql.unsafe(explain, parameters as [])));
  }
  return plans;
}

/** Returns the top of a plan and its totals; the partitions below look alike. */
function planOf(rows: readonly Record<string, unknown>[]): string {
  const lines = rows.map((row) => String(row["QUERY PLAN"]));
  const used = lines.filter((line) => !line.includes("never executed"));
  return `${used.slice(0, PLAN_LINES).join("\n")}\n${lines.slice(-2).join("\n")}\n`;
}

async function timed(what: string, work: () => PromiseLike<unknown>): Promise<void> {
  const start = performance.now();
  await work();
  console.log(`${what} in ${((performance.now() - start) / 1000).toFixed(1)} s`);
}
