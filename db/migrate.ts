import { readFileSync } from "node:fs";
import { join } from "node:path";

import { readMigrationFiles } from "drizzle-orm/migrator";

import { commandLine, ROOT } from "./executable.ts";

import { connect, isPooled, type RawDb, type RawTx } from "./client.ts";
import { isLockTimeout, isForbidden } from "./errors.ts";
import { PLANNER } from "./limits.ts";
import { ensurePartitions } from "./partitions.ts";
import { serverTime } from "./server.ts";
import type { Raw } from "./session.ts";

/** The database has migrations that this version does not know, so no migration leads to its schema. */
export class ForeignSchemaError extends Error {
  override readonly name = "ForeignSchemaError";
}

/**
 * Migrates a database to the current schema, also behind a pooler. A database that a later version has migrated
 * further stays unchanged. If several processes call this at the same time, one migrates and the others wait. Throws
 * a ForeignSchemaError if the migrations of the database differ from those of this version.
 */
export async function migrate(databaseUrl: string): Promise<void> {
  const db = connect(databaseUrl, { max: 1, name: "reviewrelay-migrate" });
  try {
    await withPatience(db, async (tx) => {
      // The lock belongs to the transaction, because the session of a pooler is shared.
      await tx.sql`select pg_advisory_xact_lock(hashtext('reviewrelay:migrate'))`;
      const state = await schemaState(tx);
      if (state.kind === "foreign") throw new ForeignSchemaError(FOREIGN_SCHEMA);
      if (state.kind === "old") await tx.sql.unsafe(await Bun.file(UPGRADE).text());
      await applyMigrations(tx);
      // Sessions of a pooler get the planner settings from the role, for statements outside of transactions.
      if (isPooled(databaseUrl))
        for (const [name, value] of Object.entries(PLANNER))
          await tx.sql.unsafe(`alter role current_user set ${name} = ${value}`);
    });
    await ensurePartitions(db, await serverTime(db));
  } finally {
    await db.close();
  }
}

/**
 * The lock timeout of one try in milliseconds. A schema change that waits for its lock blocks all later statements on
 * the table, so it gives up soon and tries again.
 */
const LOCK_MS = 1_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;
/** The time limit in milliseconds for all tries. A transaction that holds the lock for hours is not waited for. */
const PATIENCE_MS = 300_000;

/**
 * Runs `work` in a transaction. After a lock timeout it repeats all of `work`, after a pause in which other
 * statements can run. Throws the error of the last try after five minutes.
 */
export async function withPatience<T>(
  db: RawDb,
  work: (tx: RawTx) => Promise<T>,
  patienceMs = PATIENCE_MS,
): Promise<T> {
  const endMs = performance.now() + patienceMs;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    try {
      return await db.transaction(async (tx) => {
        await tx.sql.unsafe(`set local lock_timeout = ${LOCK_MS}; set local statement_timeout = 0`);
        return work(tx);
      });
    } catch (error) {
      if (!isLockTimeout(error) || performance.now() + pauseMs > endMs) throw error;
      await Bun.sleep(pauseMs);
    }
  }
}

/**
 * Applies migrations like drizzle-orm's migrator, which needs a session of its own and therefore fails behind a
 * pooler.
 */
async function applyMigrations({ sql }: RawTx): Promise<void> {
  const list = await schemaOfList(sql);
  if (list === DEFAULT_LIST) await sql`create schema if not exists ${sql(list)}`;
  await sql`
    create table if not exists ${sql(list)}.__drizzle_migrations
      (id serial primary key, hash text not null, created_at bigint)`;
  const [last] = await sql<{ at: number | null }[]>`
    select max(created_at) as at from ${sql(list)}.__drizzle_migrations`;
  for (const { sql: statements, hash, folderMillis } of readMigrationFiles(FOLDER)) {
    if (folderMillis <= (last?.at ?? 0)) continue;
    // drizzle-kit names `public` in foreign keys. Without it, all tables are made in the first schema of the search path.
    for (const one of statements) await sql.unsafe(one.replaceAll('"public".', ""));
    await sql`
      insert into ${sql(list)}.__drizzle_migrations (hash, created_at) values (${hash}, ${folderMillis})`;
  }
}

/** The schema of drizzle-orm's migrator for its list of migrations. */
const DEFAULT_LIST = "drizzle";

/**
 * Returns the schema that holds the list of migrations. Beside a platform's tables in `public`, the product has a schema
 * of its own, which then holds the list, too: the platform may use drizzle-orm itself.
 */
async function schemaOfList(sql: Raw["sql"]): Promise<string> {
  const [row] = await sql<{ name: string | null }[]>`
    select nullif(current_schema(), 'public') as name`;
  return row?.name ?? DEFAULT_LIST;
}

const FOLDER = { migrationsFolder: join(ROOT, "db/migrations") };
// Read, not imported: the executable holds the journal as a file for drizzle-orm, and the bundler resolves all imports
// of one file in the same way.
const journal: { readonly entries: readonly { readonly when: number; readonly tag: string }[] } =
  JSON.parse(readFileSync(join(FOLDER.migrationsFolder, "meta/_journal.json"), "utf8"));
/** Brings a database of a version before the baseline to the baseline. */
const UPGRADE = join(ROOT, "db/upgrades/baseline.sql");
/** The first migration, and the oldest last one, of the databases that the upgrade is for. */
const OLD = { first: 1_796_040_000_000, last: 1_796_140_000_000 };

export const FOREIGN_SCHEMA =
  "This database was made by another version of ReviewRelay, whose migrations this version does not have.\n" +
  "Use a fresh one: an empty database as DATABASE_URL or, with the embedded store, a new DATA_DIR.";

export const OLD_SCHEMA =
  "This database has the schema of a version before the baseline: stop all processes, take a backup, and run " +
  `\`${commandLine("migrate")}\` (docs/operations/upgrades.md).`;

/** The name of the last migration of this version. */
export const SCHEMA_VERSION = journal.entries.at(-1)?.tag ?? "none";

/**
 * The schema of a database compared with this version:
 * - `behind`: it lacks `by` migrations;
 * - `ahead`: a later version has migrated it, in a way with which this version can work;
 * - `old`: it has the migrations from before the baseline; `migrate` upgrades it, and no process works until then;
 * - `foreign`: the two histories differ;
 * - `hidden`: the user may not read the list of migrations.
 */
export type SchemaState =
  | { readonly kind: "current" }
  | { readonly kind: "behind" | "ahead"; readonly by: number }
  | { readonly kind: "old" | "foreign" | "hidden" };

export async function schemaState({ sql }: Raw): Promise<SchemaState> {
  const list = await schemaOfList(sql);
  const [known] =
    await sql`select from pg_tables where schemaname = ${list} and tablename = '__drizzle_migrations'`;
  const own = journal.entries.map(({ when }) => when);
  if (known === undefined) return compareSchemas([], own);
  try {
    const rows = await sql<{ at: number }[]>`
      select created_at as at from ${sql(list)}.__drizzle_migrations order by created_at`;
    const applied = rows.map(({ at }) => at);
    return compareSchemas(applied, own);
  } catch (error) {
    if (isForbidden(error)) return { kind: "hidden" };
    throw error;
  }
}

/**
 * Compares two histories of migrations. If both belong to the same line of versions, the shorter history is the
 * beginning of the longer one.
 */
export function compareSchemas(applied: readonly number[], own: readonly number[]): SchemaState {
  if (applied[0] === OLD.first && applied.includes(OLD.last)) return { kind: "old" };
  if (applied.slice(0, own.length).some((at, i) => at !== own[i])) return { kind: "foreign" };
  const by = Math.abs(applied.length - own.length);
  if (by === 0) return { kind: "current" };
  return { kind: applied.length < own.length ? "behind" : "ahead", by };
}

/**
 * Returns an error message with the action that is needed before a process can use this database; undefined if no
 * action is needed, or if the schema is hidden.
 */
export async function schemaError(db: Raw): Promise<string | undefined> {
  const state = await schemaState(db);
  if (state.kind === "foreign") return FOREIGN_SCHEMA;
  if (state.kind === "old") return OLD_SCHEMA;
  if (state.kind !== "behind") return undefined;
  const lacks = `${state.by} ${state.by === 1 ? "migration" : "migrations"}`;
  return `The database lacks ${lacks} of this version: run \`${commandLine("migrate")}\` first. Processes of the version before may go on meanwhile.`;
}
