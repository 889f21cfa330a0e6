import { expect, test } from "bun:test";

import { compareSchemas, ownMigrations, schemaFault } from "../../../db/migrate.ts";

test.each([
  ["the same migrations are the current schema", [1, 2], [1, 2], { kind: "current" }],
  ["a migration that is listed twice counts once", [1, 2, 2], [1, 2], { kind: "current" }],
  ["a database without migrations is behind", [], [1, 2], { kind: "behind", missing: [1, 2] }],
  ["fewer migrations are behind", [1], [1, 2, 3], { kind: "behind", missing: [2, 3] }],
  [
    "a migration that is missing in between is behind",
    [1, 3],
    [1, 2, 3],
    { kind: "behind", missing: [2] },
  ],
  [
    "migrations before and after a known one of a patch are missing in the order of the journal",
    [1, 3],
    [1, 2, 3, 4],
    { kind: "behind", missing: [2, 4] },
  ],
  ["more migrations are ahead", [1, 2, 3], [1, 2], { kind: "ahead", unknown: [3] }],
  ["an unknown migration in between is ahead", [1, 2, 3], [1, 3], { kind: "ahead", unknown: [2] }],
  [
    "an unknown migration beside a missing one has diverged",
    [1, 3],
    [1, 2],
    { kind: "diverged", missing: [2], unknown: [3] },
  ],
  [
    "an unknown migration before a missing one has diverged",
    [1, 2],
    [1, 3, 4],
    { kind: "diverged", missing: [3, 4], unknown: [2] },
  ],
  ["no migration in common is foreign", [3, 4], [1, 2], { kind: "foreign" }],
] as const)("%s", (_title, applied, own, expected) => {
  const state = compareSchemas(
    applied.map((at) => ({ at, hash: `hash of ${at}` })),
    own.map((at) => ({ at, name: `name of ${at}` })),
  );
  const lists = Object.entries(state).map(([key, value]) => [
    key,
    Array.isArray(value) ? value.map(({ at }: { at: number }) => at) : value,
  ]);
  expect(Object.fromEntries(lists)).toEqual(expected);
});

test("the message of a schema that has diverged names the migrations of both sides and what to install", () => {
  const hash = "44a6fe525bc65fcd52fbf9d193621fc4ffb0e00cd13b0f0a4c03ae845fe1965d";
  const own = [1, 2, 3, 4, 5].map((at) => ({ at, name: `000${at}_x` }));
  const message = schemaFault(
    compareSchemas(
      [
        { at: 1, hash },
        { at: Date.parse("2026-11-26T16:40:00Z"), hash },
      ],
      own,
    ),
  );
  expect(message).toStartWith(
    "The database has 1 migration that this version does not know (2026-11-26T16:40:00.000Z, SHA-256 44a6fe525bc6…), and " +
      "lacks 4 migrations of this version (0002_x, 0003_x, 0004_x and 1 more)",
  );
  expect(message).toContain("Install a version that has them all");
});

// 0.1.0 compares the beginning of the list, in the order of the times.
test("the migrations are in the order of their times, and no two have the same", () => {
  const times = ownMigrations().map(({ at }) => at);
  expect(times).toEqual([...new Set(times)].toSorted((a, b) => a - b));
});
