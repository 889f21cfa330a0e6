import { readMigrationFiles, type MigrationMeta } from "drizzle-orm/migrator";

import { connect, isPooled, type RawDb, type RawTx } from "./client.ts";
import { isLockTimeout, isForbidden } from "./errors.ts";
import { PLANNER } from "./limits.ts";
import { ensurePartitions } from "./partitions.ts";
import { serverTime } from "./server.ts";
import type { Raw } from "./session.ts";

/** A database has migrations that this version does not know: nothing leads from them to its schema. */
export class ForeignSchemaError extends Error {
  override readonly name = "ForeignSchemaError";

  constructor() {
    super(FOREIGN_SCHEMA);
  }
}

/**
 * Brings a database to the current schema, behind a pooler too; one that a later version has brought further stays as it
 * is. Any number of processes may call it at once: one works, the rest wait. Throws a ForeignSchemaError where it cannot.
 */
export async function migrate(databaseUrl: string): Promise<void> {
  const db = connect(databaseUrl, { max: 1, name: "reviewrelay-migrate" });
  try {
    await withPatience(db, async (tx) => {
      // Of the transaction, because a pooler's session is not ours to keep.
      await tx.sql`select pg_advisory_xact_lock(hashtext('reviewrelay:migrate'))`;
      const state = await schemaState(tx);
      if (state.kind === "foreign") throw new ForeignSchemaError();
      await applyMigrations(tx);
      // Statements outside of a transaction find these in the sessions of the pooler.
      if (isPooled(databaseUrl))
        for (const [name, value] of Object.entries(PLANNER))
          await tx.sql.unsafe(`alter role current_user set ${name} = ${value}`);
    });
    await ensurePartitions(db, await serverTime(db));
  } finally {
    await db.close();
  }
}

/** Whoever comes after a change that waits for its lock waits as well: after so long it gives up its place. */
const LOCK_MS = 1_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;
/** A reader of hours is not waited for. */
const PATIENCE_MS = 300_000;

/**
 * Runs `work` in a transaction; if a lock cannot be had, all of it again after a pause in which others get their turn.
 * Fails like the last try after five minutes.
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

/** As drizzle-orm's own migrator does, which wants a session for itself. */
async function applyMigrations({ sql }: RawTx): Promise<void> {
  await sql`create schema if not exists drizzle`;
  await sql`
    create table if not exists drizzle.__drizzle_migrations
      (id serial primary key, hash text not null, created_at bigint)`;
  const [last] = await sql<{ at: number | null }[]>`
    select max(created_at) as at from drizzle.__drizzle_migrations`;
  for (const { sql: statements, hash, folderMillis } of ownMigrations()) {
    if (folderMillis <= (last?.at ?? 0)) continue;
    for (const one of statements) await sql.unsafe(one);
    await sql`
      insert into drizzle.__drizzle_migrations (hash, created_at) values (${hash}, ${folderMillis})`;
  }
}

const FOLDER = { migrationsFolder: `${import.meta.dir}/migrations` };

export const FOREIGN_SCHEMA =
  "This database was made by another version of ReviewRelay, whose migrations this version does not have.\n" +
  "Use a fresh one: an empty database as DATABASE_URL or, with the embedded store, a new DATA_DIR.";

/**
 * How the schema of a database stands to this version: `behind` by so many migrations, `ahead` of it where a later
 * version has migrated (what it did lets this version go on working), `foreign` where their histories part, `hidden`
 * from a user who may not read the list of migrations.
 */
export type SchemaState =
  | { readonly kind: "current" }
  | { readonly kind: "behind" | "ahead"; readonly by: number }
  | { readonly kind: "foreign" | "hidden" };

export function ownMigrations(): MigrationMeta[] {
  return readMigrationFiles(FOLDER);
}

export async function schemaState({ sql }: Raw): Promise<SchemaState> {
  const [known] =
    await sql`select from pg_tables where schemaname = 'drizzle' and tablename = '__drizzle_migrations'`;
  const own = ownMigrations().map(({ folderMillis }) => folderMillis);
  if (known === undefined) return compareSchemas([], own);
  try {
    const rows = await sql<{ at: number }[]>`
      select created_at as at from drizzle.__drizzle_migrations order by created_at`;
    return compareSchemas(
      rows.map(({ at }) => at),
      own,
    );
  } catch (error) {
    if (isForbidden(error)) return { kind: "hidden" };
    throw error;
  }
}

/** Of two histories of one line the shorter is the beginning of the longer. */
export function compareSchemas(applied: readonly number[], own: readonly number[]): SchemaState {
  const common = Math.min(applied.length, own.length);
  for (let i = 0; i < common; i++) if (applied[i] !== own[i]) return { kind: "foreign" };
  const by = Math.abs(applied.length - own.length);
  if (by === 0) return { kind: "current" };
  return { kind: applied.length < own.length ? "behind" : "ahead", by };
}

/** What to do before a process can work on this database; nothing if it can, or if that cannot be told. */
export async function schemaError(db: Raw): Promise<string | undefined> {
  const state = await schemaState(db);
  if (state.kind === "foreign") return FOREIGN_SCHEMA;
  if (state.kind !== "behind") return undefined;
  const lacks = `${state.by} ${state.by === 1 ? "migration" : "migrations"}`;
  return `The database lacks ${lacks} of this version: run \`bun run migrate\` first. Processes of the version before may go on meanwhile.`;
}
