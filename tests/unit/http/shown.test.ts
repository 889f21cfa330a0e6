import { expect, test } from "bun:test";
import { join } from "node:path";

import { type TSchema, Type, TypeGuard } from "@sinclair/typebox";
import { getTableColumns, is } from "drizzle-orm";
import { PgTable } from "drizzle-orm/pg-core";

import { fieldsShown, shown, shownAs } from "../../../src/http/shown.ts";
import { instantAnswer, orNull } from "../../../src/http/text.ts";

const AT = new Date("2026-06-01T12:00:00.000Z");
const TEXT = "2026-06-01T12:00:00.000+00:00";

const Part = Type.Object({ seen_at: orNull(instantAnswer()), success_rate_24h: Type.Number() });
const Whole = Type.Object({
  id: Type.Integer(),
  started_at: instantAnswer(),
  last_part: orNull(Part),
  parts: Type.Array(Part),
  times: Type.Array(instantAnswer()),
  test_id: Type.Optional(Type.String()),
});

const part = { successRate24h: 0.5, seenAt: AT };
const row = { parts: [part], times: [AT], lastPart: null, startedAt: AT, id: 1, sealed: "secret" };

test("shows the fields of the schema in its order, instants as text, and null as null", () => {
  const shownPart = { seen_at: TEXT, success_rate_24h: 0.5 };
  const body = { id: 1, started_at: TEXT, last_part: null, parts: [shownPart], times: [TEXT] };
  expect(JSON.stringify(shown(Whole, row))).toBe(JSON.stringify(body));
  const full = { ...row, lastPart: { ...part, seenAt: null }, testId: "a" };
  expect([full].map(shownAs(Whole))).toEqual([
    { ...body, last_part: { ...shownPart, seen_at: null }, test_id: "a" },
  ]);
});

test("refuses to compile a row without a field, or with a text in the place of an instant", () => {
  const { id: _id, ...rest } = row;
  // @ts-expect-error -- the row has no id.
  expect(shown(Whole, rest)).not.toHaveProperty("id");
  // @ts-expect-error -- the instant is a text.
  expect(shown(Whole, { ...row, startedAt: TEXT })).toHaveProperty("started_at", TEXT);
});

test("picks the columns that a schema shows", () => {
  const columns = { id: 1, seenAt: 2, successRate24h: 3, sealedSecret: 4 };
  expect(fieldsShown(Part, columns)).toEqual({ seenAt: 2, successRate24h: 3 });
});

test("no schema of a response has a field named like a column of secrets, hashes or signatures", async () => {
  const columns = new Set<string>();
  for (const exported of await exportsOf("db/schema/*.ts"))
    if (is(exported, PgTable))
      for (const { name } of Object.values(getTableColumns(exported)))
        if (/^sealed_|hash|digest$|signature|secret$/.test(name)) columns.add(name);
  expect([...columns]).toContain("sealed_previous_secret");
  // A closed schema is the body of a request, which shows nothing.
  const schemas = (await exportsOf("src/**/*model.ts"))
    .filter((one) => TypeGuard.IsObject(one))
    .filter((one) => one.additionalProperties !== false);
  const fields = new Set(schemas.flatMap(fieldsOf));
  expect([...fields]).toContain("secret_fingerprint");
  expect([...columns].filter((name) => fields.has(name))).toEqual([]);
});

async function exportsOf(files: string): Promise<unknown[]> {
  const root = join(import.meta.dir, "../../..");
  const paths = [...new Bun.Glob(files).scanSync({ cwd: root, absolute: true })];
  const modules = await Promise.all(paths.map((path): Promise<object> => import(path)));
  return modules.flatMap((one) => Object.values(one));
}

/** Returns the names of all fields of a schema, also of those inside other fields. */
function fieldsOf(schema: TSchema): string[] {
  if (TypeGuard.IsArray(schema)) return fieldsOf(schema.items);
  if (TypeGuard.IsUnion(schema)) return schema.anyOf.flatMap(fieldsOf);
  if (!TypeGuard.IsObject(schema)) return [];
  return Object.entries(schema.properties).flatMap(([name, field]) => [name, ...fieldsOf(field)]);
}
