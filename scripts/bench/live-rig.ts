// The setup of `bun run bench live`, and what a load costs: CPU time by process, and blocks, WAL and statements of the
// database.
import type { ChildProcess } from "node:child_process";

import type { RawDb } from "../../db/client.ts";
import {
  cpuMsOf,
  cpuMsOfTree,
  numberOf,
  readArguments,
  type Rig,
  round,
  withRig,
  wrongUsage,
} from "./rig.ts";
import { hostsOf, type Sink, startSink } from "./sink.ts";
import {
  addPartners,
  addProvider,
  type BenchSubscription,
  type Partner,
  type Sign,
  subscribe,
} from "./tenants.ts";

/** The parts in their order. */
const PARTS = ["a", "c", "b", "i"] as const;
type Part = (typeof PARTS)[number];

export function readOptions() {
  const read = readArguments({
    only: PARTS.join(","),
    rows: 1_000_000,
    seconds: 8,
    clients: 64,
    rates: "200",
    postgres: "18",
    label: "",
    soak: "",
    rate: 200,
  });
  const wanted = read.only.split(",");
  const unknown = wanted.filter((one) => !PARTS.some((part) => part === one));
  if (unknown.length > 0) throw wrongUsage(`There is no part ${unknown.join(", ")}`);
  return {
    ...read,
    parts: PARTS.filter((part): part is Part => wanted.includes(part)),
    rates: read.rates.split(",").map((rate) => numberOf("--rates", rate)),
    soakMs: read.soak === "" ? undefined : durationMs("--soak", read.soak),
  };
}

type Options = ReturnType<typeof readOptions>;

function durationMs(name: string, text: string): number {
  const [, count, unit = ""] = /^(\d+)([smh])$/.exec(text) ?? [];
  const units: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000 };
  if (count === undefined)
    throw wrongUsage(`${name} must be a time such as 90s, 10m or 1h, not ${text}`);
  return Number(count) * (units[unit] ?? 0);
}

/** A partner with one subscription and one host. */
interface Tenant extends Partner, BenchSubscription {
  readonly host: string;
}

export interface LiveRig extends Rig {
  readonly options: Options;
  /** Whether `pg_stat_statements` counts statements. */
  readonly counted: boolean;
  readonly api: ChildProcess;
  readonly dispatcher: ChildProcess;
  readonly sink: Sink;
  readonly sign: Sign;
  readonly tenants: readonly Tenant[];
  /** Aborts on a request to stop. */
  readonly stop: AbortSignal;
  say(text: string): void;
}

export const TENANTS = 100;

const STATEMENTS = [
  "shared_preload_libraries=pg_stat_statements",
  "pg_stat_statements.track_planning=on",
];
/** Settings of a soak: dead rows are vacuumed every few seconds, and retries occur within its duration. */
const AUTOVACUUM = ["autovacuum_naptime=5s", "autovacuum_vacuum_cost_delay=0"];
const SOAK_ENV = { RETRY_DELAYS_MS: "2000,4000,8000" };

/** Starts the stores and the product, runs `work`, and stops everything even if `work` throws. */
export function withLiveRig<T>(
  options: Options,
  stop: AbortSignal,
  work: (rig: LiveRig) => Promise<T>,
): Promise<T> {
  const startedAt = performance.now();
  const say = (text: string) =>
    console.log(`${((performance.now() - startedAt) / 1_000).toFixed(1).padStart(6)} s  ${text}`);
  const { tree, postgres, soakMs } = options;
  const settings = [...STATEMENTS, ...(soakMs === undefined ? [] : AUTOVACUUM)];
  const env = soakMs === undefined ? {} : SOAK_ENV;
  say(`Starting the stores, the API and a dispatcher of ${tree} …`);
  return withRig({ tree, postgres, settings, env }, async (rig) => {
    const sink = await startSink();
    rig.atEnd(sink.stop);
    const [api, dispatcher] = await Promise.all([rig.start("api"), rig.start("dispatcher")]);
    const sign = await addProvider(rig);
    say(`${rig.stores.kind}. Adding ${TENANTS} partners …`);
    const tenants = await addTenants(rig, sink);
    const counted = await countStatements(rig.db);
    rig.atEnd(() => say("Stopping …"));
    return work({ ...rig, options, counted, api, dispatcher, sink, sign, tenants, stop, say });
  });
}

async function addTenants(rig: Rig, sink: Sink): Promise<Tenant[]> {
  const partners = await addPartners(rig.db, TENANTS);
  const subscriptions = await subscribe(rig, hostsOf(sink.port, TENANTS), partners);
  return subscriptions.map((one, n) => ({
    ...one,
    siteId: partners[n]?.siteId ?? 0,
    host: new URL(one.url).hostname,
  }));
}

/** Creates the extension. Returns whether it counts statements. */
async function countStatements(db: RawDb): Promise<boolean> {
  try {
    await db.sql`create extension if not exists pg_stat_statements`;
    await db.sql`select pg_stat_statements_reset()`;
    return true;
  } catch {
    return false;
  }
}

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
    redis: cpuMsOf(stores.redisPid),
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

async function countedOf(db: RawDb) {
  const [row] = await db.sql<{ blocks: number; statements: number }[]>`
    select sum(shared_blks_hit + shared_blks_read)::float8 as blocks,
           sum(calls) filter (
             where query !~* '^\\s*(begin|commit|rollback|set|reset|discard)')::float8 as statements
      from pg_stat_statements where dbid = (select oid from pg_database where datname = current_database())`;
  return row;
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

export async function resetStatements({ db, counted }: LiveRig): Promise<void> {
  if (counted) await db.sql`select pg_stat_statements_reset()`;
}

const TOP = 10;
const SHOWN_CHARS = 110;

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
