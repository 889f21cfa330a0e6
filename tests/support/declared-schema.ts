import { is, SQL } from "drizzle-orm";
import {
  getTableConfig,
  IndexedColumn,
  type PgColumn,
  PgDialect,
  PgTable,
} from "drizzle-orm/pg-core";

import type { RawDb } from "../../db/client.ts";

/** Imports all files of db/schema and answers the tables that they export. */
export async function declaredTables(): Promise<PgTable[]> {
  const root = `${import.meta.dir}/../..`;
  const files = [...new Bun.Glob("db/schema/*.ts").scanSync(root)];
  const modules = await Promise.all(
    files.map((file): Promise<Record<string, unknown>> => import(`${root}/${file}`)),
  );
  return modules.flatMap((one) => Object.values(one)).filter((one) => one instanceof PgTable);
}

/**
 * Writes the DDL of the Drizzle schema, as drizzle-kit would for a first migration, to compare it with the migrated
 * database.
 */
export function ddlOf(tables: readonly PgTable[]): string[] {
  return [
    ...tables.map(createTable),
    ...tables.flatMap(constraintsOf),
    // Foreign keys come after the primary and unique keys that they reference.
    ...tables.flatMap(foreignKeysOf),
    ...tables.flatMap(indexesOf),
  ];
}

const namesOf = (columns: readonly PgColumn[]) => columns.map(({ name }) => name).join(", ");

function createTable(table: PgTable): string {
  const { name, columns } = getTableConfig(table);
  return `create table ${name} (${columns.map(columnOf).join(", ")})`;
}

function columnOf(column: PgColumn): string {
  const parts = [column.name, column.getSQLType()];
  if (column.notNull) parts.push("not null");
  if (column.generatedIdentity?.type === "always") parts.push("generated always as identity");
  if (column.default !== undefined) parts.push(`default ${literal(column.default)}`);
  if (column.primary) parts.push("primary key");
  return parts.join(" ");
}

/** Writes a column default as SQL. It supports only the types that the schema uses, and throws for any other. */
function literal(value: unknown): string {
  if (Array.isArray(value) && value.length === 0) return "'{}'";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (typeof value === "string") return `'${value}'`;
  throw new Error(`No literal for ${JSON.stringify(value)}.`);
}

function constraintsOf(table: PgTable): string[] {
  const { name, columns, primaryKeys, uniqueConstraints } = getTableConfig(table);
  const added = [
    ...primaryKeys.map((key) => `primary key (${namesOf(key.columns)})`),
    ...columns
      .filter(({ isUnique }) => isUnique)
      .map((one) => `constraint ${one.uniqueName} unique (${one.name})`),
    ...uniqueConstraints.map((one) => `constraint ${one.name} unique (${namesOf(one.columns)})`),
    ...columns
      .filter((one) => one.enumValues !== undefined)
      .map(
        (one) => `constraint ${name}_${one.name}_check check (${one.name} in (${valuesOf(one)}))`,
      ),
  ];
  return added.map((constraint) => `alter table ${name} add ${constraint}`);
}

const valuesOf = ({ enumValues = [] }: PgColumn) => enumValues.map((one) => `'${one}'`).join(", ");

function foreignKeysOf(table: PgTable): string[] {
  const { name, foreignKeys } = getTableConfig(table);
  return foreignKeys.map(({ reference, onDelete }) => {
    const { columns, foreignColumns, foreignTable } = reference();
    const target = `${getTableConfig(foreignTable).name} (${namesOf(foreignColumns)})`;
    const action = onDelete === undefined ? "" : `on delete ${onDelete}`;
    return `alter table ${name} add foreign key (${namesOf(columns)}) references ${target} ${action}`;
  });
}

function indexesOf(table: PgTable): string[] {
  const { name, indexes } = getTableConfig(table);
  return indexes.map(({ config }) => {
    const columns = config.columns.map((one) => {
      if (is(one, SQL)) return textOf(one);
      if (!is(one, IndexedColumn)) throw new Error(`${config.name} is on something else.`);
      return one.name;
    });
    const where = config.where === undefined ? "" : `where ${textOf(config.where)}`;
    return `create unique index ${config.name} on ${name} (${columns.join(", ")}) ${where}`;
  });
}

function textOf(value: SQL): string {
  const { sql, params } = new PgDialect().sqlToQuery(value);
  if (params.length > 0) throw new Error(`A parameter in the schema: ${sql}`);
  return sql;
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
