// Conditions under which the databases of a test run exist, in addition to PostgreSQL's defaults: hostile defaults, or
// a pooler.
import { connect } from "../../../db/client.ts";
import { settingsOfRole } from "../../../db/session-settings.ts";
import { hostileSettings } from "./foreign-settings.ts";
import { SHADOWS } from "./shadows.ts";
import { runPgBouncer } from "./pgbouncer.ts";

/** Number of PgBouncer's connections to each database. A test file may keep that many transactions open. */
const POOL_SIZE = 40;

/**
 * Hostile defaults that a whole test run does not use, because they end sessions of the tests' own tools or change the
 * output of these tools. `foreign-settings.test.ts` covers them.
 */
const OF_OWN_TOOLS: ReadonlySet<string> = new Set([
  "client_min_messages",
  "idle_in_transaction_session_timeout",
  "idle_session_timeout",
  "lock_timeout",
  "password_encryption",
  "statement_timeout",
  "track_activities",
  "transaction_timeout",
]);

/**
 * Sets hostile defaults for every database of a server, and creates in the template the schema with which its search
 * path begins.
 */
export async function setDefaults(
  serverUrl: string,
  template: string,
  defaults: string | undefined,
): Promise<void> {
  if (!defaults) return;
  if (defaults !== "hostile" || process.env["DATABASE_URL"])
    throw new Error(
      "TEST_POSTGRES_DEFAULTS is `hostile` or unset, and needs a server that the test command starts.",
    );
  const url = Object.assign(new URL(serverUrl), { pathname: `/${template}` });
  const db = connect(url.href, { max: 1, name: "test" });
  try {
    await db.sql.unsafe(SHADOWS);
    const rows = await db.sql<{ name: string }[]>`select name from pg_settings`;
    for (const [name, value] of hostileSettings(new Set(rows.map((row) => row.name))))
      if (!OF_OWN_TOOLS.has(name))
        await db.sql.unsafe(
          `alter role all set ${name} = ${name === "search_path" ? value : `'${value}'`}`,
        );
  } finally {
    await db.close();
  }
}

/**
 * Starts a pooler in transaction mode in front of a server. Its sessions have the settings that `migrate` stores in
 * their role.
 */
export async function startPooler(serverUrl: string, pooler: string | undefined) {
  if (!pooler) return undefined;
  if (pooler !== "pgbouncer") throw new Error("TEST_POOLER is `pgbouncer` or unset.");
  const PATH = `${process.env["PATH"] ?? ""}:/usr/sbin`;
  const program = Bun.which("pgbouncer", { PATH });
  if (program === null)
    throw new Error("There is no pgbouncer on this machine: bun scripts/needs.ts --install");
  const db = connect(serverUrl, { max: 1, name: "test" });
  try {
    const rows = await db.sql<{ name: string }[]>`select name from pg_settings`;
    const known = new Set(rows.map((row) => row.name));
    for (const [name, value] of Object.entries(settingsOfRole()))
      if (known.has(name)) await db.sql.unsafe(`alter role current_user set ${name} = '${value}'`);
  } finally {
    await db.close();
  }
  const started = await runPgBouncer(program, serverUrl, {
    mode: "transaction",
    poolSize: POOL_SIZE,
  });
  return { url: `${started.in(serverUrl)}?prepare=false`, stop: () => started.stop() };
}
