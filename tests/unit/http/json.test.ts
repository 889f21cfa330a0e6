import { describe, expect, test } from "bun:test";

import { MAX_DEPTH, MAX_TEXT_BYTES, maxValues, parseJson } from "../../../src/http/body.ts";
import { Problem } from "../../../src/lib/problem.ts";

describe("JSON", () => {
  test("may nest to 64 levels of lists and objects, and no deeper", () => {
    const lists = (depth: number) => "[".repeat(depth) + "]".repeat(depth);
    const objects = (depth: number) => '{"a":'.repeat(depth) + "1" + "}".repeat(depth);
    for (const nested of [lists, objects]) {
      expect(refusalOf(nested(MAX_DEPTH))).toBeUndefined();
      expect(refusalOf(nested(MAX_DEPTH + 1))).toBe(
        "invalid_json: The request body nests deeper than 64 levels.",
      );
    }
    expect(refusalOf(`[${Array.from({ length: 100 }, () => "[[]]").join(",")}]`)).toBeUndefined();
  });

  test("may have one value per 64 bytes of the body limit, and no more", () => {
    expect([maxValues(LIMIT), maxValues(1024 * 1024)]).toEqual([VALUES, 16_384]);
    const list = (values: number) => JSON.stringify(Array.from({ length: values }, () => 1));
    const fields = (values: number) =>
      JSON.stringify(Object.fromEntries(Array.from({ length: values }, (_, i) => [`a${i}`, 1])));
    for (const full of [list, fields]) {
      expect(refusalOf(full(VALUES))).toBeUndefined();
      expect(refusalOf(full(VALUES + 1))).toBe(
        "invalid_json: The request body has more than 1024 values.",
      );
      expect(refusalOf(full(VALUES + 1), 2 * LIMIT)).toBeUndefined();
    }
  });

  test("may have a text or a name of 256 KiB of UTF-8, however it is escaped, and no longer", () => {
    const limit = 4 * 1024 * 1024;
    for (const [before, after] of [
      ['["', '"]'],
      ['{"', '":1}'],
    ])
      for (const [character, bytes] of [
        ["x", 1],
        ["\\n", 1],
        ['\\"', 1],
        ["\\u0041", 1],
        ["\\u00e9", 2],
        ["é", 2],
        ["\\u20ac", 3],
        ["\\uD83D\\ude00", 4],
        ["😀", 4],
      ] as const) {
        const count = Math.floor(MAX_TEXT_BYTES / bytes);
        const fill = "x".repeat(MAX_TEXT_BYTES - count * bytes);
        const text = before + character.repeat(count) + fill;
        expect([character, refusalOf(text + after, limit)]).toEqual([character, undefined]);
        expect(refusalOf(`${text}x${after}`, limit)).toBe(
          "invalid_json: The request body has a text that is too long.",
        );
      }
    const longest = JSON.stringify("😀".repeat(20_000)).replaceAll(/[^"]/g, (half) => {
      return `\\u${half.charCodeAt(0).toString(16)}`;
    });
    expect(parse(longest, limit)).toBe("😀".repeat(20_000));
  });

  test.each([
    ['{"a":"[[[[\\"[[,,,{{"}', { a: '[[[["[[,,,{{' }],
    ['{"a\\\\":"\\\\"}', { "a\\": "\\" }],
    ['["\\u005b\\"]"]', ['["]']],
    [" [ 1 , 2 ] ", [1, 2]],
    ['{"a":1,"a":2}', { a: 2 }],
    ["null", null],
  ])("%p is read unchanged: brackets and commas inside texts do not count", (text, value) => {
    expect(parse(text)).toEqual(value as never);
    const inText = JSON.stringify("[{,".repeat(10_000));
    expect(parse(inText)).toBe("[{,".repeat(10_000));
  });

  test.each([
    "",
    "[",
    "]",
    "{]",
    '"',
    '"\\',
    '["a]',
    "[1,]",
    "[\u{1}]",
    "\uFEFFx",
    "[1] [2]",
    "'a'",
  ])("%p is malformed", (text) => {
    expect(refusalOf(text)).toBe("invalid_json: The request body is not valid JSON.");
  });

  test("of 20,000 random shapes gives the result of the engine's parser, within the bounds", () => {
    const pieces = ['"', "\\", "[", "]", "{", "}", ",", ":", '"a"', "1", "true", " ", "\\u0041"];
    let state = 7;
    const random = (below: number) => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
      return (state >>> 8) % below;
    };
    for (let round = 0; round < 20_000; round++) {
      const text = Array.from({ length: random(12) + 1 }, () => pieces[random(pieces.length)]).join(
        "",
      );
      let expected: string | { value: unknown };
      try {
        expected = { value: JSON.parse(text) };
      } catch {
        expected = "invalid_json: The request body is not valid JSON.";
      }
      const refusal = refusalOf(text);
      expect([text, refusal ?? { value: parse(text) }]).toEqual([text, expected]);
    }
  });
});

const LIMIT = 64 * 1024;

const VALUES = 1_024;

const parse = (text: string, limit = LIMIT) => parseJson(Buffer.from(text), limit);

function refusalOf(text: string, limit = LIMIT): string | undefined {
  try {
    parse(text, limit);
    return undefined;
  } catch (error) {
    if (error instanceof Problem) return `${error.code}: ${error.message}`;
    throw error;
  }
}
