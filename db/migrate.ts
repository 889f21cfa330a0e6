import { readFileSync } from "node:fs";
import { join } from "node:path";

import { readMigrationFiles } from "drizzle-orm/migrator";

import { commandLine, ROOT } from "./executable.ts";

import { connect, isPooled, type RawDb, type RawTx } from "./client.ts";
import { causeOf, isEnded, isForbidden, isLockTimeout, isTaken } from "./errors.ts";
import { LOCK_MS } from "./locks.ts";
import { ensurePartitions } from "./partitions.ts";
import { poolingFault, serverTime } from "./server.ts";
import type { Raw } from "./session.ts";
import { openingStatement, serverFault, settingsOfRole, unlimited } from "./session-settings.ts";

/** Reports that a database cannot get the schema of this version. The message contains the remedy. */
export class SchemaError extends Error {
  override readonly name = "SchemaError";
}

/**
 * Applies the migrations that a database lacks, also behind a pooler, and returns their number. Writes nothing if none
 * is missing. If several processes call this at the same time, one of them migrates and the others wait. Throws a
 * SchemaError if processes of this version could not use the result, or if the user of `url` may not migrate.
 *
 * `url` contains the user that owns the tables, and `serviceUrl` the user of the processes.
 */
export async function migrate(url: string, serviceUrl = url): Promise<number> {
  const db = connect(url, { max: 1, name: "reviewrelay-migrate" });
  try {
    const applied = await underLock(db, url, async (tx) => {
      const ground = await serverFault(tx);
      if (ground !== undefined) throw new SchemaError(ground);
      const state = await readState(tx);
      const missing = state.kind === "behind" ? state.missing : [];
      if (missing.length > 0) await applyMigrations(tx, missing);
      const fault = schemaFault(await readState(tx));
      if (fault !== undefined) throw new SchemaError(fault);
      return missing.length;
    });
    for (const one of new Set([url, serviceUrl])) if (isPooled(one)) await adoptSettings(one);
    // Creates the partitions of the next week; the dispatchers create later ones.
    if (applied > 0) await ensurePartitions(db, await serverTime(db));
    return applied;
  } catch (error) {
    const fault = isForbidden(error)
      ? await ownerNeeded(db, causeOf(error))
      : ((isEnded(error) ? await poolingFault(db).catch(() => undefined) : undefined) ??
        (await takenNames(db, error)));
    if (!fault) throw error;
    throw new SchemaError(fault);
  } finally {
    await db.close();
  }
}

/** Number of tries of a transaction whose session is ended by a concurrent `migrate` (`endOlderSessions`). */
const POOLED_TRIES = 3;

/** Runs `work` in a transaction under a lock, so that only one process at a time runs it. */
async function underLock<T>(
  db: RawDb,
  url: string,
  work: (tx: RawTx) => Promise<T>,
  tries = isPooled(url) ? POOLED_TRIES : 1,
): Promise<T> {
  try {
    return await withPatience(db, async (tx) => {
      // Behind a pooler, sets the session settings first, because the role gets them at the end of the migration.
      if (isPooled(url)) await tx.sql.unsafe(openingStatement(url, true));
      // The lock belongs to the transaction and not to the session, because a pooler shares sessions.
      await tx.sql`select pg_advisory_xact_lock(hashtext('reviewrelay:migrate'))`;
      return work(tx);
    });
  } catch (error) {
    if (tries === 1 || !isEnded(error)) throw error;
    return underLock(db, url, work, tries - 1);
  }
}

interface RoleSettings {
  readonly name: string;
  /** The search path, which contains the schema of the product. */
  readonly path: string;
  /** The names of the settings that this version of PostgreSQL has. */
  readonly known: readonly string[];
  /** The settings of the role in this database, and in every database, as `name=value`. */
  readonly here: readonly string[];
  readonly everywhere: readonly string[];
}

/** Stores the session settings in the role that a pooler uses, for statements outside of transactions. */
async function adoptSettings(url: string): Promise<void> {
  const db = connect(url, { max: 1, name: "reviewrelay-migrate" });
  try {
    const isNew = await underLock(db, url, async ({ sql }) => {
      const [row] = await sql<RoleSettings[]>`
        select current_database() as name, quote_ident(current_schema()) || ', pg_temp' as path,
               (select array_agg(name) from pg_settings) as known,
               coalesce((select setconfig from pg_db_role_setting
                          where setrole = current_user::regrole and setdatabase = d.oid), '{}') as here,
               coalesce((select rolconfig from pg_roles where rolname = current_user), '{}') as everywhere
          from pg_database d where datname = current_database()`;
      if (row === undefined) throw new Error("PostgreSQL returned no row");
      const { name: database, known, here, everywhere } = row;
      let isChanged = false;
      const set = async (text: string) => {
        isChanged = true;
        await sql.unsafe(`alter role current_user in database ${quoted(database)} set ${text}`);
      };
      for (const [name, value] of Object.entries(settingsOfRole()))
        if (known.includes(name) && !here.includes(`${name}=${value}`))
          await set(`${name} = '${value}'`);
      if (!here.includes(`search_path=${row.path}`)) await set(`search_path = ${row.path}`);
      // Time limits that an operator has set for the role are kept.
      const own = new Set([...here, ...everywhere].map((one) => one.split("=", 1)[0]));
      for (const [name, value] of Object.entries(unlimited()))
        if (!own.has(name)) await set(`${name} = '${value}'`);
      return isChanged;
    });
    if (isNew) await endOlderSessions(db, url);
  } finally {
    await db.close();
  }
}

/**
 * Ends the sessions that a pooler opened before their role got its settings, because a session keeps its initial
 * settings. A session in use is ended as soon as it is idle. Sessions that are still in use after 1 s are left to the
 * check of each process (`sessionFault`).
 */
async function endOlderSessions(db: RawDb, url: string): Promise<void> {
  // Reads the time inside a transaction. Outside of it, the search path might select a function of another schema.
  const now = await underLock(db, url, (tx) => serverTime(tx));
  for (let tried = 0; tried < 10; tried++) {
    // The session of this statement is ended last, so the statement fails.
    const left = await underLock(db, url, async ({ sql }) => {
      const [row] = await sql<{ n: number }[]>`
        select count(pg_terminate_backend(pid))::int as n
          from (select pid from pg_stat_activity
                 where datname = current_database() and usename = current_user and backend_start < ${now}
                   and (state = 'idle' or pid = pg_backend_pid())
                 order by pid = pg_backend_pid()) older`;
      return row?.n;
    }).catch(() => undefined);
    if (left === 0) return;
    await Bun.sleep(100);
  }
}

const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;

/** Returns which schema has other tables with the same names, if a migration failed for this reason. */
async function takenNames({ sql }: RawDb, error: unknown): Promise<string | undefined> {
  if (!isTaken(error)) return undefined;
  const [row] = await sql<{ schema: string }[]>`select current_schema() as schema`;
  const cause = causeOf(error);
  return (
    `Another program has tables of these names in the schema ${row?.schema} (${cause instanceof Error ? cause.message : String(cause)}): ` +
    "use a separate schema for the product (docs/operations/moving-in.md, step 1). Nothing was changed."
  );
}

/** Returns the message that only the owner of the tables may migrate, with `reason`. */
async function ownerNeeded({ sql }: RawDb, reason: unknown): Promise<string> {
  const [row] = await sql<{ user: string; owner: string }[]>`
    select current_user as user, pg_get_userbyid(coalesce(
             (select relowner from pg_class where oid = to_regclass('delivery_attempts')),
             (select datdba from pg_database where datname = current_database()))) as owner`;
  return (
    `The user ${row?.user} may not migrate the database (${reason instanceof Error ? reason.message : String(reason)}). ` +
    `Set MAINTENANCE_DATABASE_URL to the user that owns the tables, ${row?.owner} (docs/operations/production.md, "With two users").`
  );
}

/** Pauses in ms between two tries, during which other statements can run (`LOCK_MS`). */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 5_000;
/** Time limit in ms for all tries together. A transaction that holds the lock for hours is not waited for. */
const PATIENCE_MS = 300_000;

/**
 * Runs `work` in a transaction. After a lock timeout it runs all of `work` again, after a pause in which other
 * statements can run. Throws the error of the last try after `patienceMs`.
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
 * Applies migrations in the order of the journal and records them in the list of drizzle-orm's migrator. That migrator
 * itself needs a dedicated session, so it fails behind a pooler.
 */
async function applyMigrations({ sql }: RawTx, missing: readonly Migration[]): Promise<void> {
  const list = await schemaOfList(sql);
  const [schema] = await sql`select from pg_namespace where nspname = ${list}`;
  if (schema === undefined) await sql`create schema ${sql(list)}`;
  await sql`
    create table if not exists ${sql(list)}.__drizzle_migrations
      (id serial primary key, hash text not null, created_at bigint)`;
  const times = new Set(missing.map(({ at }) => at));
  for (const { sql: statements, hash, folderMillis } of readMigrationFiles(FOLDER)) {
    if (!times.has(folderMillis)) continue;
    // Removes `public`, which drizzle-kit writes into foreign keys, so that all tables are created in the first schema
    // of the search path.
    for (const one of statements) await sql.unsafe(one.replaceAll('"public".', ""));
    await sql`
      insert into ${sql(list)}.__drizzle_migrations (hash, created_at) values (${hash}, ${folderMillis})`;
  }
}

/** The schema in which drizzle-orm's migrator keeps its list of migrations. */
const DEFAULT_LIST = "drizzle";

/**
 * Returns the schema that contains the list of migrations. If the tables are not in `public`, the list is in the schema
 * of the product, because the platform may use drizzle-orm for its own tables.
 */
async function schemaOfList(sql: Raw["sql"]): Promise<string> {
  const [row] = await sql<{ name: string | null }[]>`
    select nullif(current_schema(), 'public') as name`;
  return row?.name ?? DEFAULT_LIST;
}

const FOLDER = { migrationsFolder: join(ROOT, "db/migrations") };

/** A migration of this version. Its time identifies it, also in the list of migrations of a database. */
interface Migration {
  readonly at: number;
  readonly name: string;
}

/** A migration that was applied to a database. */
interface AppliedMigration {
  readonly at: number;
  /** The SHA-256 of the file. */
  readonly hash: string;
}

/**
 * Returns the migrations of this version, in their order. The journal is read as a file and not imported: in the
 * executable it is a file for drizzle-orm, and the bundler resolves all imports of one file in the same way.
 */
export function ownMigrations(): Migration[] {
  const path = join(FOLDER.migrationsFolder, "meta/_journal.json");
  const journal: { entries: { when: number; tag: string }[] } = JSON.parse(
    readFileSync(path, "utf8"),
  );
  return journal.entries.map(({ when, tag }) => ({ at: when, name: tag }));
}

/** Returns the name of the last migration of this version. */
export const schemaVersion = () => ownMigrations().at(-1)?.name ?? "none";

/**
 * The schema of a database in comparison with this version:
 * - `behind`: it lacks migrations of this version.
 * - `ahead`: it has further migrations of a later or patched version, and this version can work with them.
 * - `diverged`: it lacks some migrations and has others that this version does not know.
 * - `foreign`: it has no migration in common with this version.
 * - `hidden`: the user may not read the list of migrations.
 */
export type SchemaState =
  | { readonly kind: "current" }
  | { readonly kind: "behind"; readonly missing: readonly Migration[] }
  | { readonly kind: "ahead"; readonly unknown: readonly AppliedMigration[] }
  | {
      readonly kind: "diverged";
      readonly missing: readonly Migration[];
      readonly unknown: readonly AppliedMigration[];
    }
  | { readonly kind: "foreign" | "hidden" };

export async function schemaState(db: Raw): Promise<SchemaState> {
  try {
    return await readState(db);
  } catch (error) {
    if (isForbidden(error)) return { kind: "hidden" };
    throw error;
  }
}

/** Returns the state of the schema; the user must be able to read the list of migrations. */
async function readState({ sql }: Raw): Promise<SchemaState> {
  const list = await schemaOfList(sql);
  const [known] =
    await sql`select from pg_tables where schemaname = ${list} and tablename = '__drizzle_migrations'`;
  if (known === undefined) return compareSchemas([], ownMigrations());
  const applied = await sql<AppliedMigration[]>`
    select created_at as at, hash from ${sql(list)}.__drizzle_migrations order by created_at`;
  return compareSchemas(applied, ownMigrations());
}

/**
 * Compares two lists of migrations, each in the order of times. A patch release may have applied a migration out of
 * order: by its time it precedes other migrations, which the database already has or still lacks.
 */
export function compareSchemas(
  applied: readonly AppliedMigration[],
  own: readonly Migration[],
): SchemaState {
  const has = new Set(applied.map(({ at }) => at));
  const known = new Set(own.map(({ at }) => at));
  const missing = own.filter(({ at }) => !has.has(at));
  const unknown = applied.filter(({ at }) => !known.has(at));
  if (missing.length === 0)
    return unknown.length === 0 ? { kind: "current" } : { kind: "ahead", unknown };
  if (unknown.length === 0) return { kind: "behind", missing };
  return missing.length === own.length
    ? { kind: "foreign" }
    : { kind: "diverged", missing, unknown };
}

/**
 * Returns an error message with the required action before a process can use a database. Returns undefined if no action
 * is needed, or if the schema is hidden.
 */
export function schemaFault(state: SchemaState): string | undefined {
  switch (state.kind) {
    case "current":
    case "ahead":
    case "hidden":
      return undefined;
    case "behind":
      return `The database lacks ${countOf(state.missing)} of this version: run \`${commandLine("migrate")}\` first. Processes of the previous version can keep running meanwhile.`;
    case "diverged":
      return (
        `The database has ${countOf(state.unknown)} that this version does not know (${describe(state.unknown)}), and lacks ` +
        `${countOf(state.missing)} of this version (${shorten(state.missing.map(({ name }) => name))}): a patch release or a ` +
        "later version has migrated it. Install a version that has them all, such as the newest patch release of this minor " +
        "version. Nothing was changed, and processes of the previous version can keep running. With the embedded store, a new " +
        "DATA_DIR starts with an empty database."
      );
    case "foreign":
      return (
        "This database was created by another version of ReviewRelay, whose migrations this version does not have, or by " +
        "another program.\nUse an empty database as DATABASE_URL or, with the embedded store, a new DATA_DIR."
      );
  }
}

const MAX_LISTED = 3;

function shorten(names: readonly string[]): string {
  const more = names.length - MAX_LISTED;
  return names.slice(0, MAX_LISTED).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

const countOf = ({ length }: readonly unknown[]) =>
  `${length} ${length === 1 ? "migration" : "migrations"}`;

/**
 * Describes migrations that this version does not know by their digests. `sha256sum` finds their files in the version
 * that contains them.
 */
export function describe(unknown: readonly AppliedMigration[]): string {
  return shorten(
    unknown.map(
      ({ at, hash }) => `${new Date(at).toISOString()}, SHA-256 ${hash.slice(0, HASH_CHARS)}…`,
    ),
  );
}

const HASH_CHARS = 12;

/** Returns the message of `schemaFault` for a database. */
export async function schemaError(db: Raw): Promise<string | undefined> {
  return schemaFault(await schemaState(db));
}
