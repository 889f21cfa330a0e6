import { beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";

import { getTableName, is, Param, Placeholder } from "drizzle-orm";
import { PgColumn } from "drizzle-orm/pg-core";

import { declaredStatements, valueOf, type Shape, type Statement } from "../../../db/statement.ts";
import { createDatabase } from "../../support/postgres.ts";
import { fixture } from "../../support/fixture.ts";

const ROOT = join(import.meta.dir, "../../..");

// A statement is declared when its module is loaded.
for (const folder of ["db", "src", "dispatcher"])
  for (const path of new Bun.Glob(`${folder}/**/*.ts`).scanSync(ROOT))
    if (
      (await Bun.file(join(ROOT, path)).text()).includes(" = statement({") ||
      path.includes("queries")
    )
      await import(join(ROOT, path));
const database = fixture(createDatabase);

// Other test files of this process may have declared statements of their own.
const statements = declaredStatements.filter(({ name }) => !name.startsWith("test."));

test("every statement has a unique name", () => {
  expect(statements.length).toBeGreaterThan(0);
  const names = statements.map(({ name }) => name);
  expect(names).toEqual([...new Set(names)]);
});

describe.each(statements.map((one) => [one.name, one] as const))("%s", (_, statement) => {
  test("accepts parameters of the declared types, also null", async () => {
    for (const withNulls of [false, true]) {
      const { params } = await described(statement, withNulls);
      expect(params).toEqual(declaredParams(statement));
    }
  });

  test("returns the declared columns", async () => {
    const { columns } = await described(statement);
    const answered = columns.map(({ name, type }) => [name, typeNames.get(type)]);
    const declared = Object.entries(statement.columns).map(([name, one]) => [
      name,
      valueOf(one).type,
    ]);
    expect(answered.toSorted()).toEqual(declared.toSorted());
  });

  test("declares the column of the schema that a value comes from", async () => {
    const { columns } = await described(statement);
    for (const { name, table, number } of columns) {
      const shape = statement.columns[name];
      if (table === 0 || shape === undefined) continue;
      const [origin] = await database.db.sql<{ name: string }[]>`
        select attrelid::regclass || '.' || attname as name from pg_attribute
         where attrelid = ${table} and attnum = ${number}`;
      expect(`${name}: ${nameOf(shape)}`).toBe(`${name}: ${origin?.name}`);
    }
  });

  test("declares null only where its columns differ", () => {
    const spoken = Object.entries(statement.columns).filter(
      ([, one]) => !(one instanceof PgColumn) && one.column?.notNull === !one.isNullable,
    );
    expect(spoken).toEqual([]);
  });
});

function nameOf(shape: Shape): string {
  const { column } = valueOf(shape);
  return column === undefined ? "no column" : `${getTableName(column.table)}.${column.name}`;
}

let typeNames: ReadonlyMap<number, string>;

beforeAll(async () => {
  const types = await database.db.sql<{ oid: number; name: string }[]>`
    select oid, oid::regtype::text as name from pg_type`;
  typeNames = new Map(types.map(({ oid, name }) => [oid, name]));
});

/** Returns the parameter from which a value comes; undefined for a constant. */
function paramOf(bind: unknown, { params }: Statement) {
  const source = is(bind, Param) ? bind.value : bind;
  if (!is(source, Placeholder)) return undefined;
  const shape = params[source.name];
  if (shape === undefined) throw new Error(`There is no parameter ${source.name}.`);
  return { name: source.name, shape };
}

/** Makes a sample value for a parameter whose type the driver must know: it sends the type of instants and booleans. */
function sample(bind: unknown, statement: Statement, withNulls: boolean): unknown {
  const param = paramOf(bind, statement);
  if (param === undefined) return bind;
  const { isNullable, type } = valueOf(param.shape);
  if (withNulls && isNullable) return null;
  if (type === "timestamp with time zone") return new Date(0);
  return type === "boolean" ? true : null;
}

async function described(statement: Statement, withNulls = false) {
  const samples = statement.binds.map((bind) => sample(bind, statement, withNulls));
  // The driver accepts all values of `sample`.
  const { types, columns } = await database.db.sql.unsafe(statement.text, samples as []).describe();
  return {
    params: statement.binds.flatMap((bind, i) => {
      const param = paramOf(bind, statement);
      return param === undefined ? [] : [[param.name, typeNames.get(types[i] ?? 0)] as const];
    }),
    columns,
  };
}

function declaredParams(statement: Statement) {
  return statement.binds.flatMap((bind) => {
    const param = paramOf(bind, statement);
    return param === undefined ? [] : [[param.name, valueOf(param.shape).type] as const];
  });
}
