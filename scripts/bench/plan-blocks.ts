// How many blocks the statements of one call read. The counters of the server's transaction count them, so that foreign
// keys and parts that run at the end belong to it; `explain` gives the plan and its price.
import type { Db, RawDb, RawTx } from "../../db/client.ts";
import type { PlanCase } from "./plan-reads.ts";

export type PlanMode = "force_generic_plan" | "force_custom_plan";

export interface Reading {
  /** Shared blocks, found in memory or read. */
  readonly blocks: number;
  /** The highest that the planner expected; JIT begins at 100,000. */
  readonly cost: number;
  readonly ms: number;
  /** Of each statement, as text. */
  readonly plans: readonly string[];
}

/** Above this the server would compile a plan, which takes longer than any of these statements. */
export const JIT_COST = 100_000;

interface Sent {
  readonly text: string;
  readonly parameters: readonly unknown[];
}

/** A pool of one connection, and what was sent over it. */
export interface WatchedDb {
  readonly db: RawDb;
  readonly sent: Sent[];
}

/** Runs the case and undoes it. */
export async function readingOf(
  { db, sent }: WatchedDb,
  one: PlanCase,
  mode: PlanMode,
): Promise<Reading> {
  let [blocks, ms] = [0, 0];
  let ran: Sent[] = [];
  // What a session reads once, the catalog and the height of each index, belongs to no statement.
  await runOnce(db, one, mode);
  await undone(db, async (tx) => {
    await prepare(tx, one, mode);
    const before = await blocksRead(tx);
    sent.length = 0;
    const startedMs = performance.now();
    await one.run(within(tx));
    ms = performance.now() - startedMs;
    ran = sent.filter(({ text }) => !/^savepoint/i.test(text));
    blocks = (await blocksRead(tx)) - before;
  });
  const explained: { text: string; cost: number }[] = [];
  await undone(db, async (tx) => {
    await prepare(tx, one, mode);
    for (const [i, statement] of ran.entries()) explained.push(await explain(tx, statement, i));
  });
  return {
    blocks,
    ms,
    cost: Math.max(0, ...explained.map(({ cost }) => cost)),
    plans: explained.map(({ text }) => text),
  };
}

/** Runs it once, so that the connection keeps the plans that are made now. */
export function keepPlans({ db }: WatchedDb, one: PlanCase): Promise<void> {
  return runOnce(db, one, "force_generic_plan");
}

function runOnce(db: RawDb, one: PlanCase, mode: PlanMode): Promise<void> {
  return undone(db, async (tx) => {
    await prepare(tx, one, mode);
    await one.run(within(tx));
  });
}

async function prepare({ sql }: RawTx, one: PlanCase, mode: PlanMode): Promise<void> {
  await sql.unsafe(`set local plan_cache_mode = ${mode}`);
  if (one.plansLookUps) await sql.unsafe("set local enable_seqscan = off; set local jit = off");
}

class Undo extends Error {}

async function undone(db: RawDb, work: (tx: RawTx) => Promise<void>): Promise<void> {
  try {
    await db.transaction(async (tx) => {
      await work(tx);
      throw new Undo();
    });
  } catch (error) {
    if (!(error instanceof Undo)) throw error;
  }
}

/** What opens transactions of its own stays in this one. */
function within(tx: RawTx): Db {
  return Object.assign(Object.create(tx), {
    transaction: <T>(work: (inner: RawTx) => Promise<T>) => work(tx),
    close: async () => {},
  });
}

async function blocksRead({ sql }: RawTx): Promise<number> {
  const [row] = await sql<{ blocks: number }[]>`
    select coalesce(sum(pg_stat_get_xact_blocks_fetched(oid)), 0)::int as blocks from pg_class
     where relnamespace in ('public'::regnamespace, 'pg_toast'::regnamespace)`;
  return row?.blocks ?? 0;
}

interface Plan {
  readonly "Node Type": string;
  readonly "Subplan Name"?: string;
  readonly "Index Name"?: string;
  readonly "Relation Name"?: string;
  readonly "CTE Name"?: string;
  readonly "Total Cost": number;
  readonly "Plan Rows": number;
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Shared Hit Blocks": number;
  readonly "Shared Read Blocks": number;
  readonly Plans?: readonly Plan[];
}

async function explain(tx: RawTx, { text, parameters }: Sent, at: number) {
  const name = `plan_${at}`;
  const types = parameters.map(typeName).join(", ");
  const values = parameters.map(literal).join(", ");
  await tx.sql.unsafe(`prepare ${name}${types && ` (${types})`} as ${text}`);
  const execute = `execute ${name}${values && ` (${values})`}`;
  const [row] = await tx.sql.unsafe(`explain (analyze, buffers, format json) ${execute}`);
  await tx.sql.unsafe(`deallocate ${name}`);
  const [found] = (row?.["QUERY PLAN"] ?? []) as { Plan: Plan }[];
  if (found === undefined) throw new Error("Explain answers a plan.");
  return { text: outline(found.Plan).join("\n"), cost: found.Plan["Total Cost"] };
}

/** A line for each node: what it is, what was expected and what came, and the blocks. */
function outline(node: Plan, depth = 0): string[] {
  const { Plans: inner = [], ...own } = node;
  const on = own["Index Name"] ?? own["Relation Name"] ?? own["CTE Name"] ?? "";
  const blocks = own["Shared Hit Blocks"] + own["Shared Read Blocks"];
  const figures = `cost ${own["Total Cost"]}, rows ${own["Plan Rows"]} / ${own["Actual Rows"]} x ${own["Actual Loops"]}, ${blocks} blocks`;
  const line = `${"  ".repeat(depth)}${own["Subplan Name"] ?? ""} ${own["Node Type"]} ${on} (${figures})`;
  return [line, ...inner.flatMap((one) => outline(one, depth + 1))];
}

/** As the driver tells the server. */
function typeName(value: unknown): string {
  if (value instanceof Date) return "timestamptz";
  return typeof value === "boolean" ? "boolean" : "unknown";
}

function literal(value: unknown): string {
  if (value === null || value === undefined) return "null";
  return `'${plain(value).replaceAll("'", "''")}'`;
}

function plain(value: unknown): string {
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return `{${value.map((one) => JSON.stringify(one)).join(",")}}`;
  return String(value);
}
