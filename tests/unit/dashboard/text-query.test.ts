import { expect, test } from "bun:test";

import { excerpt, has, matchesIn, textQuery } from "../../../src/dashboard/app/ui/text-query.ts";

test("a search text that the API would reject is not sent", () => {
  expect(textQuery("x".repeat(200))).toEqual({ q: "x".repeat(200) });
  expect(textQuery("x".repeat(201))).toEqual({});
  expect(textQuery(undefined)).toEqual({});
});

test("the search ignores case", () => {
  expect(has("One Gutter", "gUTTER")).toBe(true);
  expect(has("One Gutter", "roof")).toBe(false);
});

const marked = (text: string, q: string | undefined) =>
  matchesIn(text, q)
    .map(({ before, found }) => before + (found === "" ? "" : `[${found}]`))
    .join("");

test.each([
  ["", "a", ""],
  ["nothing", undefined, "nothing"],
  ["nothing", "", "nothing"],
  ["Gutter, gutter", "gutter", "[Gutter], [gutter]"],
  ["aaa", "aa", "[aa]a"],
  ["a.c abc", "a.c", "[a.c] abc"],
  // "İ" has two code units in lower case, which would shift the indexes of later matches.
  ["İ gutter", "gutter", "İ gutter"],
])("in %j each match of %j is marked", (text, q, expected) => {
  expect(marked(text, q)).toBe(expected);
});

test("a match that would be out of view is shown with the text before it", () => {
  const text = `${"word ".repeat(40)}gutter at the end`;
  expect(excerpt(text, "gutter")).toBe(`… ${"word ".repeat(11)}gutter at the end`);
  expect(excerpt(`${"word ".repeat(24)}gutter`, "gutter")).toBe(`${"word ".repeat(24)}gutter`);
  expect(excerpt(`${"x".repeat(300)}gutter`, "gutter")).toBe("… gutter");
  expect(excerpt(text, "absent")).toBe(text);
});
