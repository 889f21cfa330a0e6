import { ApiError } from "../../../client/api-error.ts";

/** The typed client stands alone, so that code that needs it has unit tests without a page around it. */
export { answerOf, type ApiClient } from "../../../client/api.ts";

/** Answers the error as the API said it; undefined where the API could not be asked. */
export function apiErrorOf(error: unknown): ApiError | undefined {
  return error instanceof ApiError ? error : undefined;
}

/** Answers what a 422 says of one field, and of the entries of a list, which are named by their places: `domains.2`. */
export function fieldError(error: unknown, field: string): string | undefined {
  const errors = apiErrorOf(error)?.errors ?? {};
  const ofEntries = Object.entries(errors).flatMap(([name, texts]) => {
    const place = name.startsWith(`${field}.`) ? Number(name.slice(field.length + 1)) : Number.NaN;
    return Number.isNaN(place) ? [] : [`number ${place + 1} ${texts.join(", ")}`];
  });
  const texts = [...(field in errors ? [errors[field]?.join(", ") ?? ""] : []), ...ofEntries];
  return texts.length === 0 ? undefined : texts.join("; ");
}

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
