import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { expect, test } from "bun:test";

test("breakpoints of the pages leave no width between below and above", () => {
  const queries = filesOf(".css").flatMap(
    ([, css]) => css.match(/@media \([^)]*width[^)]*\)/g) ?? [],
  );
  expect(queries.length).toBeGreaterThan(10);
  expect(queries.filter((one) => !/\(width (?:<|>=) \d+em\)/.test(one))).toEqual([]);
});

test("each class of a CSS module is used, and each class that a component takes from one exists", () => {
  const taken = new Map<string, Set<string>>();
  for (const [path, code] of filesOf(".tsx")) {
    const [, sheet] = /import css from "(.+\.module\.css)"/.exec(code) ?? [];
    if (sheet === undefined) continue;
    const key = join(dirname(path), sheet);
    const names = [...code.matchAll(/\bcss\.(\w+)/g)].map(([, name = ""]) => name);
    taken.set(key, new Set([...(taken.get(key) ?? []), ...names]));
  }
  const defined = filesOf(".module.css").map(([path, css]) => {
    const own = css.replaceAll(/\/\*.*?\*\/|:global\([^)]*\)|\{[^{}]*;\s*\}/gs, "");
    return [
      path,
      new Set([...own.matchAll(/\.([a-z]\w*)/g)].map(([, name = ""]) => name)),
    ] as const;
  });
  expect(defined.length).toBeGreaterThan(5);
  for (const [path, names] of defined)
    expect([path, [...names].toSorted()]).toEqual([path, [...(taken.get(path) ?? [])].toSorted()]);
});

const APP = fileURLToPath(new URL("../../../src/dashboard/app/", import.meta.url));

const filesOf = (ending: string) =>
  readdirSync(APP, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(ending))
    .map((name) => [name, readFileSync(join(APP, name), "utf8")] as const);
