// Manages the signing keys and the master key; see `bun run keys --help`.
import { getTableName } from "drizzle-orm";

import type { RawDb } from "../../db/client.ts";
import { commandLine } from "../../db/executable.ts";
import { serverTime } from "../../db/server.ts";
import { listKeyUse } from "../auth/keys/queries.ts";
import { rotateKeys } from "../auth/keys/rotate-keys.ts";
import { isoInstant, systemClock } from "../lib/clock.ts";
import type { SecretBox } from "../lib/secrets.ts";
import {
  runningProcesses,
  boundBy,
  associatedDataOf,
  type RunningProcess,
  SEALED_COLUMNS,
  type SealedColumn,
} from "../master-key.ts";
import { runWithDatabase, UsageError } from "./with-database.ts";

const USAGE = `Usage: ${commandLine("keys")} [list | rotate [--force] | processes | rotate-master [--force]]`;
const HELP = `Manages the keys of the database in DATABASE_URL.

  list            (or no argument) lists the signing keys
  rotate          activates the next signing key, which running API processes use within seconds; it refuses until that key
                  has been published for an hour, unless --force is given
  processes       lists the running processes with their master keys
  rotate-master   re-encrypts all stored secrets with the current master key; it refuses while a process lacks that key,
                  unless --force is given`;

const REFUSAL_LINES = [
  "Nothing was changed. Set the new key as MASTER_KEY and the old key as MASTER_KEY_PREVIOUS in each of these processes, and",
  "restart it; then run this command again (docs/operations/recovery.md). A killed process leaves this list after a minute.",
  "`rotate-master --force` ignores these processes: they can then not decrypt any stored secret and report not ready.",
];
const LEFT_BEHIND_LINES = [
  "They cannot decrypt any stored secret and report not ready. Restart each of them with this MASTER_KEY.",
];

/** Number of rows that one statement re-encrypts. It is small, so that the row locks delay no request noticeably. */
const BATCH_ROWS = 200;
/**
 * Number of minutes for which codes that were mailed before the change of the master key, and the tokens that were
 * exchanged for them, still need the old key.
 */
const CODES_MINUTES = 15;

await runWithDatabase(
  { name: "keys", help: HELP, options: { force: { type: "boolean" } } },
  async ({ db, box }, { values, positionals }) => {
    const isForced = values["force"] === true;
    const command = [...positionals, ...(isForced ? ["--force"] : [])].join(" ") || "list";
    switch (command) {
      case "list":
        break;
      case "rotate":
      case "rotate --force":
        await rotate(db, box, isForced);
        break;
      case "processes":
        for (const line of showProcesses(await runningProcesses(db))) console.log(line);
        return 0;
      case "rotate-master":
      case "rotate-master --force":
        return resealAll(db, box, isForced);
      default:
        throw new UsageError(USAGE);
    }
    await list(db);
    return 0;
  },
);

async function rotate(db: RawDb, box: SecretBox, isForced: boolean): Promise<void> {
  // The time comes from the clock of PostgreSQL, because the API decides by that clock how long a retired key is kept.
  const now = await serverTime(db);
  const clock = { ...systemClock, now: () => now };
  const { retired, current, next } = await rotateKeys({ db, box, clock }, { isForced });
  console.log(`Rotated: ${current} is active, ${retired} is retired, ${next} is next.\n`);
}

async function resealAll(db: RawDb, box: SecretBox, isForced: boolean): Promise<number> {
  const lack = lackOf(await runningProcesses(db), box);
  if (lack.length > 0 && !isForced) {
    for (const line of [...lack, "", ...REFUSAL_LINES]) console.error(line);
    return 1;
  }
  const { lines, done } = reportOf(await rotateMaster(db, box));
  for (const line of lines) console.log(line);
  // The processes are checked again, because one that started during the re-encryption may lack the new key.
  const late = lackOf(await runningProcesses(db), box);
  for (const line of late.length === 0 ? [] : ["", ...late, "", ...LEFT_BEHIND_LINES])
    console.error(line);
  return done && (late.length === 0 || isForced) ? 0 : 1;
}

async function list(db: RawDb): Promise<void> {
  const keys = await listKeyUse(db, await serverTime(db));
  if (keys.length === 0) {
    console.log("There are no signing keys. The API creates them at its first start.");
    return;
  }
  for (const { kid, state, tokens, ...at } of keys) {
    const since = at.retiredAt ?? at.activatedAt ?? at.createdAt;
    const use = `${tokens} live ${tokens === 1 ? "token" : "tokens"}`;
    console.log(`${kid}  ${state.padEnd(7)}  since ${isoInstant(since)}  ${use}`);
  }
}

interface ResealedColumn {
  readonly table: string;
  readonly column: string;
  readonly resealed: number;
  /**
   * The keys of the rows whose value neither MASTER_KEY nor MASTER_KEY_PREVIOUS decrypts, or whose associated data do
   * not match.
   */
  readonly unopened: readonly string[];
}

interface SealedRow {
  readonly key: string;
  readonly sealed: string;
  readonly bound: Readonly<Record<string, unknown>>;
}

/**
 * Re-encrypts with MASTER_KEY all values that were sealed with MASTER_KEY_PREVIOUS, while the service runs. A value is
 * replaced only if it has not changed since it was read. Processes with the old key may add values during a pass, so
 * the passes over all columns repeat until one finds no value of the old key.
 */
export async function rotateMaster(db: RawDb, box: SecretBox): Promise<ResealedColumn[]> {
  const total = new Map<SealedColumn, ResealedColumn>();
  for (let found = true; found;) {
    found = false;
    for (const column of SEALED_COLUMNS) {
      const before = total.get(column)?.resealed ?? 0;
      const pass = await resealColumn(db, box, column);
      found ||= pass.resealed > 0;
      total.set(column, { ...pass, resealed: before + pass.resealed });
    }
  }
  return [...total.values()];
}

async function resealColumn(
  db: RawDb,
  box: SecretBox,
  column: SealedColumn,
): Promise<ResealedColumn> {
  let resealed = 0;
  const unopened: string[] = [];
  let after = "";
  for (;;) {
    const rows = await sealedAfter(db, column, after);
    const fresh = rows
      .filter(({ sealed }) => !box.isCurrent(sealed))
      .flatMap((row) => {
        const next = reseal(box, column, row);
        if (next === undefined) unopened.push(row.key);
        return next === undefined ? [] : [{ key: row.key, before: row.sealed, after: next }];
      });
    if (fresh.length > 0) resealed += await replace(db, column, fresh);
    if (rows.length < BATCH_ROWS) break;
    after = rows.at(-1)?.key ?? after;
  }
  const { table, name } = column.sealed;
  return { table: getTableName(table), column: name, resealed, unopened };
}

function reseal(box: SecretBox, column: SealedColumn, row: SealedRow): string | undefined {
  const bound = associatedDataOf(column, row.bound);
  try {
    return box.seal(box.open(row.sealed, bound), bound);
  } catch {
    return undefined;
  }
}

async function sealedAfter(
  { sql }: RawDb,
  column: SealedColumn,
  after: string,
): Promise<SealedRow[]> {
  const { sealed, key } = column;
  const bound = boundBy(column).map(({ name }) => sql`${name}::text, ${sql(name)}`);
  const pairs = bound.flatMap((pair, i) => (i === 0 ? [pair] : [sql`, `, pair]));
  return sql<SealedRow[]>`
    select ${sql(key.name)} as key, ${sql(sealed.name)} as sealed, json_build_object(${pairs}) as bound
      from ${sql(getTableName(sealed.table))}
     where ${sql(sealed.name)} is not null and ${sql(key.name)} > ${after}
     order by ${sql(key.name)} limit ${BATCH_ROWS}`;
}

async function replace(
  { sql }: RawDb,
  { sealed, key }: SealedColumn,
  values: readonly { key: string; before: string; after: string }[],
): Promise<number> {
  const { count } = await sql`
    update ${sql(getTableName(sealed.table))} t set ${sql(sealed.name)} = v.after
      from json_to_recordset(${JSON.stringify(values)}::text::json) as v(key text, before text, after text)
     where t.${sql(key.name)} = v.key and t.${sql(sealed.name)} = v.before`;
  return count;
}

/** Formats one line for each running process with its master keys. The process seals with the first of them. */
function showProcesses(running: readonly RunningProcess[]): string[] {
  const lines = running.map(
    ({ role, host, pid, masterKeys, ageS }) =>
      `${role.padEnd(10)}  ${host}, pid ${pid}  master keys ${masterKeys.join(", ")}  seen ${ageS} s ago`,
  );
  return lines.length === 0 ? ["No API or dispatcher is running."] : lines;
}

/** Returns lines about the running processes that lack the current master key; an empty list if all have it. */
function lackOf(running: readonly RunningProcess[], box: SecretBox): string[] {
  const [current = ""] = box.keyIds;
  const lacking = running.filter(({ masterKeys }) => !masterKeys.includes(current));
  if (lacking.length === 0) return [];
  return [
    `These processes do not have the new master key (${current}):`,
    ...showProcesses(lacking),
  ];
}

/**
 * Formats the result of `rotateMaster` as lines. `done` is true if every value could be decrypted, so that the old key
 * will not be needed.
 */
export function reportOf(results: readonly ResealedColumn[]): { lines: string[]; done: boolean } {
  const lines = results.map(
    ({ table, column, resealed, unopened }) =>
      `${`${table}.${column}`.padEnd(45)} ${String(resealed).padStart(6)} re-encrypted` +
      (unopened.length === 0
        ? ""
        : `, ${unopened.length} NOT OPENED: ${unopened.slice(0, 5).join(", ")}`),
  );
  const lost = results.reduce((sum, { unopened }) => sum + unopened.length, 0);
  if (lost > 0)
    lines.push(
      "",
      `${lost} values cannot be decrypted with either key. Keep MASTER_KEY_PREVIOUS and find the key of these values.`,
    );
  else
    lines.push(
      "",
      "All stored secrets are encrypted with MASTER_KEY. Remove MASTER_KEY_PREVIOUS as soon as every process runs with this",
      `MASTER_KEY, and ${CODES_MINUTES} minutes have passed since the last of them started (for codes sent by mail).`,
    );
  return { lines, done: lost === 0 };
}
