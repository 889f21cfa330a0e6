import type { dataTagSymbol } from "@tanstack/react-query";

import { answerOf, ApiError } from "../../../api/client.ts";

/**
 * Re-exports of the API client. Modules import these names from here and not from `connect.ts`, because
 * `connect.ts` reads `location`, which does not exist in unit tests.
 */
export { answerOf, type ApiClient, type ApiError } from "../../../api/client.ts";

/** Returns the API's error response as an `ApiError`; undefined if the request got no response from the API. */
export function apiErrorOf(error: unknown): ApiError | undefined {
  return error instanceof ApiError ? error : undefined;
}

/**
 * Returns the API's validation errors (status 422) for one form field as text. Includes the errors of single
 * list entries, which the API names by index, such as `domains.2`.
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

/**
 * Waits for a request that ends a session or a token. A 404 counts as success, because the object had ended already.
 */
export async function ended(request: Parameters<typeof answerOf<unknown>>[0]): Promise<void> {
  try {
    await answerOf(request);
  } catch (error) {
    if (apiErrorOf(error)?.status !== 404) throw error;
  }
}

/** Type of the data that a query reads, given the function that returns the options of the query. */
export type DataOf<
  Options extends (...args: never) => { readonly queryKey: { readonly [dataTagSymbol]: unknown } },
> = ReturnType<Options>["queryKey"][typeof dataTagSymbol];

/** Type of the query parameters of a route of the API client. */
export type QueryOf<Get> = Get extends (options?: { readonly query?: infer Query }) => unknown
  ? NonNullable<Query>
  : never;

/** One page of a cursor-paginated list of the API. */
export interface CursorPage<Row> {
  readonly data: readonly Row[];
  readonly next_cursor: string | null;
}

/** Returns the `cursor` query parameter of a list request; no parameter for the first page. */
export function atCursor(cursor: string | undefined): { readonly cursor?: string } {
  return cursor === undefined ? {} : { cursor };
}

const PAGE_ROWS = 100;

/** Returns the `limit` and `cursor` query parameters for one page of a list with infinite scrolling. */
export function pageAt(cursor: string | undefined) {
  return { limit: PAGE_ROWS, ...atCursor(cursor) };
}

/**
 * Reads all pages of a list into memory. Use it only for lists that are always short, such as the stores of one
 * account.
 */
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
