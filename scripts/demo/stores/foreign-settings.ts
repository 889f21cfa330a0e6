// Lists every setting of PostgreSQL 15 to 18 that a database, a role or a pooler can set for a session, with a hostile
// value.

interface Foreign {
  /** A value that differs from the default. Absent if a database or a role cannot set another value for a session. */
  readonly hostile?: string;
  /** The reason why another value does not affect the product. Absent if each session sets this setting itself. */
  readonly because?: string;
}

const stated = (hostile: string): Foreign => ({ hostile });
const harmless = (because: string, values: Readonly<Record<string, string | undefined>>) =>
  Object.entries(values).map(
    ([name, hostile]) => [name, { because, ...(hostile !== undefined && { hostile }) }] as const,
  );

const STATED: Readonly<Record<string, Foreign>> = {
  DateStyle: stated("German"),
  IntervalStyle: stated("sql_standard"),
  TimeZone: stated("Asia/Kathmandu"),
  array_nulls: stated("off"),
  bytea_output: stated("escape"),
  client_encoding: stated("LATIN1"),
  default_table_access_method: stated("foreign_heap"),
  default_tablespace: stated("pg_default"),
  default_transaction_deferrable: stated("on"),
  default_transaction_isolation: stated("serializable"),
  enable_bitmapscan: stated("on"),
  enable_indexonlyscan: stated("off"),
  enable_indexscan: stated("off"),
  enable_nestloop: stated("off"),
  constraint_exclusion: stated("on"),
  cursor_tuple_fraction: stated("1"),
  effective_cache_size: stated("1"),
  enable_gathermerge: stated("off"),
  enable_incremental_sort: stated("off"),
  enable_memoize: stated("off"),
  enable_parallel_hash: stated("off"),
  enable_partition_pruning: stated("off"),
  enable_partitionwise_aggregate: stated("on"),
  enable_partitionwise_join: stated("on"),
  enable_tidscan: stated("off"),
  geqo: stated("on"),
  min_parallel_index_scan_size: stated("0"),
  min_parallel_table_scan_size: stated("0"),
  parallel_setup_cost: stated("0"),
  parallel_tuple_cost: stated("0"),
  recursive_worktable_factor: stated("1"),
  cpu_index_tuple_cost: stated("10"),
  cpu_operator_cost: stated("10"),
  cpu_tuple_cost: stated("10"),
  enable_hashagg: stated("off"),
  enable_hashjoin: stated("off"),
  enable_material: stated("off"),
  enable_mergejoin: stated("off"),
  enable_sort: stated("off"),
  from_collapse_limit: stated("1"),
  join_collapse_limit: stated("1"),
  seq_page_cost: stated("1000"),
  enable_seqscan: stated("on"),
  exit_on_error: stated("on"),
  extra_float_digits: stated("-15"),
  gin_fuzzy_search_limit: stated("1"),
  idle_in_transaction_session_timeout: stated("1"),
  idle_session_timeout: stated("1"),
  jit: stated("on"),
  lock_timeout: stated("1"),
  plan_cache_mode: stated("force_generic_plan"),
  quote_all_identifiers: stated("on"),
  random_page_cost: stated("1000"),
  restrict_nonsystem_relation_kind: stated("view, foreign-table"),
  search_path: stated('shadows, pg_catalog, "$user", public'),
  standard_conforming_strings: stated("off"),
  statement_timeout: stated("1"),
  synchronous_commit: stated("off"),
  // Longer than a busy server takes for the statement that opens a session, which runs under this limit itself.
  transaction_timeout: stated("2000"),
  transform_null_equals: stated("on"),
  xmloption: stated("document"),
};

const HARMLESS: readonly (readonly [string, Foreign])[] = [
  ...harmless(
    "It bounds or keeps a lost connection, which a process of the service states, and a command does not need.",
    {
      client_connection_check_interval: "1000",
      tcp_keepalives_count: "1",
      tcp_keepalives_idle: "1",
      tcp_keepalives_interval: "1",
      tcp_user_timeout: "1000",
    },
  ),
  ...harmless(
    "It respects a fence: a failover or a full disk makes a server read-only with it. Such a host is not used.",
    {
      default_transaction_read_only: undefined,
    },
  ),
  ...harmless("It belongs to one transaction, and begins with the default of its name.", {
    transaction_deferrable: undefined,
    transaction_isolation: undefined,
    transaction_read_only: undefined,
  }),
  ...harmless(
    "Only a superuser can set it, so a session cannot state it. Each process and command refuses such a database.",
    {
      session_replication_role: undefined,
    },
  ),
  ...harmless(
    "It chooses among plans of equal results, and of a similar cost: tests/integration/db/plans.test.ts holds under all of them together.",
    {
      debug_parallel_query: "on",
      effective_io_concurrency: "0",
      enable_async_append: "off",
      enable_distinct_reordering: "off",
      enable_group_by_reordering: "off",
      enable_parallel_append: "off",
      enable_presorted_aggregate: "off",
      enable_self_join_elimination: "off",
      force_parallel_mode: "on",
      geqo_effort: "1",
      geqo_generations: "1",
      geqo_pool_size: "2",
      geqo_seed: "1",
      geqo_selection_bias: "1.5",
      geqo_threshold: "2",
      hash_mem_multiplier: "1",
      jit_above_cost: "0",
      jit_expressions: "off",
      jit_inline_above_cost: "0",
      jit_optimize_above_cost: "0",
      jit_tuple_deforming: "off",
      max_parallel_maintenance_workers: "0",
      max_parallel_workers: "0",
      max_parallel_workers_per_gather: "4",
      parallel_leader_participation: "off",
      stats_fetch_consistency: "none",
      synchronize_seqscans: "off",
    },
  ),
  ...harmless(
    "It bounds memory or the way to disks: statements take longer, with the same results.",
    {
      backend_flush_after: "1",
      commit_delay: "0",
      commit_siblings: "0",
      file_copy_method: "copy",
      gin_pending_list_limit: "64",
      io_combine_limit: "1",
      logical_decoding_work_mem: "64",
      maintenance_io_concurrency: "0",
      maintenance_work_mem: "1024",
      temp_buffers: "100",
      temp_file_limit: undefined,
      wal_compression: "on",
      wal_init_zero: "off",
      wal_recycle: "off",
      wal_skip_threshold: "0",
      work_mem: "64",
    },
  ),
  ...harmless(
    "It decides where and how bytes are stored, which is the operator's to choose, and not what is read.",
    {
      default_toast_compression: "pglz",
      temp_tablespaces: "pg_default",
    },
  ),
  ...harmless(
    "No statement uses it: full-text search, XML, patterns of a locale, abbreviations of time zones, an escaped quote in a text.",
    {
      backslash_quote: "off",
      default_text_search_config: "pg_catalog.german",
      escape_string_warning: "off",
      lc_monetary: "C",
      lc_numeric: "C",
      lc_time: "C",
      timezone_abbreviations: "India",
      xmlbinary: "hex",
    },
  ),
  ...harmless(
    "The product creates no role, no password, no index with ICU rules and no row policy, and its functions are tested.",
    {
      check_function_bodies: "off",
      createrole_self_grant: "set",
      icu_validation_level: "error",
      md5_password_warnings: "off",
      password_encryption: "md5",
      row_security: "off",
      scram_iterations: "1",
    },
  ),
  ...harmless(
    "It decides what reaches the log, the statistics or a client's notices, which the product does not read.",
    {
      application_name: "platform",
      client_min_messages: "debug5",
      compute_query_id: "on",
      debug_pretty_print: "off",
      debug_print_parse: "off",
      debug_print_plan: "off",
      debug_print_rewritten: "off",
      lc_messages: "C",
      log_duration: "off",
      log_error_verbosity: "terse",
      log_executor_stats: "off",
      log_lock_failures: "off",
      log_lock_waits: "on",
      log_min_duration_sample: "-1",
      log_min_duration_statement: "-1",
      log_min_error_statement: "error",
      log_min_messages: "error",
      log_parameter_max_length: "0",
      log_parameter_max_length_on_error: "-1",
      log_parser_stats: "off",
      log_planner_stats: "off",
      log_replication_commands: "on",
      log_statement: "ddl",
      log_statement_sample_rate: "0",
      log_statement_stats: "off",
      log_temp_files: "-1",
      log_transaction_sample_rate: "0",
      trace_notify: "off",
      trace_sort: "off",
      track_cost_delay_timing: "on",
      track_functions: "all",
      track_io_timing: "on",
      track_wal_io_timing: "on",
      update_process_title: "off",
    },
  ),
  ...harmless("It tunes vacuum and statistics, which the server does on its own.", {
    default_statistics_target: "1",
    track_counts: "on",
    vacuum_buffer_usage_limit: "128",
    vacuum_cost_delay: "1",
    vacuum_cost_limit: "1",
    vacuum_cost_page_dirty: "1",
    vacuum_cost_page_hit: "1",
    vacuum_cost_page_miss: "1",
    vacuum_failsafe_age: "0",
    vacuum_freeze_min_age: "0",
    vacuum_freeze_table_age: "0",
    vacuum_max_eager_freeze_failure_rate: "0",
    vacuum_multixact_failsafe_age: "0",
    vacuum_multixact_freeze_min_age: "0",
    vacuum_multixact_freeze_table_age: "0",
    vacuum_truncate: "off",
  }),
  ...harmless("It is of replication, which no session of the product does.", {
    debug_logical_replication_streaming: "immediate",
    wal_sender_timeout: "1000",
  }),
  ...harmless("Only a superuser can set it, for repairs and for work on PostgreSQL itself.", {
    allow_in_place_tablespaces: "on",
    allow_system_table_mods: "on",
    backtrace_functions: "nothing",
    debug_discard_caches: "0",
    dynamic_library_path: "$libdir",
    event_triggers: "on",
    extension_control_path: "$system",
    ignore_checksum_failure: "off",
    jit_dump_bitcode: "off",
    lo_compat_privileges: "on",
    max_stack_depth: "1024",
    wal_consistency_checking: "",
    zero_damaged_pages: "off",
  }),
  ...harmless("A deadlock is found sooner or later, and its transaction runs again.", {
    deadlock_timeout: "10",
  }),
  ...harmless(
    "Only a superuser can set it. Without it no dispatcher ends a session that waits for its client for ever; the doctor says so.",
    { track_activities: "off" },
  ),
  ...harmless("It loads libraries of the server's administrator.", {
    local_preload_libraries: undefined,
    session_preload_libraries: undefined,
  }),
];

export const FOREIGN: ReadonlyMap<string, Foreign> = new Map([
  ...Object.entries(STATED),
  ...HARMLESS,
]);

/** The settings that each session sets itself. */
export const STATED_NAMES = Object.keys(STATED);

/**
 * Returns the hostile settings that exist in this version, without those that would stop the server itself from
 * working.
 */
export function hostileSettings(
  known: ReadonlySet<string>,
): readonly (readonly [string, string])[] {
  return [...FOREIGN].flatMap(([name, { hostile }]) =>
    hostile !== undefined && known.has(name) ? [[name, hostile] as const] : [],
  );
}
