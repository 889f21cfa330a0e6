import type { Limits } from "./limits.ts";
import type { Raw } from "./session.ts";

// The settings of a session on which statements rely. The defaults of the server, the database, the role or the pooler
// belong to other programs, too, so each session states all of these (docs/decisions/session-settings.md).
// tests/integration/db/foreign-settings.test.ts classifies every setting of PostgreSQL.

/** The settings that each pooler keeps for a client, as PgBouncer does (`ParameterStatus` of PostgreSQL's protocol). */
const TRACKED = {
  DateStyle: "ISO, MDY",
  TimeZone: "UTC",
  standard_conforming_strings: "on",
};

/** The settings that decide what a value or a statement means, and what a commit promises. */
const MEANING = {
  ...TRACKED,
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
 * Planner settings of each session. A prepared statement keeps its plan for the life of its connection, often from
 * the time when the tables were small. Without these settings such a plan would still read a whole table that has
 * grown since, or PostgreSQL would compile a statement that only seems expensive. Without bitmap scans PostgreSQL
 * reads an index in its order and stops at the limit of the statement, regardless of the number of rows that the
 * planner estimates.
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
 * Planner settings that have PostgreSQL's own values. Behind a pooler only the role of the sessions has them, because a
 * transaction would take longer to begin with all of them. The genetic optimiser is off, which has the same effect: no
 * statement joins as many tables as its usual threshold.
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
 * Network settings with which the server notices a lost client soon, so that the client's session does not hold locks
 * for long.
 */
const NETWORK = {
  tcp_keepalives_idle: "10",
  tcp_keepalives_interval: "5",
  tcp_keepalives_count: "3",
  tcp_user_timeout: "10000",
  client_connection_check_interval: "2000",
};

/** The settings that not every supported version of PostgreSQL has, and an empty one, which a startup message cannot have. */
const BY_STATEMENT = {
  transaction_timeout: "0",
  restrict_nonsystem_relation_kind: "",
  default_tablespace: "",
};

/** Returns the time limits of statements. Without `limits`, such as in scripts and tests, there are none. */
function timeouts(limits?: Limits): Readonly<Record<string, string>> {
  return {
    lock_timeout: String(limits?.lockMs ?? 0),
    statement_timeout: String(limits?.statementMs ?? 0),
    idle_in_transaction_session_timeout: String(limits?.idleMs ?? 0),
  };
}

/** Returns the settings that a session without a pooler gets in the startup message of its connection. */
export function startSettings(limits?: Limits): Readonly<Record<string, string>> {
  return {
    ...MEANING,
    ...PLANNER,
    ...USUAL_PLANNER,
    ...timeouts(limits),
    ...(limits && NETWORK),
    idle_session_timeout: "0",
  };
}

/** Returns the settings that a pooler accepts in the startup message of a connection. */
export const pooledStartSettings = () => TRACKED;

/**
 * Returns the settings for connections through a pooler. Its sessions are shared, so the settings are local to a
 * transaction and are sent with its `begin`. Single statements rely on those of the role (`settingsOfRole`).
 */
export function beginSettings(limits?: Limits): string {
  const { default_transaction_isolation, default_transaction_deferrable, ...settings } = {
    ...MEANING,
    ...PLANNER,
    ...timeouts(limits),
  };
  const isDeferrable = default_transaction_deferrable === "on" ? "" : "not ";
  return [
    `; set transaction isolation level ${default_transaction_isolation}, ${isDeferrable}deferrable`,
    ...Object.entries(settings).map(([name, value]) => `set local ${name} = '${value}'`),
  ].join("; ");
}

/** Returns the time limits that a pooler's sessions get from their role, unless the operator gives it others. */
export const unlimited = () => timeouts();

/** Returns the settings that a pooler's sessions get from their role, for statements outside of transactions. */
export function settingsOfRole(): Readonly<Record<string, string>> {
  return { ...MEANING, ...PLANNER, ...USUAL_PLANNER, ...BY_STATEMENT, idle_session_timeout: "0" };
}

/**
 * The schema of the product for a session: the one of the search path that has its tables. If none of the path has them,
 * it is the one whose tables belong to this user, or accept inserts from it, provided that there is one such schema. In a
 * new database it is the first one of the path. A superuser may insert everywhere, so its right says nothing.
 *
 * The names of functions and operators are qualified, because the search path may have functions of others before those
 * of PostgreSQL. A partition identifies the tables, because no `create table … (like …)` copies that.
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
 * Returns the statement that a session without a pooler runs first: it sets the search path to the product's schema, and
 * the settings of `BY_STATEMENT`. An address may name a search path itself (`?search_path=`). With `isLocal` it
 * is for one transaction behind a pooler.
 */
export function openingStatement(url: string, isLocal = false): string {
  const later = Object.entries(BY_STATEMENT).map(
    ([name, value]) =>
      `case when pg_catalog.current_setting('${name}', true) is not null
            then pg_catalog.set_config('${name}', '${value}', ${isLocal}) end`,
  );
  const path = `case when name is not null then
    pg_catalog.set_config('search_path', pg_catalog.concat(pg_catalog.quote_ident(name), ', pg_temp'), ${isLocal}) end`;
  const all = /[?&]search_path=/.test(url) ? later : [path, ...later];
  return `select ${all.join(", ")} from (${OWN_SCHEMA}) own`;
}

/** The oldest version of PostgreSQL that works. */
export const OLDEST_MAJOR = 15;

/**
 * Returns an error message with the action that is needed before any session can work on a database; undefined if none
 * is needed.
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
  if (row === undefined) throw new Error("PostgreSQL answered nothing");
  if (row.version < OLDEST_MAJOR * 10_000)
    return `PostgreSQL ${row.name} is too old: use version ${OLDEST_MAJOR} or a later one.`;
  if (row.encoding !== "UTF8")
    return (
      `The encoding of the database is ${row.encoding}, which cannot store every text: create one with ` +
      "`create database … encoding 'UTF8' template template0`, and name it in DATABASE_URL."
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

/** Reads the search path of a session, the schema of our tables, and whether names without a schema are looked up there. */
const FOUND_SCHEMA = `
  select pg_catalog.current_setting('search_path') as path, own.name as schema,
         pg_catalog.current_schema() operator(pg_catalog.=) own.name
         and (pg_catalog.current_schemas(true))[1] operator(pg_catalog.=) 'pg_catalog' as is_ours
    from (${OWN_SCHEMA}) own`;

/**
 * Returns an error message if the session of a single statement lacks a setting on which statements rely. That happens
 * behind a pooler, whose sessions have the settings of their role since they were opened, or those of a statement that the
 * pooler runs first, and if a parameter of the address overrides one.
 */
export async function sessionFault({ sql }: Raw): Promise<string | undefined> {
  const [found] =
    await sql.unsafe<{ path: string; schema: string | null; is_ours: boolean }[]>(FOUND_SCHEMA);
  if (found?.schema != null && !found.is_ours)
    return (
      `The search path of sessions is ${found.path}, so that statements find other tables and functions than those of ` +
      `PostgreSQL and of the schema ${found.schema}. ${SESSION_REMEDY}`
    );
  // Durability is the operator's choice, and the doctor's finding.
  const { synchronous_commit: _, ...stated } = MEANING;
  const rows = await sql<{ name: string; setting: string }[]>`
    select name, current_setting(name) as setting from unnest(${Object.keys(stated)}::text[]) names(name)`;
  const others = rows.filter(({ name, setting }) => Reflect.get(stated, name) !== setting);
  if (others.length === 0) return undefined;
  const list = others.map(({ name, setting }) => `${name} = ${setting}`).join(", ");
  return `Sessions have ${list}, on which no statement can rely. ${SESSION_REMEDY}`;
}

const SESSION_REMEDY =
  "Behind a pooler, take it out of a `connect_query` of its settings, run `migrate`, and then RECONNECT in the console of " +
  "PgBouncer, or restart the pooler; otherwise take the setting out of the address of the database.";
