import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { expect, test } from "bun:test";

test("breakpoints of the pages leave no width between below and above", () => {
  const sheets = readdirSync(APP, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".css"))
    .map((name) => readFileSync(join(APP, name), "utf8"));
  const queries = sheets.flatMap((css) => css.match(/@media \([^)]*width[^)]*\)/g) ?? []);
  expect(queries.length).toBeGreaterThan(10);
  expect(queries.filter((one) => !/\(width (?:<|>=) \d+em\)/.test(one))).toEqual([]);
});

const APP = fileURLToPath(new URL("../../../src/dashboard/app/", import.meta.url));
