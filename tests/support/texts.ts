import { getTableName } from "drizzle-orm";

import type { RawDb } from "../../db/client.ts";
import type { SecretBox } from "../../src/lib/secrets.ts";
import { associatedDataOf, SEALED_COLUMNS } from "../../src/master-key.ts";

/** Reads the columns of every table that can hold a text. */
const textColumns = ({ sql }: RawDb) => sql<{ table: string; column: string }[]>`
  select c.table_name as table, c.column_name as column
    from information_schema.columns c join information_schema.tables t using (table_schema, table_name)
   where c.table_schema = 'public' and t.table_type = 'BASE TABLE'
     and c.data_type in ('text', 'json', 'jsonb', 'bytea', 'ARRAY', 'uuid', 'character varying')
   order by 1, 2`;

/** Returns the columns that can hold a text, as `table.column`, without those of partitions. */
export async function textColumnNames(db: RawDb): Promise<string[]> {
  const tables = await rowCounts(db);
  return (await textColumns(db))
    .filter(({ table }) => table in tables)
    .map(({ table, column }) => `${table}.${column}`);
}

/** Finds texts in every column of every table that can hold a text, also in bytes and in what is sealed. */
export async function placesOf(
  db: RawDb,
  box: SecretBox,
  texts: readonly string[],
): Promise<string[]> {
  const { sql } = db;
  const wanted = texts.map((text) => text.toLowerCase());
  const places = new Set<string>();
  for (const { table, column } of await textColumns(db)) {
    const rows = await sql<{ value: string }[]>`
      select distinct ${sql(column)}::text as value from ${sql(table)} where ${sql(column)} is not null`;
    for (const { value } of rows)
      for (const text of wanted) if (holds(value, text)) places.add(`${table}.${column}: ${text}`);
  }
  for (const column of SEALED_COLUMNS) {
    const name = getTableName(column.sealed.table);
    const rows = await sql<Record<string, unknown>[]>`
      select * from ${sql(name)} where ${sql(column.sealed.name)} is not null`;
    for (const row of rows) {
      const opened = box.open(String(row[column.sealed.name]), associatedDataOf(column, row));
      for (const text of wanted)
        if (holds(opened, text)) places.add(`${name}.${column.sealed.name} (sealed): ${text}`);
    }
  }
  return [...places].toSorted();
}

function holds(value: string, text: string): boolean {
  const hex = Buffer.from(text).toString("hex");
  return value.toLowerCase().includes(text) || (value.startsWith("\\x") && value.includes(hex));
}

/** Counts the rows of each table. */
export async function rowCounts({ sql }: RawDb): Promise<Record<string, number>> {
  const tables = await sql<{ name: string }[]>`
    select relname as name from pg_class
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition order by 1`;
  const counts: Record<string, number> = {};
  for (const { name } of tables) {
    const [row] = await sql<{ count: number }[]>`select count(*) as count from ${sql(name)}`;
    counts[name] = Number(row?.count);
  }
  return counts;
}
