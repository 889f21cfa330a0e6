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

/** The database does not get the schema of this version. The message says what to do. */
export class SchemaError extends Error {
  override readonly name = "SchemaError";
}

/**
 * Applies the migrations that a database lacks, also behind a pooler, and returns their number. Writes nothing if none is
 * missing. If several processes call this at the same time, one migrates and the others wait. Throws a SchemaError if
 * processes of this version could not work on the result, or if the user of `url` may not migrate.
 *
 * `url` names the user that owns the tables, and `serviceUrl` the one of the processes.
 */
export async function migrate(url: string, serviceUrl = url): Promise<number> {
  const db = connect(url, { max: 1, name: "reviewrelay-migrate" });
  try {
    const applied = await underLock(db, url, async (tx) => {
      const ground = await serverFault(tx);
      if (ground !== undefined) throw new SchemaError(ground);
      if ((await readState(tx)).kind === "old") await tx.sql.unsafe(await Bun.file(UPGRADE).text());
      const state = await readState(tx);
      const missing = state.kind === "behind" ? state.missing : [];
      if (missing.length > 0) await applyMigrations(tx, missing);
      const fault = schemaFault(await readState(tx));
      if (fault !== undefined) throw new SchemaError(fault);
      return missing.length;
    });
    for (const one of new Set([url, serviceUrl])) if (isPooled(one)) await adoptSettings(one);
    // Later on, the dispatchers create the partitions.
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

/** The number of tries of a transaction whose session another `migrate` ends while it begins (`endOlderSessions`). */
const POOLED_TRIES = 3;

/** Runs `work` in a transaction of one process at a time. */
async function underLock<T>(
  db: RawDb,
  url: string,
  work: (tx: RawTx) => Promise<T>,
  tries = isPooled(url) ? POOLED_TRIES : 1,
): Promise<T> {
  try {
    return await withPatience(db, async (tx) => {
      // A session behind a pooler has none of its own yet, because its role gets the settings last.
      if (isPooled(url)) await tx.sql.unsafe(openingStatement(url, true));
      // The lock belongs to the transaction, because the session of a pooler is shared.
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
  /** The search path with the schema of the product. */
  readonly path: string;
  /** The names of the settings that the server has. */
  readonly known: readonly string[];
  /** The settings of the role in this database, and in every database, as `name=value`. */
  readonly here: readonly string[];
  readonly everywhere: readonly string[];
}

/** Gives the settings of a session to the role of a pooler's sessions, for statements outside of transactions. */
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
      if (row === undefined) throw new Error("PostgreSQL answered nothing");
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
      // An operator may give the role other time limits.
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
 * Ends the sessions that a pooler opened before their role got its settings, because sessions keep what they began with.
 * A session in use is ended as soon as it is idle; after a second it is left to the check of each process (`sessionFault`).
 */
async function endOlderSessions(db: RawDb, url: string): Promise<void> {
  // Outside of a transaction the clock of another schema might answer.
  const now = await underLock(db, url, (tx) => serverTime(tx));
  for (let tried = 0; tried < 10; tried++) {
    // The session of this statement is the last one, so that the statement fails.
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

/** Says which schema has other tables of the same names, if a migration failed for that. */
async function takenNames({ sql }: RawDb, error: unknown): Promise<string | undefined> {
  if (!isTaken(error)) return undefined;
  const [row] = await sql<{ schema: string }[]>`select current_schema() as schema`;
  const cause = causeOf(error);
  return (
    `Another program has tables of these names in the schema ${row?.schema} (${cause instanceof Error ? cause.message : String(cause)}): ` +
    "give the product a schema of its own (docs/operations/moving-in.md, step 1). Nothing was changed."
  );
}

/** Says which user may migrate, for a user who may not because of `reason`. */
async function ownerNeeded({ sql }: RawDb, reason: unknown): Promise<string> {
  const [row] = await sql<{ user: string; owner: string }[]>`
    select current_user as user, pg_get_userbyid(coalesce(
             (select relowner from pg_class where oid = to_regclass('delivery_attempts')),
             (select datdba from pg_database where datname = current_database()))) as owner`;
  return (
    `The user ${row?.user} may not migrate the database (${reason instanceof Error ? reason.message : String(reason)}). ` +
    `Name the user that owns the tables, ${row?.owner}, in MAINTENANCE_DATABASE_URL (docs/operations/production.md, "With two users").`
  );
}

/** The pauses in milliseconds between two tries, in which other statements can run (`LOCK_MS`). */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 5_000;
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
 * Applies migrations in the order of the journal and lists them like drizzle-orm's migrator, which needs a session of its
 * own and therefore fails behind a pooler.
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
/** Brings a database of a version before the baseline to the baseline. */
const UPGRADE = join(ROOT, "db/upgrades/baseline.sql");
/** The first migration, and the oldest last one, of the databases that the upgrade is for. */
const OLD = { first: 1_796_040_000_000, last: 1_796_140_000_000 };

/** A migration of this version. Its time identifies it in the list of a database, too. */
interface Migration {
  readonly at: number;
  readonly name: string;
}

/** A migration that a database has. */
interface Applied {
  readonly at: number;
  /** The SHA-256 of the file, or "baseline". */
  readonly hash: string;
}

/**
 * Reads the migrations of this version, in their order. The journal is not imported, because the executable holds it as a
 * file for drizzle-orm, and the bundler resolves all imports of one file in the same way.
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
 * The schema of a database compared with this version:
 * - `behind`: it lacks migrations of this version;
 * - `ahead`: it has more, of a later or patched version, in a way with which this version can work;
 * - `diverged`: it lacks some and has others that this version does not know;
 * - `old`: it has the migrations from before the baseline; `migrate` upgrades it, and no process works until then;
 * - `foreign`: it has no migration in common with this version;
 * - `hidden`: the user may not read the list of migrations.
 */
export type SchemaState =
  | { readonly kind: "current" }
  | { readonly kind: "behind"; readonly missing: readonly Migration[] }
  | { readonly kind: "ahead"; readonly unknown: readonly Applied[] }
  | {
      readonly kind: "diverged";
      readonly missing: readonly Migration[];
      readonly unknown: readonly Applied[];
    }
  | { readonly kind: "old" | "foreign" | "hidden" };

export async function schemaState(db: Raw): Promise<SchemaState> {
  try {
    return await readState(db);
  } catch (error) {
    if (isForbidden(error)) return { kind: "hidden" };
    throw error;
  }
}

/** Returns the state of a schema that is not hidden. */
async function readState({ sql }: Raw): Promise<SchemaState> {
  const list = await schemaOfList(sql);
  const [known] =
    await sql`select from pg_tables where schemaname = ${list} and tablename = '__drizzle_migrations'`;
  if (known === undefined) return compareSchemas([], ownMigrations());
  const applied = await sql<Applied[]>`
    select created_at as at, hash from ${sql(list)}.__drizzle_migrations order by created_at`;
  return compareSchemas(applied, ownMigrations());
}

/**
 * Compares two sets of migrations, each in the order of its times. A patch release may have given a database a migration
 * whose place is before others that the database has already or still lacks.
 */
export function compareSchemas(
  applied: readonly Applied[],
  own: readonly Migration[],
): SchemaState {
  const has = new Set(applied.map(({ at }) => at));
  const known = new Set(own.map(({ at }) => at));
  if (applied[0]?.at === OLD.first && has.has(OLD.last)) return { kind: "old" };
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
 * Returns an error message with the action that is needed before a process can use a database; undefined if no action
 * is needed, or if the schema is hidden.
 */
export function schemaFault(state: SchemaState): string | undefined {
  switch (state.kind) {
    case "current":
    case "ahead":
    case "hidden":
      return undefined;
    case "behind":
      return `The database lacks ${countOf(state.missing)} of this version: run \`${commandLine("migrate")}\` first. Processes of the version before may go on meanwhile.`;
    case "old":
      return (
        "This database has the schema of a version before the baseline: stop all processes, take a backup, and run " +
        `\`${commandLine("migrate")}\` (docs/operations/upgrades.md).`
      );
    case "diverged":
      return (
        `The database has ${countOf(state.unknown)} that this version does not know (${describe(state.unknown)}), and lacks ` +
        `${countOf(state.missing)} of this version (${shorten(state.missing.map(({ name }) => name))}): a patch release or a ` +
        "later version has migrated it. Install a version that has them all, such as the newest patch release of this minor " +
        "version. Nothing was changed, and processes of the version before may go on meanwhile. With the embedded store, a new " +
        "DATA_DIR begins with an empty database."
      );
    case "foreign":
      return (
        "This database was made by another version of ReviewRelay, whose migrations this version does not have, or by " +
        "another program.\nUse a fresh one: an empty database as DATABASE_URL or, with the embedded store, a new DATA_DIR."
      );
  }
}

const LISTED = 3;

function shorten(names: readonly string[]): string {
  const more = names.length - LISTED;
  return names.slice(0, LISTED).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

const countOf = ({ length }: readonly unknown[]) =>
  `${length} ${length === 1 ? "migration" : "migrations"}`;

/** Describes migrations that this version does not know: `sha256sum` finds their files in the version that has them. */
export function describe(unknown: readonly Applied[]): string {
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
