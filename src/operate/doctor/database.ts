// Checks of PostgreSQL.
import type { RawDb } from "../../../db/client.ts";
import { describe, schemaFault, schemaState } from "../../../db/migrate.ts";
import { poolsOf, sumOf } from "../../../db/pools.ts";
import { groundFault, serverTime } from "../../../db/server.ts";
import { OLDEST_MAJOR } from "../../../db/session-settings.ts";
import type { Config } from "../../lib/config.ts";
import { createSecretBox } from "../../lib/secrets.ts";
import { commandLine } from "../../../db/executable.ts";
import { MASTER_KEY_REMEDY, masterKeyError } from "../../master-key.ts";
import { advice, fault, ok, type Finding } from "./finding.ts";

export const NEWEST_MAJOR = 18;
/** Maximum difference in ms between the clock of this machine and that of PostgreSQL (docs/operations/running.md). */
const MAX_SKEW_MS = 5_000;

export async function checkServer(db: RawDb, { connections }: Config): Promise<Finding> {
  const { sql } = db;
  const [row] = await sql<
    { version: number; name: string; readOnly: string; activities: string; max: number }[]
  >`
    select current_setting('server_version_num')::int as version, current_setting('server_version') as name,
           current_setting('transaction_read_only') as "readOnly",
           current_setting('track_activities') as activities,
           current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int as max`;
  if (row === undefined) throw new Error("PostgreSQL returned no row");
  const major = Math.floor(row.version / 10_000);
  if (major < OLDEST_MAJOR || major > NEWEST_MAJOR)
    return fault(
      `PostgreSQL ${row.name}`,
      `Use PostgreSQL ${OLDEST_MAJOR} to ${NEWEST_MAJOR}: other versions are not tested.`,
    );
  if (row.readOnly !== "off")
    return fault(
      `PostgreSQL ${row.name} accepts no writes`,
      "Set DATABASE_URL to the primary, or to all hosts: postgres://user@one,two/name.",
    );
  const ground = await groundFault(db);
  if (ground !== undefined)
    return fault(`PostgreSQL ${row.name} as this user's sessions find it`, ground);
  const pools = poolsOf(connections);
  const api = sumOf(pools.api);
  const dispatcher = sumOf(pools.dispatcher);
  const maintenance = sumOf(pools.maintenance);
  const said = `PostgreSQL ${row.name}, ${row.max} connections`;
  if (row.max < api + dispatcher + maintenance)
    return fault(
      said,
      `One API and one dispatcher need ${api} + ${dispatcher} + ${maintenance} connections: raise max_connections, or lower the pools (docs/operations/settings.md).`,
    );
  if (row.activities !== "on")
    return advice(
      `${said}; track_activities is off`,
      "Switch it on: without it, dispatchers cannot end sessions that hold locks while they wait for their client.",
    );
  return ok(
    `${said}; an API uses ${api}, a dispatcher ${dispatcher}, and ${maintenance} more while it runs maintenance`,
  );
}

/**
 * Checks that PostgreSQL confirms a commit only after it is on disk (docs/architecture.md, the rules that keep order).
 */
export async function checkDurability({ sql }: RawDb): Promise<Finding> {
  const [row] = await sql<{ name: string; mode: string }[]>`
    select current_user as name, current_setting('synchronous_commit') as mode`;
  if (row?.mode !== "off") return ok("a commit is on disk before it is confirmed");
  return fault(
    `synchronous_commit is off for ${row.name}: a crash of PostgreSQL loses accepted events`,
    `Remove synchronous_commit from the address of the database. Behind a pooler, run \`${commandLine("migrate")}\`, which sets it for the role, and restart the pooler.`,
  );
}

export async function checkSchema(db: RawDb): Promise<Finding> {
  const state = await schemaState(db);
  const remedy = schemaFault(state);
  if (remedy !== undefined) return fault(`not that of this version (${state.kind})`, remedy);
  if (state.kind === "ahead")
    return ok(
      `ahead of this version by ${state.unknown.length}, which works (${describe(state.unknown)})`,
    );
  if (state.kind === "hidden")
    return advice(
      "the user of DATABASE_URL may not read the list of migrations",
      "Grant the user usage on the schema of __drizzle_migrations and select on that table. Otherwise a missing migration is not detected.",
    );
  return ok("current");
}

/**
 * Checks the rights of the database user that creates partitions and indexes while the service runs. It may differ from
 * `service`, the user of the service.
 */
export async function checkRights({ sql }: RawDb, service: RawDb): Promise<Finding> {
  if ((await identityOf(sql)) !== (await identityOf(service.sql)))
    return fault(
      "MAINTENANCE_DATABASE_URL and DATABASE_URL are different databases",
      "Set the same database in both. The user of MAINTENANCE_DATABASE_URL must own the tables.",
    );
  const [row] = await sql<{ name: string; may: boolean; owns: boolean }[]>`
    select current_user as name, coalesce(has_schema_privilege(current_schema(), 'create'), false) as may,
           coalesce(pg_has_role((select relowner from pg_class where oid = to_regclass('delivery_attempts')), 'usage'), true)
             as owns`;
  if (row?.may === true && row.owns) return checkAuditRights(row.name, service);
  return fault(
    `${row?.name ?? "the user"} may not create partitions`,
    "Make the user of MAINTENANCE_DATABASE_URL (or of DATABASE_URL if it is not set) the owner of the tables, and grant create on their schema: maintenance creates and drops partitions daily.",
  );
}

/**
 * Checks that the user of the service may not change or delete rows of the audit log. The check passes if that user is
 * also the owner of the tables.
 */
async function checkAuditRights(owner: string, { sql }: RawDb): Promise<Finding> {
  const [row] = await sql<{ name: string; may: boolean }[]>`
    select current_user as name,
           coalesce(has_table_privilege(to_regclass('audit_log'), 'update, delete, truncate'), false) as may`;
  if (row === undefined || row.name === owner || !row.may)
    return ok(`${owner} may create partitions`);
  return advice(
    `${row.name} may change and delete rows of the audit log`,
    "Revoke update, delete and truncate on audit_log from the user of DATABASE_URL (docs/operations/production.md).",
  );
}

async function identityOf(sql: RawDb["sql"]): Promise<string | undefined> {
  const [row] = await sql<{ identity: string }[]>`
    select pg_postmaster_start_time() || ' ' || oid as identity from pg_database where datname = current_database()`;
  return row?.identity;
}

export async function checkClock(db: RawDb): Promise<Finding> {
  const before = Date.now();
  const server = (await serverTime(db)).getTime();
  const skewMs = Math.round((before + Date.now()) / 2 - server);
  if (Math.abs(skewMs) <= MAX_SKEW_MS) return ok(`${skewMs} ms ahead of PostgreSQL's clock`);
  return fault(
    `${skewMs} ms ahead of PostgreSQL's clock`,
    "Run NTP on this machine and on the database server: old data is not removed while the clocks differ.",
  );
}

export async function checkSecrets(db: RawDb, config: Config): Promise<Finding> {
  const box = createSecretBox({ current: config.masterKey, previous: config.masterKeyPrevious });
  const wrong = await masterKeyError(db, box);
  if (wrong === undefined) return ok("the master key decrypts the stored secrets");
  return fault(wrong, MASTER_KEY_REMEDY);
}

export async function checkContents({ sql }: RawDb): Promise<Finding> {
  const [row] = await sql<{ admins: number; invited: number; plans: number; sites: number }[]>`
    select (select count(*)::int from users where role = 'super_admin' and is_active and password_hash is not null) as admins,
           (select count(*)::int from users where role = 'super_admin' and is_active) as invited,
           (select count(*)::int from plans) as plans, (select count(*)::int from review_sites) as sites`;
  const { admins = 0, invited = 0, plans = 0, sites = 0 } = row ?? {};
  const said = `administrators who can sign in: ${admins}; plans: ${plans}; review sites: ${sites}`;
  if (admins > 0 && plans > 0 && sites > 0) return ok(said);
  if (invited > 0 && plans > 0 && sites > 0)
    return advice(
      said,
      `Open the link that setup showed, or create another one: \`${commandLine("setup")} --new-link\`.`,
    );
  return advice(said, `Run \`${commandLine("setup")}\` and open the link that it shows.`);
}

/** Returns the URLs of at most `most` active subscriptions, one for each host. */
export async function receiverHosts({ sql }: RawDb, most: number): Promise<URL[]> {
  const rows = await sql<{ url: string }[]>`
    select distinct on (lower(split_part(webhook_url, '/', 3))) webhook_url as url
      from webhook_subscriptions where disabled_at is null and deleted_at is null limit ${most}`;
  return rows.flatMap(({ url }) => (URL.canParse(url) ? [new URL(url)] : []));
}
