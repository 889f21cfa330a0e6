import { readMigrationFiles, type MigrationMeta } from "drizzle-orm/migrator";

import { isForbidden } from "./errors.ts";
import type { Raw } from "./session.ts";

const FOLDER = { migrationsFolder: `${import.meta.dir}/migrations` };

export const FOREIGN_SCHEMA =
  "This database was made by another version of ReviewRelay, whose migrations this version does not have.\n" +
  "Use a fresh one: an empty database as DATABASE_URL or, with the embedded store, a new DATA_DIR.";

/**
 * How the schema of a database stands to this version: `behind` by so many migrations, `ahead` of it where a later
 * version has migrated (what it did lets this version go on working), `foreign` where their histories part, `hidden`
 * from a user who may not read the list of migrations.
 */
export type SchemaState =
  | { readonly kind: "current" }
  | { readonly kind: "behind" | "ahead"; readonly by: number }
  | { readonly kind: "foreign" | "hidden" };

export function ownMigrations(): MigrationMeta[] {
  return readMigrationFiles(FOLDER);
}

export async function schemaState({ sql }: Raw): Promise<SchemaState> {
  const [known] =
    await sql`select from pg_tables where schemaname = 'drizzle' and tablename = '__drizzle_migrations'`;
  const own = ownMigrations().map(({ folderMillis }) => folderMillis);
  if (known === undefined) return compareSchemas([], own);
  try {
    const rows = await sql<{ at: number }[]>`
      select created_at as at from drizzle.__drizzle_migrations order by created_at`;
    return compareSchemas(
      rows.map(({ at }) => at),
      own,
    );
  } catch (error) {
    if (isForbidden(error)) return { kind: "hidden" };
    throw error;
  }
}

/** Of two histories of one line the shorter is the beginning of the longer. */
export function compareSchemas(applied: readonly number[], own: readonly number[]): SchemaState {
  const common = Math.min(applied.length, own.length);
  for (let i = 0; i < common; i++) if (applied[i] !== own[i]) return { kind: "foreign" };
  const by = Math.abs(applied.length - own.length);
  if (by === 0) return { kind: "current" };
  return { kind: applied.length < own.length ? "behind" : "ahead", by };
}

/** What to do before a process can work on this database; nothing if it can, or if that cannot be told. */
export async function schemaFault(db: Raw): Promise<string | undefined> {
  const state = await schemaState(db);
  if (state.kind === "foreign") return FOREIGN_SCHEMA;
  if (state.kind !== "behind") return undefined;
  const lacks = `${state.by} ${state.by === 1 ? "migration" : "migrations"}`;
  return `The database lacks ${lacks} of this version: run \`bun run migrate\` first. Processes of the version before may go on meanwhile.`;
}
