import { describe, expect, test } from "bun:test";

import {
  findCycles,
  importsOf,
  roomImports,
  type FileImport,
} from "../../../scripts/check/import-graph.ts";

test("finds every way to import: values, types, re-exports, dynamic and bare imports", () => {
  const source = [
    'import { a } from "./a.ts";',
    "import {",
    "  b,",
    '} from "../b.ts";',
    'import type { C } from "./deep/c.ts";',
    'export { d } from "./d.ts";',
    'import "./e.css";',
    'const f = await import("../../f.ts");',
    'type G = typeof import("./g.ts");',
    'import { join } from "node:path";',
  ].join("\n");
  const found = importsOf("scripts/room/file.ts", source).map(({ to }) => to);
  expect(found.toSorted()).toEqual([
    "f.ts",
    "scripts/b.ts",
    "scripts/room/a.ts",
    "scripts/room/d.ts",
    "scripts/room/deep/c.ts",
    "scripts/room/e.css",
    "scripts/room/g.ts",
  ]);
});

describe("rooms", () => {
  test("are the first folders in which two paths differ, with everything below them", () => {
    expect(roomsOf(["src/a/deep/one.ts", "src/b/two.ts"])).toEqual(["src/a → src/b"]);
  });

  test("are the files next to a folder, and the folder", () => {
    expect(roomsOf(["src/main.ts", "src/b/two.ts"])).toEqual(["src → src/b"]);
    expect(roomsOf(["src/b/deep/two.ts", "src/main.ts"])).toEqual(["src/b → src"]);
  });

  test("do not import themselves", () => {
    expect(roomsOf(["src/a/one.ts", "src/a/two.ts"])).toEqual([]);
  });
});

describe("a cycle", () => {
  test("of any length is found with all its imports", () => {
    const [pair] = findCycles(edges(["a", "b"], ["b", "a"], ["b", "c"]));
    expect(pair).toEqual(edges(["a", "b"], ["b", "a"]));
    const [three] = findCycles(edges(["x", "a"], ["a", "b"], ["b", "c"], ["c", "a"]));
    expect(three).toEqual(edges(["a", "b"], ["b", "c"], ["c", "a"]));
  });

  test("is reported once", () => {
    expect(findCycles(edges(["a", "b"], ["b", "a"]))).toHaveLength(1);
  });

  test("does not exist if all imports lead down", () => {
    expect(findCycles(edges(["a", "b"], ["a", "c"], ["b", "c"]))).toEqual([]);
  });
});

const folderOf = (file: string) => file.split("/").slice(0, -1);

const edges = (...pairs: [from: string, to: string][]): FileImport[] =>
  pairs.map(([from, to]) => ({ from, to }));

const roomsOf = (...pairs: [from: string, to: string][]) =>
  roomImports(edges(...pairs), folderOf).map(({ from, to }) => `${from} → ${to}`);
