import { expect, test } from "bun:test";

import { fieldsOf, isRecord } from "../../../src/lib/fields.ts";

test.each([[undefined], [null], ["text"], [7], [true]])("%p has no fields", (value) => {
  expect(fieldsOf(value)).toEqual({});
});

test("the fields of an error are its own and the inherited ones", () => {
  const error = Object.assign(new TypeError("bad"), { code: "E_BAD" });
  const { code, message, name } = fieldsOf(error);
  expect([code, message, name]).toEqual(["E_BAD", "bad", "TypeError"]);
});

test("a list has fields, but is no record", () => {
  const list = ["a"];
  expect(fieldsOf(list)).toBe(list as never);
  expect([list, {}, null].map(isRecord)).toEqual([false, true, false]);
});
