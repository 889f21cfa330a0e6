// `bun run bench ingest` measures how fast provider events are accepted: requests of 500 events and of one, for one
// partner and for a thousand, against a real API process. Each run is compared with a bare INSERT of the same rows
// into the same tables, in as many transactions and over as many connections. Every partner has a subscription.
import { createHmac } from "node:crypto";
import { parseArgs } from "node:util";

import { connect, type RawDb } from "../../db/client.ts";
import { newSecret } from "../../src/lib/secrets.ts";
import { createSecretBox } from "../../src/lib/secret-box.ts";
import { insertPlan, insertReviewSite } from "../demo/seed/rows.ts";
import { startAuthRig } from "./auth-rig.ts";
import { perDelivery } from "./figures.ts";
import { subscribe, writeResult } from "./rig.ts";

const { values } = parseArgs({
  options: {
    large: { type: "string", default: "40" },
    single: { type: "string", default: "6000" },
    connections: { type: "string", default: "16" },
  },
});
const PARTNERS = 1_000;
const LARGE = 500;
const CONNECTIONS = Number(values.connections);
const PROVIDER = "bench";

/** Tables in the order of their foreign keys; each event is one row in each. */
const TABLES = [
  ["provider_events", "id"],
  ["reviews", "external_review_id"],
  ["review_history", "review->>'external_review_id'"],
  [
    "outbox",
    "(select h.review->>'external_review_id' from review_history h where h.id = t.review_history_id)",
  ],
] as const;

interface Scenario {
  readonly name: string;
  readonly sites: readonly number[];
  readonly perRequest: number;
  readonly requests: number;
}

const rig = await startAuthRig(1);
const db = connect(rig.config.databaseUrl, { max: CONNECTIONS, name: "bench" });
const secret = newSecret();
try {
  const sites = await addSites();
  const [hot = 0] = sites;
  const large = { perRequest: LARGE, requests: Number(values.large) };
  const single = { perRequest: 1, requests: Number(values.single) };
  await api({ name: "warm-up", sites, perRequest: 1, requests: 200 });
  await api({ name: "warm-up-large", sites, perRequest: LARGE, requests: 4 });
  const results = [];
  for (const scenario of [
    { name: "500 events, one partner", sites: [hot], ...large },
    { name: `500 events, ${PARTNERS} partners`, sites, ...large },
    { name: "1 event, one partner", sites: [hot], ...single },
    { name: `1 event, ${PARTNERS} partners`, sites, ...single },
  ])
    results.push(await measure(scenario));
  report(results);
} finally {
  await db.close();
  await rig.stop();
}

/** Adds one store with one review site and one subscription per partner. */
async function addSites(): Promise<number[]> {
  const box = createSecretBox({ current: rig.config.masterKey });
  const reviewSite = { slug: PROVIDER, name: "Bench", secret };
  const reviewSiteId = await insertReviewSite(db, box, reviewSite);
  const planId = await insertPlan(db, { name: "Bench", features: [] });
  const urls = Array.from({ length: PARTNERS }, () => "http://127.0.0.1:3999/");
  const made = await subscribe(db, rig.config.masterKey, urls);
  const rows = await db.sql<{ id: number }[]>`
    with accounts as (
      insert into companies (type, name, partner_id, plan_id, primary_color, created_at)
      select 'account', 'Bench', p, ${planId}, '#000000', now()
        from unnest(${made.map(({ partnerId }) => partnerId)}::int[]) p returning id, partner_id
    ), places as (
      insert into stores (account_id, partner_id, name) select id, partner_id, 'Bench' from accounts returning *
    )
    insert into store_review_sites (store_id, review_site_id, account_id, partner_id, pull_connected, post_connected)
    select id, ${reviewSiteId}, account_id, partner_id, true, true from places returning id`;
  return rows.map(({ id }) => id);
}

interface Request {
  readonly body: string;
  readonly signature: string;
}

function requestOf({ name, sites, perRequest }: Scenario, n: number): Request {
  const at = new Date().toISOString();
  const events = Array.from({ length: perRequest }, (_, i) => {
    const id = `${name}-${n}-${i}`;
    return {
      id,
      type: "review.created",
      occurred_at: at,
      store_review_site_id: sites[(n * perRequest + i) % sites.length],
      review: {
        external_review_id: id,
        rate: (i % 5) + 1,
        reviewer: "Ada Reviewer",
        reviewer_email: "ada@homeowner.example",
        content: `Friendly people, clean work, and on time. Number ${n} of many, and ${i} of its own kind.`,
        reviewed_at: at,
      },
    };
  });
  const body = JSON.stringify({ events });
  const signature = `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
  return { body, signature };
}

interface Timed {
  readonly seconds: number;
  /** The latency of each request, sorted. */
  readonly latenciesMs: readonly number[];
}

async function inParallel(count: number, work: (n: number) => Promise<unknown>): Promise<Timed> {
  const latenciesMs: number[] = [];
  const start = performance.now();
  let next = 0;
  const worker = async () => {
    for (let n = next++; n < count; n = next++) {
      const begun = performance.now();
      await work(n);
      latenciesMs.push(performance.now() - begun);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, worker));
  const seconds = (performance.now() - start) / 1_000;
  return { seconds, latenciesMs: latenciesMs.toSorted((a, b) => a - b) };
}

async function api(scenario: Scenario): Promise<Timed> {
  const requests = Array.from({ length: scenario.requests }, (_, n) => requestOf(scenario, n));
  const url = `${rig.apiRoot}/api/v1/providers/${PROVIDER}/events`;
  return inParallel(scenario.requests, async (n) => {
    const { body = "", signature = "" } = requests[n] ?? {};
    const headers = { "Content-Type": "application/json", "X-Provider-Signature": signature };
    const response = await fetch(url, { method: "POST", headers, body });
    const text = await response.text();
    if (!response.ok || !text.includes(`"accepted":${scenario.perRequest}`))
      throw new Error(`${response.status} ${text}`);
  });
}

/** Removes the rows of a scenario from the tables and returns them as JSON per table and chunk. */
async function takeRows({ name, perRequest, requests }: Scenario): Promise<string[][]> {
  const chunks = Array.from({ length: requests }, (): string[] => []);
  const found = new Map<string, string[]>();
  for (const [table, key] of TABLES) {
    const rows = await db.sql.unsafe<{ row: string }[]>(
      `select to_json(t)::text as row from ${table} t where ${key} like $1 order by ${key}`,
      [`${name}-%`],
    );
    if (rows.length !== perRequest * requests)
      throw new Error(`${table} has ${rows.length} rows of ${name}.`);
    found.set(
      table,
      rows.map(({ row }) => row),
    );
  }
  await db.transaction(async (tx) => {
    // Foreign keys are not checked, because all referencing rows are deleted, too.
    await tx.sql`set local session_replication_role = replica`;
    for (const [table, key] of TABLES.toReversed())
      await tx.sql.unsafe(`delete from ${table} t where ${key} like $1`, [`${name}-%`]);
  });
  for (const [table] of TABLES) {
    await db.sql.unsafe(`vacuum analyze ${table}`);
    for (const [n, chunk] of chunks.entries()) {
      const rows = found.get(table)?.slice(n * perRequest, (n + 1) * perRequest) ?? [];
      chunk.push(`[${rows.join(",")}]`);
    }
  }
  return chunks;
}

/** Inserts with one statement per table and chunk, in one transaction per chunk. */
async function bare(pool: RawDb, chunks: readonly (readonly string[])[]): Promise<Timed> {
  return inParallel(chunks.length, (n) =>
    pool.transaction(async (tx) => {
      for (const [i, [table]] of TABLES.entries())
        await tx.sql`
          insert into ${tx.sql(table)} overriding system value
          select * from json_populate_recordset(null::${tx.sql(table)}, ${chunks[n]?.[i] ?? "[]"}::text::json)`;
    }),
  );
}

interface Result {
  readonly name: string;
  readonly events: number;
  readonly eventsPerSecond: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  /** User and system time per event; undefined without /proc. */
  readonly apiCpuUs: number | undefined;
  readonly postgresCpuUs: number | undefined;
  readonly bareEventsPerSecond: number;
  /** The ratio of the API's throughput to that of the bare INSERT. */
  readonly ratio: number;
}

async function measure(scenario: Scenario): Promise<Result> {
  const before = rig.cpuMs();
  const taken = await api(scenario);
  const after = rig.cpuMs();
  const inserted = await bare(db, await takeRows(scenario));
  const events = scenario.perRequest * scenario.requests;
  const at = (share: number) =>
    taken.latenciesMs[Math.ceil(share * taken.latenciesMs.length) - 1] ?? 0;
  return {
    name: scenario.name,
    events,
    eventsPerSecond: Math.round(events / taken.seconds),
    p50Ms: at(0.5),
    p95Ms: at(0.95),
    apiCpuUs: perDelivery(before.api, after.api, events),
    postgresCpuUs: perDelivery(before.postgres, after.postgres, events),
    bareEventsPerSecond: Math.round(events / inserted.seconds),
    ratio: inserted.seconds / taken.seconds,
  };
}

function report(results: readonly Result[]): void {
  console.log(`${CONNECTIONS} connections; each event is one row in ${TABLES.length} tables.\n`);
  console.log(
    "| Scenario | Events | Events/s | p50 | p95 | CPU of API, Postgres | Bare INSERT, events/s | Ratio |",
  );
  console.log("|---|---|---|---|---|---|---|---|");
  for (const one of results)
    console.log(
      `| ${one.name} | ${one.events} | ${one.eventsPerSecond} | ${one.p50Ms.toFixed(1)} ms | ${one.p95Ms.toFixed(1)} ms | ${one.apiCpuUs}, ${one.postgresCpuUs} µs | ${one.bareEventsPerSecond} | ${one.ratio.toFixed(2)} |`,
    );
  console.log(`\n${writeResult("ingest", { connections: CONNECTIONS, results })}`);
}
