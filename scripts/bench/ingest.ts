// `bun run bench ingest` measures how fast provider events are accepted: requests of 500 events and of one, for one
// partner and for a thousand, against a real API process. Each run is compared with a bare INSERT of the same rows
// into the same tables, in as many transactions and over as many connections. Every partner has a subscription.
//   --large N (40), --single N (6000): requests per scenario; --connections N (16); --tree PATH: the checkout that runs
import { connect, type RawDb } from "../../db/client.ts";
import { latencies, prepare, sendAccepted, waitsOf } from "./load.ts";
import {
  cpuMsOf,
  cpuMsOfTree,
  readArguments,
  round,
  withRig,
  writeResult,
  type Rig,
} from "./rig.ts";
import { addPartners, addProvider, subscribe, type Partner, type Sign } from "./tenants.ts";

const defaults = { large: 40, single: 6_000, connections: 16 };
const { large, single, connections, tree } = readArguments(defaults);
const PARTNERS = 1_000;
const LARGE = { perRequest: 500, count: large };
const SINGLE = { perRequest: 1, count: single };

/** Tables in the order of their foreign keys; each event is one row in each. */
const TABLES = [
  ["provider_events", "id"],
  ["reviews", "external_review_id"],
  ["review_history", "review->>'external_review_id'"],
] as const;

interface Scenario {
  readonly name: string;
  readonly sites: readonly Partner[];
  readonly perRequest: number;
  /** How many requests are sent. */
  readonly count: number;
}

await withRig({ tree, env: { RATE_LIMITS: "off", LOG_LEVEL: "error" } }, async (rig) => {
  const api = await rig.start("api");
  const sign = await addProvider(rig);
  const sites = await addPartners(rig.db, PARTNERS);
  const urls = sites.map(() => "http://127.0.0.1:3999/");
  await subscribe(rig, urls, sites);
  const hot = sites.slice(0, 1);
  for (const warmUp of [
    { name: "warm-up", sites, perRequest: 1, count: 200 },
    { name: "warm-up-large", sites, perRequest: 500, count: 4 },
  ])
    await send(rig, sign, warmUp);
  const rows = [];
  for (const scenario of [
    { name: "500 events, one partner", sites: hot, ...LARGE },
    { name: `500 events, ${PARTNERS} partners`, sites, ...LARGE },
    { name: "1 event, one partner", sites: hot, ...SINGLE },
    { name: `1 event, ${PARTNERS} partners`, sites, ...SINGLE },
  ])
    rows.push(await measure(rig, sign, scenario, api.pid));
  console.log(`${connections} connections; each event is one row in ${TABLES.length} tables.`);
  console.table(rows);
  writeResult("ingest", { connections, results: rows });
});

function send(rig: Rig, sign: Sign, { sites, ...scenario }: Scenario) {
  return sendAccepted(rig.root, prepare(sign, sites, scenario), { clients: connections });
}

async function measure(rig: Rig, sign: Sign, scenario: Scenario, api: number | undefined) {
  const cpu = () => [cpuMsOf(api), cpuMsOfTree(rig.stores.postmaster)] as const;
  const [apiBefore, postgresBefore] = cpu();
  const offered = await send(rig, sign, scenario);
  const [apiAfter, postgresAfter] = cpu();
  const { p50Ms, p95Ms } = latencies(waitsOf(offered));
  const seconds = (offered.endedAt - offered.startedAt) / 1_000;
  const bareSeconds = await bareInserts(rig, await takeRows(rig.db, scenario));
  const events = scenario.perRequest * scenario.count;
  return {
    name: scenario.name,
    events,
    eventsPerSecond: round(events / seconds),
    p50Ms,
    p95Ms,
    apiCpuUs: round(((apiAfter - apiBefore) * 1_000) / events, 1),
    postgresCpuUs: round(((postgresAfter - postgresBefore) * 1_000) / events, 1),
    bareEventsPerSecond: round(events / bareSeconds),
    ratio: round(bareSeconds / seconds, 2),
  };
}

/** Deletes the rows of a scenario from the tables and returns them as JSON per table and chunk. */
async function takeRows(db: RawDb, { name, perRequest, count }: Scenario): Promise<string[][]> {
  const chunks = Array.from({ length: count }, (): string[] => []);
  for (const [table, key] of TABLES) {
    const rows = await db.sql.unsafe<{ row: string }[]>(
      `select to_json(t)::text as row from ${table} t where ${key} like $1 order by ${key}`,
      [`${name}-%`],
    );
    if (rows.length !== perRequest * count)
      throw new Error(`${table} has ${rows.length} rows of ${name}.`);
    for (const [n, chunk] of chunks.entries()) {
      const part = rows.slice(n * perRequest, (n + 1) * perRequest).map(({ row }) => row);
      chunk.push(`[${part.join(",")}]`);
    }
  }
  await db.transaction(async (tx) => {
    // Foreign keys are not checked, because all referencing rows are deleted, too.
    await tx.sql`set local session_replication_role = replica`;
    for (const [table, key] of TABLES.toReversed())
      await tx.sql.unsafe(`delete from ${table} t where ${key} like $1`, [`${name}-%`]);
  });
  for (const [table] of TABLES) await db.sql.unsafe(`vacuum analyze ${table}`);
  return chunks;
}

/** Inserts with one statement per table and chunk, in one transaction per chunk. Returns the time in s. */
async function bareInserts(
  { stores }: Rig,
  chunks: readonly (readonly string[])[],
): Promise<number> {
  const pool = connect(stores.databaseUrl, { max: connections, name: "bench-bare" });
  const left = chunks.values();
  const worker = async () => {
    for (const chunk of left)
      await pool.transaction(async (tx) => {
        for (const [i, [table]] of TABLES.entries())
          await tx.sql`
            insert into ${tx.sql(table)} overriding system value
            select * from json_populate_recordset(null::${tx.sql(table)}, ${chunk[i] ?? "[]"}::text::json)`;
      });
  };
  await pool.sql`select 1`;
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: connections }, worker));
  const seconds = (performance.now() - startedAt) / 1_000;
  await pool.close();
  return seconds;
}
