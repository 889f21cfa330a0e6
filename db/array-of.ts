import { sql, type SQL, type SQLWrapper } from "drizzle-orm";

/** A subselect of the builder that has one column. */
interface OneColumn<T> extends SQLWrapper {
  readonly _: { readonly result: readonly Readonly<Record<string, T>>[] };
}

/** What a subselect finds, as a list. */
export function arrayOf<T>(subselect: OneColumn<T>): SQL<T[]> {
  return sql`array${subselect}`.mapWith((values: T[]) => values);
}
