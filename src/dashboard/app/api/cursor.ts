/** A page of a list of the API. */
export interface CursorPage<Row> {
  readonly data: readonly Row[];
  readonly next_cursor: string | null;
}

/** Answers the part of a query that asks for the page at a cursor; the first page has no cursor. */
export function atCursor(cursor: string | undefined): { readonly cursor?: string } {
  return cursor === undefined ? {} : { cursor };
}

const PAGE_ROWS = 100;

/** The same for a list that goes on while somebody scrolls. */
export function pageAt(cursor: string | undefined) {
  return { limit: PAGE_ROWS, ...atCursor(cursor) };
}

/** Reads a list to its end; for those that are short by nature, such as the stores of one account. */
export async function allPages<Row>(
  load: (cursor: string | undefined) => Promise<CursorPage<Row>>,
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
