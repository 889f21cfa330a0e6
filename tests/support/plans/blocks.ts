// Counts the blocks that the statements of one case read. The counts come from the server's statistics of the
// transaction, so they include foreign-key checks and deferred work; `explain` provides plan and cost.
import type { Db, RawDb, RawTx } from "../../../db/client.ts";
import type { PlanCase } from "./reads.ts";

export type PlanMode = "force_generic_plan" | "force_custom_plan";

export interface Reading {
  /** Shared blocks, found in memory or read. */
  readonly blocks: number;
  readonly ms: number;
  /** The plan of each statement, as text. */
  readonly plans: readonly string[];
}

interface Sent {
  readonly text: string;
  readonly parameters: readonly unknown[];
}

/** A pool of one connection that records its statements. */
export interface WatchedDb {
  readonly db: RawDb;
  readonly sent: Sent[];
}

/** Runs the case, measures it, and rolls it back. */
export async function readingOf(
  { db, sent }: WatchedDb,
  one: PlanCase,
  mode: PlanMode,
): Promise<Reading> {
  let [blocks, ms] = [0, 0];
  let ran: Sent[] = [];
  // A first run warms the session: it reads the catalog and index metadata once.
  await runOnce(db, one, mode);
  await undone(db, async (tx) => {
    await tx.sql.unsafe(`set local plan_cache_mode = ${mode}`);
    const before = await blocksRead(tx);
    sent.length = 0;
    const startedMs = performance.now();
    await one.run(within(tx));
    ms = performance.now() - startedMs;
    ran = sent.filter(({ text }) => !/^(savepoint|set transaction)/i.test(text));
    blocks = (await blocksRead(tx)) - before;
  });
  const plans: string[] = [];
  await undone(db, async (tx) => {
    await tx.sql.unsafe(`set local plan_cache_mode = ${mode}`);
    for (const [i, statement] of ran.entries()) plans.push(await explain(tx, statement, i));
  });
  return { blocks, ms, plans };
}

/** Runs the case once, so that the connection caches plans based on the present statistics. */
export function keepPlans({ db }: WatchedDb, one: PlanCase): Promise<void> {
  return runOnce(db, one, "force_generic_plan");
}

function runOnce(db: RawDb, one: PlanCase, mode: PlanMode): Promise<void> {
  return undone(db, async (tx) => {
    await tx.sql.unsafe(`set local plan_cache_mode = ${mode}`);
    await one.run(within(tx));
  });
}

class Undo extends Error {}

async function undone(db: RawDb, work: (tx: RawTx) => Promise<void>): Promise<void> {
  try {
    await db.transaction(async (tx) => {
      // A case may demand this level, which cannot change any more once the transaction has read something.
      await tx.sql`set transaction isolation level repeatable read`;
      await work(tx);
      throw new Undo();
    });
  } catch (error) {
    if (!(error instanceof Undo)) throw error;
  }
}

/** Returns a database whose transactions run inside this one. */
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
  return outline(found.Plan).join("\n");
}

/** Formats one line per node: type, expected and actual rows, and blocks. */
function outline(node: Plan, depth = 0): string[] {
  const { Plans: inner = [], ...own } = node;
  const on = own["Index Name"] ?? own["Relation Name"] ?? own["CTE Name"] ?? "";
  const blocks = own["Shared Hit Blocks"] + own["Shared Read Blocks"];
  const figures = `cost ${own["Total Cost"]}, rows ${own["Plan Rows"]} / ${own["Actual Rows"]} x ${own["Actual Loops"]}, ${blocks} blocks`;
  const line = `${"  ".repeat(depth)}${own["Subplan Name"] ?? ""} ${own["Node Type"]} ${on} (${figures})`;
  return [line, ...inner.flatMap((one) => outline(one, depth + 1))];
}

/** Returns the type that the driver declares for a parameter. */
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
