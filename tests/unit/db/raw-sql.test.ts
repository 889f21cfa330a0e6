import { describe, expect, test } from "bun:test";
import { join } from "node:path";

describe("outside the client, migrations and partitions nothing uses", () => {
  test.each(FORBIDDEN)("%s", (_, pattern) => {
    const found = files.filter(({ text }) => pattern.test(text)).map(({ path }) => path);
    expect(found).toEqual([]);
  });
});

const ROOT = join(import.meta.dir, "../../..");

/**
 * Patterns of SQL, or of claimed result types, outside `statement` (db/statement.ts), whose declarations are tested
 * against a server.
 */
const FORBIDDEN: readonly [what: string, pattern: RegExp][] = [
  ["the driver", /\.sql\b(?!")|\{[^{}]*\bsql\b[^{}]*\}: *(Db|Tx|DbOrTx|RawDb|RawTx)\b/],
  ["text as a statement", /\.unsafe\(|\.execute\((?!sql`)/],
  ["a type that is only claimed", /\b(sql|execute)</],
];

/**
 * The client, the settings of its sessions, and the files that create tables: migrations, and partitions, whose names are
 * not known in advance.
 */
const EXEMPT = new Set([
  "db/client.ts",
  "db/migrate.ts",
  "db/partitions.ts",
  "db/session.ts",
  "db/session-settings.ts",
  "db/statement.ts",
]);

const paths = ["db", "src", "dispatcher"].flatMap((folder) =>
  [...new Bun.Glob(`${folder}/**/*.ts`).scanSync(ROOT)].filter(
    // Each statement of the operator's commands runs in their own tests.
    (path) => !EXEMPT.has(path) && !path.startsWith("src/operate/"),
  ),
);

const files = await Promise.all(
  paths.map(async (path) => ({ path, text: await Bun.file(join(ROOT, path)).text() })),
);
