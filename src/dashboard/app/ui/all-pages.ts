/** Follows a list to its end; for those that are short by nature, such as the stores of one account. */
export async function allPages<Row>(
  load: (cursor: string | undefined) => Promise<{ data: Row[]; next_cursor: string | null }>,
): Promise<Row[]> {
  const rows: Row[] = [];
  let cursor: string | undefined;
  do {
    const page = await load(cursor);
    rows.push(...page.data);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
  return rows;
}
