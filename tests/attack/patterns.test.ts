import { afterAll, beforeAll, expect, test } from "bun:test";

import { createApp } from "../../src/app.ts";
import { startApi, type TestApi } from "../support/api.ts";
import { expectLinear } from "../support/growth.ts";
import { createDatabase, type TestDatabase } from "../support/postgres.ts";

/* The regular expressions of all request schemas must not backtrack more than linearly. */

let database: TestDatabase;
let api: TestApi;
const patterns = new Set<string>();
beforeAll(async () => {
  database = await createDatabase();
  api = await startApi({ db: database.db });
  for (const { hooks } of createApp(api.deps).routes)
    for (const schema of [hooks.body, hooks.query]) collect(schema);
});
afterAll(async () => {
  await api.stop();
  await database.drop();
});

function collect(schema: unknown): void {
  if (typeof schema !== "object" || schema === null) return;
  const { pattern } = Object(schema);
  if (typeof pattern === "string") patterns.add(pattern);
  for (const part of Object.values(schema)) collect(part);
}

/** Starts, repeated pieces and mismatching ends of inputs that almost match a pattern, which makes it backtrack. */
const HEADS = ["", "#", "https://", "a@", "a."];
const PIECES = [
  "a",
  "A",
  "0",
  "-",
  ".",
  "a.",
  "a-",
  "@",
  "a@",
  " ",
  "a ",
  "_",
  "/",
  "😀",
  "\ud83d",
  "\u0000",
];
const TAILS = ["", "!", "\u0000", "@"];

test("no pattern of a schema takes more than linear time on inputs that almost match", () => {
  expect(patterns.size).toBeGreaterThan(5);
  for (const pattern of patterns) {
    const expression = new RegExp(pattern);
    // One measurement covers all inputs: quadratic time of a single one dominates the sum.
    expectLinear(
      (bytes) =>
        HEADS.flatMap((head) =>
          PIECES.flatMap((piece) =>
            TAILS.map((tail) => head + piece.repeat(bytes / piece.length) + tail),
          ),
        ),
      (texts: readonly string[]) => texts.filter((text) => expression.test(text)),
    );
  }
});
