import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { BATCH_EVENTS, CATALOG, CONNECTION_EVENTS, TEST_EVENT } from "../../../src/outbox/event.ts";

const ROOT = join(import.meta.dir, "../../..");

test("the catalog has the events of contract 8.1, in their order, with their bodies, and those of a batch", () => {
  const found = CATALOG.map(({ value, envelope, in_batch: inBatch }) => ({
    value,
    isReview: envelope === "review",
    inBatch,
  }));
  expect<unknown>(found).toEqual(promised());
  const inBatch = promised().filter((one) => one.inBatch);
  expect<readonly string[]>(BATCH_EVENTS).toEqual(inBatch.map(({ value }) => value));
  expect(new Set(CATALOG.map(({ envelope }) => envelope))).toEqual(
    new Set(["review", "site_connection"]),
  );
});

test("the index of the last change of an axis covers the events that change a connection", () => {
  const texts = [...new Bun.Glob("*.sql").scanSync(MIGRATIONS)]
    .toSorted()
    .map((file) => readFileSync(join(MIGRATIONS, file), "utf8"));
  const last = texts.join("").split("create index review_history_axis ").at(-1)?.split(";")[0];
  const events = Array.from(last?.matchAll(/'(\w+)'/g) ?? [], ([, event = ""]) => event);
  expect<readonly string[]>(CONNECTION_EVENTS).toEqual(events);
});

test.each([
  ["go/events.go", /^\t\w+ += "(\S+)"$/gm],
  ["php/src/EventName.php", /^ +case \w+ = '(\S+)';$/gm],
])("src/sdk/%s has every event of the catalog and no other", (path, line) => {
  const source = readFileSync(join(ROOT, "src/sdk", path), "utf8");
  const named = [...source.matchAll(line)].map(([, name]) => name);
  const events = new Set<string>([...CATALOG.map(({ value }) => value), TEST_EVENT]);
  expect(named.toSorted()).toEqual([...events].toSorted());
});

const MIGRATIONS = join(ROOT, "db/migrations");
const CONTRACT = join(ROOT, "docs/contract/8-events.md");

/** Reads the table of contract 8.1, one item per event value. */
function promised(): { value: string; isReview: boolean; inBatch: boolean }[] {
  const [, table = ""] = readFileSync(CONTRACT, "utf8").split(/^## .*$/m);
  return table.split("\n").flatMap((line) => {
    const [, values = "", body = "", inBatch = ""] = line.split("|").map((cell) => cell.trim());
    return Array.from(values.matchAll(/`(.+?)`/g), ([, value = ""]) => ({
      value,
      isReview: body.startsWith("review"),
      inBatch: inBatch === "yes",
    }));
  });
}
