import { getTableName } from "drizzle-orm";

import type { RawDb } from "../../db/client.ts";
import type { SecretBox } from "../lib/secret-box.ts";
import {
  boundBy,
  associatedDataOf,
  type RunningProcess,
  SEALED_COLUMNS,
  type SealedColumn,
} from "../master-key.ts";

/** Rows per statement; few enough that their locks do not delay anyone. */
const BATCH = 200;
/** How long codes from before the change, and tokens exchanged for them, still need the old key. */
const CODES_MINUTES = 15;

interface Resealed {
  readonly table: string;
  readonly column: string;
  readonly resealed: number;
  /** The row keys of values that neither key opens, or whose associated data do not match. */
  readonly unopened: readonly string[];
}

interface SealedRow {
  readonly key: string;
  readonly sealed: string;
  readonly bound: Readonly<Record<string, unknown>>;
}

/**
 * Re-encrypts with MASTER_KEY all values that were sealed with MASTER_KEY_PREVIOUS, while everything runs. A value is
 * replaced only if it is unchanged since it was read. Passes repeat until one finds nothing, because processes with
 * the old key may add values meanwhile.
 */
export async function rotateMaster(db: RawDb, box: SecretBox): Promise<Resealed[]> {
  const total = new Map<SealedColumn, Resealed>();
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

async function resealColumn(db: RawDb, box: SecretBox, column: SealedColumn): Promise<Resealed> {
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
    if (rows.length < BATCH) break;
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
     order by ${sql(key.name)} limit ${BATCH}`;
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

/** Formats one line per running process with its keys; the first key seals. */
export function showProcesses(running: readonly RunningProcess[]): string[] {
  const lines = running.map(
    ({ role, host, pid, masterKeys, ageS }) =>
      `${role.padEnd(10)}  ${host}, pid ${pid}  master keys ${masterKeys.join(", ")}  seen ${ageS} s ago`,
  );
  return lines.length === 0 ? ["No API or dispatcher is running."] : lines;
}

/** Returns lines about running processes that lack the new key; empty if the rotation may begin. */
export function lackOf(running: readonly RunningProcess[], box: SecretBox): string[] {
  const [current = ""] = box.keyIds;
  const lacking = running.filter(({ masterKeys }) => !masterKeys.includes(current));
  if (lacking.length === 0) return [];
  return [
    `These processes do not have the new master key (${current}):`,
    ...showProcesses(lacking),
  ];
}

/** Formats the result, and decides whether the old key may be removed. */
export function reportOf(results: readonly Resealed[]): { lines: string[]; done: boolean } {
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
      `${lost} values open with neither key: keep MASTER_KEY_PREVIOUS and find their key.`,
    );
  else
    lines.push(
      "",
      "All stored secrets are encrypted with MASTER_KEY. Remove MASTER_KEY_PREVIOUS as soon as every process runs with this",
      `MASTER_KEY, and ${CODES_MINUTES} minutes have passed since the last of them started (for codes sent by mail).`,
    );
  return { lines, done: lost === 0 };
}
