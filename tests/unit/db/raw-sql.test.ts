import { describe, expect, test } from "bun:test";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../../..");

/** What runs SQL, or says what it answers, without `statement` (db/statement.ts), which a test holds against a server. */
const FORBIDDEN: readonly [what: string, pattern: RegExp][] = [
  ["the driver", /\.sql\b(?!")|\{[^{}]*\bsql\b[^{}]*\}: *(Db|Tx|DbOrTx|RawDb|RawTx)\b/],
  ["text as a statement", /\.(unsafe|execute)\(/],
  ["a type that is only claimed", /\bsql</],
];

/** The client, what undoes itself, and what makes tables: migrations, and partitions, whose names are not known before. */
const EXEMPT = new Set([
  "db/client.ts",
  "db/migrate.ts",
  "db/partitions.ts",
  "db/session.ts",
  "db/statement.ts",
]);

const paths = ["db", "src", "dispatcher"].flatMap((folder) =>
  [...new Bun.Glob(`${folder}/**/*.ts`).scanSync(ROOT)].filter((path) => !EXEMPT.has(path)),
);
const files = await Promise.all(
  paths.map(async (path) => ({ path, text: await Bun.file(join(ROOT, path)).text() })),
);

describe("outside of the client, migrations and partitions, nothing uses", () => {
  test.each(FORBIDDEN)("%s", (_, pattern) => {
    const found = files.filter(({ text }) => pattern.test(text)).map(({ path }) => path);
    expect(found).toEqual([]);
  });
});
