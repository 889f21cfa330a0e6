import { expect, test } from "bun:test";

import { commentsOf, proseOf, textsOf } from "../../../scripts/check/language.ts";

test("adjacent line comments are one comment, and a comment behind code is another", () => {
  const source = "// One\n// two.\nconst a = 1; // Three.\n";
  expect(commentsOf("a.ts", source)).toEqual([
    { text: "One\n two.", line: 1 },
    { text: "Three.", line: 3 },
  ]);
});

test("strings, templates and regular expressions contain no comments", () => {
  const source = 'const a = "// no"; const b = `/* no */`; const c = /\\/\\*/.test(a); /** Yes. */';
  expect(texts("a.ts", source)).toEqual(["Yes."]);
});

test("code in backticks and instructions to tools are not counted", () => {
  expect(texts("a.ts", "// oxlint-disable-next-line a\n\n// Calls `who`.\n")).toEqual([
    "Calls code.",
  ]);
});

test("comments of SQL and CSS are read by their own syntax", () => {
  expect(texts("a.sql", "select '-- no'; -- Yes.\n")).toEqual(["Yes."]);
  expect(texts("a.css", "a { color: red } /* Yes. */")).toEqual(["Yes."]);
});

test("the prose of a document has no code and no targets of links, and keeps its lines", () => {
  const [passage] = proseOf("See [it](what.md).\n```sh run x\nwho\n```\nEnd.");
  expect(passage?.text.split("\n").map((line) => line.trim())).toEqual([
    "See [it].",
    "",
    "",
    "",
    "End.",
  ]);
});

const texts = (path: string, source: string) => commentsOf(path, source).map(({ text }) => text);

test("finds the texts of a page, and skips comments, imports, code and short strings", () => {
  const page = [
    'import { a } from "one two three";',
    "// Says whose turn it is.",
    'const label = "Choose another day";',
    'const name = "webhooks:write";',
    "return <p title={label}>No attempts in this time. <b>All</b></p>;",
  ].join("\n");
  expect(textsOf(page)).toEqual([
    { text: "Choose another day", line: 3 },
    { text: "No attempts in this time.", line: 5 },
  ]);
});
