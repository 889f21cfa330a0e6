import { beforeAll, expect, test } from "bun:test";

import { createApp } from "../../src/app.ts";
import { startApi } from "../support/api.ts";
import { expectLinear } from "../support/growth.ts";
import { createDatabase } from "../support/postgres.ts";
import { fixture } from "../support/fixture.ts";

/* The regular expressions of all request schemas must not backtrack more than linearly. */

const database = fixture(createDatabase);
const api = fixture(() => startApi({ db: database.db }));

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

const patterns = new Set<string>();

beforeAll(async () => {
  for (const { hooks } of createApp(api.deps).routes)
    for (const schema of [hooks.body, hooks.query]) collect(schema);
});

function collect(schema: unknown): void {
  if (typeof schema !== "object" || schema === null) return;
  if ("pattern" in schema && typeof schema.pattern === "string") patterns.add(schema.pattern);
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
