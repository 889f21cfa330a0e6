import { expect, test } from "bun:test";

import { createSecretBox } from "../../../src/lib/secrets.ts";
import {
  headerNamesOf,
  hiddenHeaders,
  hiding,
  openHeaders,
  sealHeaders,
} from "../../../src/outbox/own-headers.ts";

const box = createSecretBox({ current: new Uint8Array(32).fill(1) });
const one = { id: "S", partnerId: 7 };
// JSON.parse makes a property of its own of this name; an object literal would set the prototype.
const given: Record<string, string> = JSON.parse('{"X-Key": "k", "__proto__": "p"}');

test("headers open with their names and values in the order in which they were sealed", () => {
  const opened = openHeaders(box, one, sealHeaders(box, one, given));
  expect(Object.entries(opened ?? {})).toEqual(Object.entries(given));
});

test("headers of one subscription open neither at another one nor at another partner", () => {
  const sealed = sealHeaders(box, one, given);
  for (const other of [
    { ...one, id: "T" },
    { ...one, partnerId: 8 },
  ])
    expect(() => openHeaders(box, other, sealed)).toThrow();
});

test.each([undefined, null, {}])("%j is stored as null, and opens as null", (none) => {
  expect(sealHeaders(box, one, none)).toBeNull();
  expect(openHeaders(box, one, null)).toBeNull();
});

test("the stored names give the headers that the API shows", () => {
  expect(headerNamesOf(given)).toBe("X-Key,__proto__");
  expect(Object.entries(hiddenHeaders("X-Key,__proto__"))).toEqual([
    ["X-Key", "(hidden)"],
    ["__proto__", "(hidden)"],
  ]);
  expect(headerNamesOf(null)).toBeNull();
  expect(hiddenHeaders(null)).toEqual({});
});

const CUT = "The key is abcdefghijk";

test.each<[string, Record<string, string>, string, string, boolean?]>([
  ["a value of 8 characters", { A: "12345678" }, "x12345678x12345678", "x(hidden)x(hidden)"],
  ["a value of 7 characters", { A: "1234567" }, "x1234567", "x1234567"],
  ["the longer one of two", { A: "abcdefgh", B: "abcdefghij" }, "abcdefghij", "(hidden)"],
  ["a value with characters of patterns", { A: "$&.*+?()[]" }, "a $&.*+?()[]", "a (hidden)"],
  [
    "the key after its scheme",
    { A: "Bearer 12345678" },
    "no Bearer: 12345678",
    "no Bearer: (hidden)",
  ],
  ["a key of 7 characters", { A: "Bearer\t1234567" }, "1234567", "1234567"],
  ["8 characters at a cut", { A: "abcdefghZ" }, "is abcdefgh", "is (hidden)", true],
  ["7 characters at a cut", { A: "abcdefgZZ" }, "is abcdefg", "is abcdefg", true],
  [
    "the longest one at a cut",
    { A: "abcdefghijkZ", B: "defghijkZ" },
    CUT,
    "The key is (hidden)",
    true,
  ],
  ["a key at a cut", { A: "Key abcdefghijkZ" }, CUT, "The key is (hidden)", true],
  ["the beginning of a value at the end", { A: "abcdefghijkZ" }, CUT, CUT],
])("%s in a response is hidden or shown", (_, headers, text, ...[shown, isCut = false]) => {
  expect(hiding(headers)(text, isCut)).toBe(shown);
});
