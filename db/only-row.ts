/** The row of a statement that answers one, such as the insert of one. */
export function onlyRow<T>(rows: readonly T[]): T {
  const [row] = rows;
  if (row === undefined || rows.length > 1)
    throw new Error(`The statement answered ${rows.length} rows.`);
  return row;
}
