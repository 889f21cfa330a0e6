import { describe, expect, test } from "bun:test";

import { Type, type TObject } from "@sinclair/typebox";

import { check, checkQuery } from "../../../src/http/check.ts";
import { isRowId, isUlid, listOf, pageOf, pageQuery } from "../../../src/http/page.ts";
import { describeSchema } from "../../../src/http/openapi-schemas.ts";
import { instantText, storableText } from "../../../src/http/text.ts";
import { Problem } from "../../../src/lib/problem.ts";

function errorsOf(work: () => unknown) {
  try {
    work();
  } catch (error) {
    if (error instanceof Problem) return error.errors;
    throw error;
  }
  return undefined;
}

describe("a body that does not fit", () => {
  const schema = Type.Object(
    {
      label: Type.String({ minLength: 1, maxLength: 3 }),
      rate: Type.Integer({ minimum: 1, maximum: 5 }),
      kind: Type.Union([Type.Literal("a"), Type.Literal("b"), Type.Null()]),
      items: Type.Array(Type.Object({ id: Type.String() })),
    },
    { additionalProperties: false },
  );

  test("names every bad field with its path, in words", () => {
    const value = { label: "", rate: 6, kind: "c", items: [{ id: "x" }, {}], more: 1 };
    expect(errorsOf(() => check(schema, value))).toEqual({
      label: ["must have 1 to 3 characters"],
      rate: ["must be a whole number from 1 to 5"],
      kind: ["must be one of a, b, null"],
      "items.1.id": ["is required"],
      more: ["is not a known field"],
    });
  });

  test("is named as a whole where it is no object", () => {
    expect(Object.keys(errorsOf(() => check(schema, [])) ?? {})).toContain("body");
  });
});

const queryErrors = (text: string, schema: TObject = Type.Object(pageQuery)) =>
  errorsOf(() => checkQuery(schema, new URLSearchParams(text)));

describe("a query", () => {
  test.each(["", "limit=1", "limit=100", "unknown=1", "cursor=abc"])("%p is taken", (text) => {
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

describe("a page", () => {
  const rows = [3, 2, 1].map((id) => ({ id }));
  const shape = {
    key: (row: { id: number }) => String(row.id),
    show: (row: { id: number }) => row.id,
  };

  test("has a cursor only if there is more, and the cursor leads on", () => {
    const first = listOf(rows, pageOf({ limit: 2 }, isRowId), shape);
    expect(first.data).toEqual([3, 2]);
    expect(pageOf({ limit: 2, cursor: first.next_cursor ?? "" }, isRowId).after).toBe("2");
    expect(listOf(rows, pageOf({ limit: 3 }, isRowId), shape).next_cursor).toBeNull();
    expect(pageOf({}, isRowId)).toEqual({ limit: 50, after: undefined });
  });

  test.each(["", "2", "Mg==", "eA", "MDE"])(
    "refuses the cursor %p, which it never made",
    (cursor) => {
      expect(errorsOf(() => pageOf({ cursor }, isRowId))).toHaveProperty("cursor");
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

  test.each(["a", "abc", "😀😀😀", "a\n😀"])("takes %p, which has 1 to 3 characters", (label) => {
    expect(check(schema, { label })).toEqual({ label });
  });

  test.each(["", "abcd", "😀😀😀😀", "a\0b", "a\ud83d"])("refuses %p", (label) => {
    expect(() => check(schema, { label })).toThrow(Problem);
  });

  test("is described as JSON Schema counts it", () => {
    expect(describeSchema(schema, { schemas: {} })).toMatchObject({
      properties: { label: { minLength: 1, maxLength: 3 } },
    });
  });
});

test("an instant pasted into a query may have lost its plus sign", () => {
  const schema = Type.Object({ since: Type.Optional(instantText()) });
  const read = (text: string) => checkQuery(schema, new URLSearchParams(text));
  const since = "2026-06-01T12:00:00.000+00:00";
  expect(read(`since=${since}`)).toEqual({ since });
  expect(read(`since=${encodeURIComponent(since)}`)).toEqual({ since });
  expect(() => read("since=2026-06-01 12:00")).toThrow(Problem);
});

test("a repeated query parameter is an error, unless it may be repeated: then it is absent", () => {
  const schema = Type.Object({
    a: Type.Optional(Type.String()),
    b: Type.Optional(Type.String({ repeatable: true })),
  });
  expect(checkQuery(schema, new URLSearchParams("a=1&b=1&b=2"))).toEqual({ a: "1" });
  expect(() => checkQuery(schema, new URLSearchParams("a=1&a=2"))).toThrow(Problem);
});
