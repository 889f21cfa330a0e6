import type { Limits } from "./limits.ts";
import type { Raw } from "./session.ts";

// The session settings that statements rely on. Defaults of the server, the database, the role or the pooler may have
// been set for other programs, so each session sets all of these (docs/decisions/session-settings.md).
// tests/integration/db/foreign-settings.test.ts classifies every setting of PostgreSQL.

/** The settings that every pooler tracks per client, as PgBouncer does (`ParameterStatus` of PostgreSQL's protocol). */
const TRACKED_SETTINGS = {
  DateStyle: "ISO, MDY",
  TimeZone: "UTC",
  standard_conforming_strings: "on",
};

/** The settings that affect the meaning of values and statements, and the durability of commits. */
const MEANING_SETTINGS = {
  ...TRACKED_SETTINGS,
  IntervalStyle: "postgres",
  bytea_output: "hex",
  extra_float_digits: "1",
  array_nulls: "on",
  exit_on_error: "off",
  quote_all_identifiers: "off",
  transform_null_equals: "off",
  gin_fuzzy_search_limit: "0",
  default_transaction_isolation: "read committed",
  default_transaction_deferrable: "off",
  default_table_access_method: "heap",
  synchronous_commit: "on",
  xmloption: "content",
};

/**
 * Planner settings of each session. A prepared statement keeps its plan for the life of its connection, often from the
 * time when the tables were small. Without these settings such a plan could read a whole table that has grown since, or
 * PostgreSQL could compile a statement that only seems expensive. Without bitmap scans PostgreSQL reads an index in its
 * order and stops at the limit of the statement, however many rows the planner estimates.
 */
const PLANNER = {
  enable_seqscan: "off",
  enable_bitmapscan: "off",
  enable_indexscan: "on",
  enable_indexonlyscan: "on",
  enable_nestloop: "on",
  plan_cache_mode: "auto",
  jit: "off",
  random_page_cost: "1.1",
};

/**
 * Planner settings with PostgreSQL's default values. Behind a pooler only the role sets them, because `begin` would
 * take longer with all of them. The genetic optimiser is off, which has no effect on results: no statement joins as
 * many tables as its default threshold.
 */
const USUAL_PLANNER = {
  enable_hashjoin: "on",
  enable_mergejoin: "on",
  enable_hashagg: "on",
  enable_sort: "on",
  enable_material: "on",
  join_collapse_limit: "8",
  from_collapse_limit: "8",
  seq_page_cost: "1",
  cpu_tuple_cost: "0.01",
  cpu_index_tuple_cost: "0.005",
  cpu_operator_cost: "0.0025",
  enable_gathermerge: "on",
  enable_incremental_sort: "on",
  enable_memoize: "on",
  enable_parallel_hash: "on",
  enable_partition_pruning: "on",
  enable_partitionwise_aggregate: "off",
  enable_partitionwise_join: "off",
  enable_tidscan: "on",
  constraint_exclusion: "partition",
  cursor_tuple_fraction: "0.1",
  effective_cache_size: "4GB",
  geqo: "off",
  min_parallel_index_scan_size: "512kB",
  min_parallel_table_scan_size: "8MB",
  parallel_setup_cost: "1000",
  parallel_tuple_cost: "0.1",
  recursive_worktable_factor: "10",
};

/**
 * Network settings with which the server notices a lost client soon, so that the session of that client does not hold
 * locks for long.
 */
const NETWORK_SETTINGS = {
  tcp_keepalives_idle: "10",
  tcp_keepalives_interval: "5",
  tcp_keepalives_count: "3",
  tcp_user_timeout: "10000",
  client_connection_check_interval: "2000",
};

/**
 * Settings that a startup message cannot contain: not every supported version of PostgreSQL has them, or their value is
 * empty.
 */
const STATEMENT_SETTINGS = {
  transaction_timeout: "0",
  restrict_nonsystem_relation_kind: "",
  default_tablespace: "",
};

/** Returns the time limits of statements. Without `limits`, for example in scripts and tests, there are no limits. */
function timeouts(limits?: Limits): Readonly<Record<string, string>> {
  return {
    lock_timeout: String(limits?.lockMs ?? 0),
    statement_timeout: String(limits?.statementMs ?? 0),
    idle_in_transaction_session_timeout: String(limits?.idleMs ?? 0),
  };
}

/** Returns the settings in the startup message of a connection without a pooler. */
export function startSettings(limits?: Limits): Readonly<Record<string, string>> {
  return {
    ...MEANING_SETTINGS,
    ...PLANNER,
    ...USUAL_PLANNER,
    ...timeouts(limits),
    ...(limits && NETWORK_SETTINGS),
    idle_session_timeout: "0",
  };
}

/** Returns the settings that a pooler accepts in the startup message of a connection. */
export const pooledStartSettings = () => TRACKED_SETTINGS;

/**
 * Returns the settings for connections through a pooler. A pooler shares its sessions, so the settings are local to a
 * transaction and are sent with its `begin`. Single statements rely on the settings of the role (`settingsOfRole`).
 */
export function beginSettings(limits?: Limits): string {
  const { default_transaction_isolation, default_transaction_deferrable, ...settings } = {
    ...MEANING_SETTINGS,
    ...PLANNER,
    ...timeouts(limits),
  };
  const isDeferrable = default_transaction_deferrable === "on" ? "" : "not ";
  return [
    `; set transaction isolation level ${default_transaction_isolation}, ${isDeferrable}deferrable`,
    ...Object.entries(settings).map(([name, value]) => `set local ${name} = '${value}'`),
  ].join("; ");
}

/** Returns the time limits that are stored in the role of a pooler's sessions, unless the operator has set others. */
export const unlimited = () => timeouts();

/** Returns the settings that are stored in the role of a pooler's sessions, for statements outside of transactions. */
export function settingsOfRole(): Readonly<Record<string, string>> {
  return {
    ...MEANING_SETTINGS,
    ...PLANNER,
    ...USUAL_PLANNER,
    ...STATEMENT_SETTINGS,
    idle_session_timeout: "0",
  };
}

/**
 * Selects the schema of the product for a session. It is the schema of the search path that contains the product's
 * tables. If none does, it is the only schema whose tables belong to this user or accept inserts from it. In a new
 * database it is the first schema of the path. A superuser may insert everywhere, so this privilege is ignored for a
 * superuser.
 *
 * The names of functions and operators are qualified, because the search path may contain other functions with the same
 * names before those of PostgreSQL. The tables are recognised by a partition, because `create table … (like …)` does
 * not copy partitions.
 */
const OWN_SCHEMA = `
  select coalesce(
           (pg_catalog.array_agg(name order by place) filter (where place is not null))[1],
           case when pg_catalog.count(*) filter (where is_mine) operator(pg_catalog.=) 1
                then (pg_catalog.array_agg(name) filter (where is_mine))[1] end,
           (select name from pg_catalog.unnest(pg_catalog.current_schemas(false)) path(name)
             where name operator(pg_catalog.<>) 'pg_catalog' limit 1)) as name
    from (select n.nspname as name, pg_catalog.array_position(pg_catalog.current_schemas(false), n.nspname) as place,
                 pg_catalog.pg_get_userbyid(c.relowner) operator(pg_catalog.=) current_user
                 or pg_catalog.has_table_privilege(c.oid, 'insert')
                    and pg_catalog.current_setting('is_superuser') operator(pg_catalog.=) 'off' as is_mine
            from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid operator(pg_catalog.=) c.relnamespace
           where c.relname operator(pg_catalog.=) 'delivery_attempts_default' and c.relispartition) found`;

/**
 * Returns the statement that a session without a pooler runs first. It sets the settings of `STATEMENT_SETTINGS`, and
 * the search path to the product's schema, unless the database URL contains a search path of its own (`?search_path=`).
 * With `isLocal`, the statement applies to one transaction behind a pooler.
 */
export function openingStatement(url: string, isLocal = false): string {
  const later = Object.entries(STATEMENT_SETTINGS).map(
    ([name, value]) =>
      `case when pg_catalog.current_setting('${name}', true) is not null
            then pg_catalog.set_config('${name}', '${value}', ${isLocal}) end`,
  );
  const path = `case when name is not null then
    pg_catalog.set_config('search_path', pg_catalog.concat(pg_catalog.quote_ident(name), ', pg_temp'), ${isLocal}) end`;
  const all = /[?&]search_path=/.test(url) ? later : [path, ...later];
  return `select ${all.join(", ")} from (${OWN_SCHEMA}) own`;
}

/** The oldest supported version of PostgreSQL. */
export const OLDEST_MAJOR = 15;

/**
 * Returns an error message with the required action if no session could work on this server; undefined if no action is
 * needed.
 */
export async function serverFault({ sql }: Raw): Promise<string | undefined> {
  const [row] = await sql<
    {
      version: number;
      name: string;
      encoding: string;
      role: string;
      path: string;
      schema: string | null;
    }[]
  >`select current_setting('server_version_num')::int as version, current_setting('server_version') as name,
           getdatabaseencoding() as encoding, current_setting('session_replication_role') as role,
           current_setting('search_path') as path, current_schema() as schema`;
  if (row === undefined) throw new Error("PostgreSQL returned no row");
  if (row.version < OLDEST_MAJOR * 10_000)
    return `PostgreSQL ${row.name} is too old: use version ${OLDEST_MAJOR} or later.`;
  if (row.encoding !== "UTF8")
    return (
      `The encoding of the database is ${row.encoding}, which cannot store every text: create one with ` +
      "`create database … encoding 'UTF8' template template0`, and set DATABASE_URL to it."
    );
  if (row.role !== "origin")
    return (
      `session_replication_role is ${row.role} for this user, so that triggers and references do not work: run ` +
      "`alter role … in database … set session_replication_role = origin` as a superuser."
    );
  if (row.schema === null)
    return `No schema of the search path (${row.path}) exists or may be used: create it, or grant its usage to this user.`;
  return undefined;
}

/**
 * Selects the search path of a session, the schema of the product's tables, and whether unqualified names are looked up
 * in that schema.
 */
const FOUND_SCHEMA = `
  select pg_catalog.current_setting('search_path') as path, own.name as schema,
         pg_catalog.current_schema() operator(pg_catalog.=) own.name
         and (pg_catalog.current_schemas(true))[1] operator(pg_catalog.=) 'pg_catalog' as is_ours
    from (${OWN_SCHEMA}) own`;

/**
 * Returns an error message if the session of a single statement lacks a required setting. There are two causes. Behind
 * a pooler, a session keeps the settings that its role had when it was opened, or gets those of a statement that the
 * pooler runs first. And a parameter of the database URL may override a setting.
 */
export async function sessionFault({ sql }: Raw): Promise<string | undefined> {
  const [found] =
    await sql.unsafe<{ path: string; schema: string | null; is_ours: boolean }[]>(FOUND_SCHEMA);
  if (found?.schema != null && !found.is_ours)
    return (
      `The search path of sessions is ${found.path}, so statements can find other tables and functions than those of ` +
      `PostgreSQL and of the schema ${found.schema}. ${SESSION_REMEDY}`
    );
  // Durability is not checked here: the operator may change it, and the doctor reports it.
  const { synchronous_commit: _, ...stated } = MEANING_SETTINGS;
  const rows = await sql<{ name: string; setting: string }[]>`
    select name, current_setting(name) as setting from unnest(${Object.keys(stated)}::text[]) names(name)`;
  const others = rows.filter(({ name, setting }) => Reflect.get(stated, name) !== setting);
  if (others.length === 0) return undefined;
  const list = others.map(({ name, setting }) => `${name} = ${setting}`).join(", ");
  return `Sessions have ${list}, on which no statement can rely. ${SESSION_REMEDY}`;
}

const SESSION_REMEDY =
  "Behind a pooler, remove it from a `connect_query` of its settings, run `migrate`, and then RECONNECT in the console of " +
  "PgBouncer, or restart the pooler; otherwise remove the setting from the address of the database.";
