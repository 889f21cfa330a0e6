import { expect, test } from "bun:test";

import { compareSchemas } from "../../../db/migrate.ts";

test.each([
  ["the same migrations are the current schema", [1, 2], [1, 2], { kind: "current" }],
  ["a database without migrations is behind", [], [1, 2], { kind: "behind", by: 2 }],
  ["fewer migrations are behind", [1], [1, 2], { kind: "behind", by: 1 }],
  ["more migrations are ahead", [1, 2, 3], [1, 2], { kind: "ahead", by: 1 }],
  ["another last migration is foreign", [1, 3], [1, 2], { kind: "foreign" }],
  ["a missing migration is foreign", [1, 3], [1, 2, 3], { kind: "foreign" }],
  ["an additional migration in between is foreign", [1, 2, 3], [1, 3], { kind: "foreign" }],
  [
    "the migrations from before the baseline are old",
    [1_796_040_000_000, 1_796_140_000_000],
    [1, 2],
    { kind: "old" },
  ],
  ["older ones are foreign", [1_796_040_000_000], [1, 2], { kind: "foreign" }],
] as const)("%s", (_title, applied, own, state) => {
  expect(compareSchemas(applied, own)).toEqual(state);
});
