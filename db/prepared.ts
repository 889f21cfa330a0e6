import { sql, type Placeholder } from "drizzle-orm";

import type { DbOrTx } from "./client.ts";
import type { Shapes, ValuesOf } from "./statement.ts";

interface Prepared<R> {
  execute(given?: Record<string, unknown>): Promise<R>;
}
interface Preparable<R> {
  prepare(name: string): Prepared<R>;
}
type Placeholders<P extends Shapes> = { readonly [K in keyof P]: Placeholder };

/**
 * A query of the builder that is put together once for a pool instead of at every call, which costs up to 50 µs: for
 * what runs with every request. A transaction is a new session and puts it together again.
 */
export function prepared<P extends Shapes, R>(
  params: P,
  build: (db: DbOrTx, given: Placeholders<P>) => Preparable<R>,
): (db: DbOrTx, given: ValuesOf<P>) => Promise<R> {
  const placeholders = placeholdersOf(params);
  const bySession = new WeakMap<DbOrTx, Prepared<R>>();
  return (db, given) => {
    const known = bySession.get(db) ?? build(db, placeholders).prepare("");
    bySession.set(db, known);
    return known.execute(given);
  };
}

/** Object.fromEntries forgets the names; they are those of `params`. */
function placeholdersOf<P extends Shapes>(params: P): Placeholders<P> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return Object.fromEntries(
    Object.keys(params).map((name) => [name, sql.placeholder(name)]),
  ) as Placeholders<P>;
}
