import { ApiError } from "../../../api/client.ts";

/**
 * Re-exported here without `connect.ts`, which reads `location`, so that modules that need only these have
 * unit tests outside a browser.
 */
export { answerOf, type ApiClient } from "../../../api/client.ts";

/** Returns the error that the API answered with; undefined if the API could not be reached. */
export function apiErrorOf(error: unknown): ApiError | undefined {
  return error instanceof ApiError ? error : undefined;
}

/**
 * Returns the text of the validation errors (422) of one field. Errors of list entries, which the API names
 * by index (`domains.2`), are included.
 */
export function fieldError(error: unknown, field: string): string | undefined {
  const errors = apiErrorOf(error)?.errors ?? {};
  const ofEntries = Object.entries(errors).flatMap(([name, texts]) => {
    const index = name.startsWith(`${field}.`) ? Number(name.slice(field.length + 1)) : Number.NaN;
    return Number.isNaN(index) ? [] : [`number ${index + 1} ${texts.join(", ")}`];
  });
  const texts = [...(field in errors ? [errors[field]?.join(", ") ?? ""] : []), ...ofEntries];
  return texts.length === 0 ? undefined : texts.join("; ");
}

/** One page of a cursor-paginated list of the API. */
export interface CursorPage<Row> {
  readonly data: readonly Row[];
  readonly next_cursor: string | null;
}

/** Returns the query parameter for the page at a cursor; empty for the first page. */
export function atCursor(cursor: string | undefined): { readonly cursor?: string } {
  return cursor === undefined ? {} : { cursor };
}

const PAGE_ROWS = 100;

/** Returns the query parameters for a page of a list with infinite scrolling. */
export function pageAt(cursor: string | undefined) {
  return { limit: PAGE_ROWS, ...atCursor(cursor) };
}

/** Reads all pages of a list. Use it only for lists that are short by nature, such as the stores of one account. */
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
