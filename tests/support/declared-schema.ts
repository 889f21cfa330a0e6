import { generateDrizzleJson, generateMigration } from "drizzle-kit/api";
import { getTableConfig, PgTable } from "drizzle-orm/pg-core";

import type { RawDb } from "../../db/client.ts";

/** Imports all files of db/schema and answers the tables that they export. */
export async function declaredTables(): Promise<Record<string, PgTable>> {
  const root = `${import.meta.dir}/../..`;
  const files = [...new Bun.Glob("db/schema/*.ts").scanSync(root)];
  const modules = await Promise.all(
    files.map((file): Promise<Record<string, unknown>> => import(`${root}/${file}`)),
  );
  const exported = modules.flatMap((one) => Object.entries(one));
  return Object.fromEntries(
    exported.flatMap(([name, one]) => (one instanceof PgTable ? [[name, one]] : [])),
  );
}

/**
 * Writes the DDL with which drizzle-kit creates these tables in the schema `schema`, and the checks of the columns that
 * list their values.
 */
export async function ddlOf(tables: Record<string, PgTable>, schema: string): Promise<string[]> {
  const made = await generateMigration(generateDrizzleJson({}), generateDrizzleJson(tables));
  const checks = Object.values(tables).flatMap((table) => {
    const { name, columns } = getTableConfig(table);
    return columns.flatMap(({ name: column, enumValues }) => {
      if (enumValues === undefined) return [];
      const values = enumValues.map((one) => `'${one}'`).join(", ");
      return `alter table ${name} add constraint ${name}_${column}_check check (${column} in (${values}))`;
    });
  });
  return [...made.map((one) => one.replaceAll('"public".', `"${schema}".`)), ...checks];
}

interface Line {
  readonly table: string;
  readonly line: string;
}

/**
 * Reads the columns, constraints and unique indexes of each table of a PostgreSQL schema, as the server describes them, so
 * that two schemas can be compared as text. Partitions are left out.
 */
export async function catalogOf(db: RawDb, schema: string): Promise<Record<string, string[]>> {
  const lines = await db.transaction(async ({ sql }) => {
    // The server then prints names without the schema, which makes the texts of both schemas comparable.
    await sql.unsafe(`set local search_path to ${schema}`);
    return sql<Line[]>`
      with tables as (
        select oid, relname::text as table from pg_class
         where relnamespace = ${schema}::regnamespace and relkind in ('r', 'p') and not relispartition
      )
      select t.table, concat_ws(' ', 'column', a.attname, format_type(a.atttypid, a.atttypmod), l.collname,
               case when a.attnotnull then 'not null' end, nullif(a.attidentity, ''), pg_get_expr(d.adbin, d.adrelid)) as line
        from tables t
        join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
        left join pg_attrdef d on d.adrelid = t.oid and d.adnum = a.attnum
        left join pg_collation l on l.oid = a.attcollation
      union all
      select t.table, concat_ws(' ', 'constraint', c.conname, replace(pg_get_constraintdef(c.oid), ' NOT VALID', ''))
        from tables t join pg_constraint c on c.conrelid = t.oid and c.contype <> 'n'
      union all
      select t.table, replace(replace(pg_get_indexdef(i.indexrelid), 'ON ONLY ', 'ON '), ${`${schema}.`}, '')
        from tables t join pg_index i on i.indrelid = t.oid and i.indisunique
      order by 1, 2`;
  });
  const found: Record<string, string[]> = {};
  for (const { table, line } of lines) (found[table] ??= []).push(line);
  return found;
}
