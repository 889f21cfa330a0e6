import { describe, expect, test } from "bun:test";

import { Type, type TObject, type TSchema } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";

import { examine, examineQuery, readQuery, type Examined } from "../../../src/http/fields.ts";
import { listOf, pageOf, pageQuery } from "../../../src/http/list.ts";
import { isRowId, isUlid } from "../../../src/http/ids.ts";
import { describeSchema } from "../../../src/http/openapi/schemas.ts";
import { instantText, lineText, storableText } from "../../../src/http/text.ts";
import { fieldsOf } from "../../../src/lib/fields.ts";

describe("an invalid body", () => {
  const schema = Type.Object(
    {
      label: Type.String({ minLength: 1, maxLength: 3 }),
      rate: Type.Integer({ minimum: 1, maximum: 5 }),
      kind: Type.Union([Type.Literal("a"), Type.Literal("b"), Type.Null()]),
      items: Type.Array(Type.Object({ id: Type.String() })),
    },
    { additionalProperties: false },
  );

  test("names every invalid field with its path and a sentence", () => {
    const value = { label: "", rate: 6, kind: "c", items: [{ id: "x" }, {}], more: 1 };
    expect(toFieldErrors(examine(schema, value))).toEqual({
      label: ["must have 1 to 3 characters"],
      rate: ["must be a whole number from 1 to 5"],
      kind: ["must be one of a, b, null"],
      "items.1.id": ["is required"],
      more: ["is not a known field"],
    });
  });

  test("is named as a whole if it is no object", () => {
    expect(Object.keys(toFieldErrors(examine(schema, [])) ?? {})).toContain("body");
  });

  test.each([
    { email: null, zz: 1 },
    { zz: 1, inner: {} },
    { count: "1", zz: 1, inner: { a: "", b: 1 }, yy: 2 },
    { zz: 1 },
    {},
  ])("has its errors in the order of the checker: %j", (value) => {
    const inner = Type.Object({ a: Type.String() }, { additionalProperties: false });
    const fields = { email: Type.String(), inner, count: Type.Optional(Type.Number()) };
    const nested = Type.Object(fields, { additionalProperties: false });
    const errors = [...TypeCompiler.Compile(nested).Errors(value)];
    const paths = errors.map(({ path }) => path.slice(1).replaceAll("/", "."));
    expect(Object.keys(toFieldErrors(examine(nested, value)) ?? {})).toEqual([...new Set(paths)]);
  });

  test("keeps its valid parts, malformed ones as undefined, missing and unknown ones absent", () => {
    const value = { label: "", kind: "b", items: [{ id: "x" }, { id: 1 }, 2], "a/b~": 1 };
    expect(validOf(schema, value)).toStrictEqual({
      label: undefined,
      kind: "b",
      items: [{ id: "x" }, { id: undefined }, undefined],
    });
    expect(Object.keys(toFieldErrors(examine(schema, value)) ?? {})).toContain("a~1b~0");
    expect(validOf(schema, { ...value, items: "x" })).toHaveProperty("items", undefined);
    expect(validOf(schema, [])).toBeUndefined();
    expect(validOf(schema, { label: "a", rate: 1, kind: null, items: [] })).toBe("all of it");
  });

  test("keeps no part under a name with a meaning in JavaScript", () => {
    const sound = validOf(schema, JSON.parse('{"__proto__": {"rate": 1}, "rate": 2}'));
    expect([Object.getPrototypeOf(sound), fieldsOf(sound)["rate"]]).toEqual([Object.prototype, 2]);
  });
});

const listQuery = Type.Object(pageQuery(isRowId));
const queryErrors = (text: string, schema: TObject = listQuery) =>
  toFieldErrors(examineQuery(schema, readQuery(schema, text)));

describe("a query", () => {
  test.each(["", "limit=1", "limit=100", "unknown=1", "cursor=Mg"])("%p is accepted", (text) => {
    expect(queryErrors(text)).toBeUndefined();
  });

  test.each([
    "limit=0",
    "limit=101",
    "limit=-1",
    "limit=1.5",
    "limit=",
    "limit=abc",
    "limit=1&limit=2",
  ])("%p is an error on limit", (text) => {
    expect(Object.keys(queryErrors(text) ?? {})).toEqual(["limit"]);
  });
});

test("a query names a repeated parameter together with all other errors", () => {
  const errors = queryErrors("limit=1&limit=2&cursor=x");
  expect(errors).toEqual({
    limit: ["must not be repeated"],
    cursor: ["is not a cursor of this list"],
  });
});

describe("a page", () => {
  const rows = [3, 2, 1].map((id) => ({ id }));
  const shape = {
    key: (row: { id: number }) => String(row.id),
    show: (row: { id: number }) => row.id,
  };

  test("has a cursor only if there is a next page, and the cursor leads to it", () => {
    const first = listOf(rows, pageOf({ limit: 2 }), shape);
    expect(first.data).toEqual([3, 2]);
    expect(pageOf({ limit: 2, cursor: first.next_cursor ?? "" }).after).toBe("2");
    expect(listOf(rows, pageOf({ limit: 3 }), shape).next_cursor).toBeNull();
    expect(pageOf({})).toEqual({ limit: 50, after: undefined });
  });

  test.each(["", "2", "Mg==", "eA", "MDE"])(
    "rejects the cursor %p, which it never produced",
    (cursor) => {
      expect(queryErrors(`limit=0&cursor=${cursor}`)).toHaveProperty("cursor");
    },
  );

  test("knows ULIDs and row ids by their form", () => {
    expect(isUlid("01M7VPFG254W3W390T2XTR736P")).toBe(true);
    expect(isUlid("81M7VPFG254W3W390T2XTR736P")).toBe(false);
    expect([isRowId("1"), isRowId("0"), isRowId("01"), isRowId("1e3")]).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });
});

describe("the length of a text", () => {
  const schema = Type.Object({ label: storableText([1, 3]) });

  test.each(["a", "abc", "😀😀😀", "a\n😀"])("accepts %p, which has 1 to 3 characters", (label) => {
    expect(toFieldErrors(examine(schema, { label }))).toBeUndefined();
  });

  test.each(["", "abcd", "😀😀😀😀", "a\0b", "a\ud83d"])("rejects %p", (label) => {
    expect(Object.keys(toFieldErrors(examine(schema, { label })) ?? {})).toEqual(["label"]);
  });

  test.each([
    ["Main Street 😀", true],
    ["שלום עולם", true],
    ["a\nb", false],
    ["a\tb", false],
    ["a\u001b[31mb", false],
    ["a\u0007b", false],
    ["a\u007fb", false],
    ["a\u009bb", false],
    ["a\u2028b", false],
    ["a\u202eb", false],
    ["a\u2067b", false],
    ["a\ud83d", false],
  ])("in one line: %j is accepted: %p", (label, isFine) => {
    const one = Type.Object({ label: lineText([1, 20]) });
    expect(toFieldErrors(examine(one, { label })) === undefined).toBe(isFine);
  });

  test("is described as JSON Schema counts it", () => {
    expect(
      describeSchema(schema, { schemas: {}, responses: {}, parameters: {}, requestBodies: {} }),
    ).toMatchObject({
      properties: { label: { minLength: 1, maxLength: 3 } },
    });
  });
});

describe("a query parameter", () => {
  const read = (schema: TObject, text: string) => examineQuery(schema, readQuery(schema, text));

  test("of an instant may have a space instead of the plus sign, as after pasting", () => {
    const schema = Type.Object({ since: Type.Optional(instantText()) });
    const since = "2026-06-01T12:00:00.000+00:00";
    expect(read(schema, `since=${since}`)).toEqual({ value: { since } });
    expect(read(schema, `since=${encodeURIComponent(since)}`)).toEqual({ value: { since } });
    expect(toFieldErrors(read(schema, "since=2026-06-01 12:00"))).toHaveProperty("since");
  });

  test("that is repeated is an error or, if it is `repeatable`, counts as absent", () => {
    const schema = Type.Object({
      a: Type.Optional(Type.String()),
      b: Type.Optional(Type.String({ repeatable: true })),
    });
    expect(read(schema, "a=1&b=1&b=2")).toEqual({ value: { a: "1" } });
    expect(toFieldErrors(read(schema, "a=1&a=2"))).toEqual({ a: ["must not be repeated"] });
  });
});

const toFieldErrors = (examined: Examined<unknown>) =>
  "fieldErrors" in examined ? examined.fieldErrors : undefined;

const validOf = (schema: TSchema, value: unknown) => {
  const examined = examine(schema, value);
  return "fieldErrors" in examined ? examined.sound : "all of it";
};
