// Measures the cost of a load: CPU time by process, and blocks, WAL and statements of the database.
import type { RawDb } from "../../../db/client.ts";
import { round } from "../figures.ts";
import { cpuMsOf, cpuMsOfTree } from "../cpu.ts";
import type { LiveRig } from "./rig.ts";

const PROCESSES = ["api", "dispatcher", "postgres", "redis", "driver", "receivers"] as const;
type ProcessName = (typeof PROCESSES)[number];

type Usage = Awaited<ReturnType<typeof readUsage>>;

/**
 * Reads the CPU time in ms by process, and counters of the database. Blocks are counted by `pg_stat_statements`;
 * without it, by the server's own counters, which are updated late. Statements that begin or end a transaction are not
 * counted.
 */
export async function readUsage({ stores, counted: isCounted, api, dispatcher, sink }: LiveRig) {
  const { user, system } = process.cpuUsage();
  const cpu = {
    api: cpuMsOf(api.pid),
    dispatcher: cpuMsOf(dispatcher.pid),
    postgres: cpuMsOfTree(stores.postmaster),
    redis: stores.redisCpu(),
    driver: (user + system) / 1_000,
    receivers: (await sink.count()).cpuMs,
  };
  const [row] = await stores.db.sql<{ blocks: number; walBytes: number; commits: number }[]>`
    select (blks_hit + blks_read)::float8 as blocks, xact_commit::float8 as commits,
           pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 as "walBytes"
      from pg_stat_database where datname = current_database()`;
  const counted = isCounted ? await countedOf(stores.db) : undefined;
  return {
    cpu,
    blocks: counted?.blocks ?? row?.blocks ?? Number.NaN,
    walBytes: row?.walBytes ?? Number.NaN,
    statements: counted?.statements ?? Number.NaN,
    commits: row?.commits ?? Number.NaN,
    redisCommands: await stores.redisCommands(),
  };
}

const IS_BRACKET = "query ~* '^\\s*(begin|commit|rollback|set|reset|discard)'";

async function countedOf(db: RawDb): Promise<{ blocks: number; statements: number }> {
  const [row] = await db.sql.unsafe<{ blocks: number; statements: number }[]>(`
    select sum(shared_blks_hit + shared_blks_read)::float8 as blocks,
           sum(calls) filter (where not ${IS_BRACKET})::float8 as statements
      from pg_stat_statements where dbid = (select oid from pg_database where datname = current_database())`);
  return row ?? { blocks: Number.NaN, statements: Number.NaN };
}

/** Returns the cost per event of a load, or per second without load. */
export function costOfEach(before: Usage, after: Usage, events: number) {
  const each = (of: (usage: Usage) => number, digits = 1) =>
    round((of(after) - of(before)) / events, digits);
  const us = (name: ProcessName) => each((usage) => usage.cpu[name] * 1_000, 0);
  const cpuUs = Object.fromEntries(PROCESSES.map((name) => [name, us(name)]));
  const { api = 0, dispatcher = 0, postgres = 0, redis = 0 } = cpuUs;
  return {
    cpuUs: cpuUs as Record<ProcessName, number>,
    productUs: api + dispatcher + postgres + redis,
    blocks: each((usage) => usage.blocks),
    walBytes: each((usage) => usage.walBytes, 0),
    statements: each((usage) => usage.statements, 2),
    commits: each((usage) => usage.commits, 2),
    commands: each((usage) => usage.redisCommands, 2),
  };
}

const TOP = 10;
const SHOWN_CHARS = 110;

/** Returns how often each statement ran since the last reset, by its id. */
export async function callsOf({ db, counted }: LiveRig): Promise<Map<string, number>> {
  if (!counted) return new Map();
  const found = await db.sql.unsafe<{ id: string; calls: number }[]>(`
    select queryid::text as id, sum(calls)::float8 as calls
      from pg_stat_statements
     where dbid = (select oid from pg_database where datname = current_database()) and not ${IS_BRACKET}
     group by 1`);
  return new Map(found.map(({ id, calls }) => [id, calls]));
}

export async function resetStatements({ db, counted }: LiveRig): Promise<void> {
  if (counted) await db.sql`select pg_stat_statements_reset()`;
}

export type TopStatement = Awaited<ReturnType<typeof topStatements>>[number];

/** Returns the statements with the most execution time since the last reset. */
export async function topStatements({ db, counted }: LiveRig, events: number) {
  if (!counted) return [];
  const rows = await db.sql<
    { calls: number; ms: number; planMs: number; blocks: number; query: string }[]
  >`
    select calls::float8 as calls, total_exec_time as ms, total_plan_time as "planMs",
           (shared_blks_hit + shared_blks_read)::float8 as blocks, query
      from pg_stat_statements
     where dbid = (select oid from pg_database where datname = current_database())
     order by total_exec_time + total_plan_time desc limit ${TOP}`;
  return rows.map(({ calls, ms, planMs, blocks, query }) => ({
    perEvent: round(calls / events, 2),
    usPerEvent: round((ms * 1_000) / events, 1),
    planUsPerEvent: round((planMs * 1_000) / events, 1),
    blocksPerEvent: round(blocks / events, 1),
    text: query.replaceAll(/\s+/g, " ").slice(0, SHOWN_CHARS),
  }));
}
