/** For a column that may be null, but not in these rows: a check of the table, or a condition of the statement, says so. */
export function neverNull<T>(value: T | null): T {
  if (value === null) throw new Error("A value that the schema rules out to be null is null.");
  return value;
}

/** The row of a statement that answers one, such as the insert of one. */
export function onlyRow<T>(rows: readonly T[]): T {
  const [row] = rows;
  if (row === undefined || rows.length > 1)
    throw new Error(`The statement answered ${rows.length} rows.`);
  return row;
}
