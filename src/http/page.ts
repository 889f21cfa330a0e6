import { Type, type TSchema } from "@sinclair/typebox";

import { invalid } from "../lib/problem.ts";

/** decisions.md 1, success: `?limit=` 1 to 100, default 50; `?cursor=` opaque. Spread into a list's query schema. */
export const pageQuery = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
  cursor: Type.Optional(Type.String()),
};

const DEFAULT_LIMIT = 50;

export interface Page {
  readonly limit: number;
  /** The key of the last row of the page before. */
  readonly after: string | undefined;
}

/** Reads the page asked for. A cursor is the key of a row, made opaque; one that we did not make is a 422. */
export function pageOf(
  query: { limit?: number; cursor?: string },
  isKey: (key: string) => boolean,
): Page {
  const limit = query.limit ?? DEFAULT_LIMIT;
  if (query.cursor === undefined) return { limit, after: undefined };
  const after = Buffer.from(query.cursor, "base64url").toString();
  if (!isKey(after) || encodeCursor(after) !== query.cursor)
    throw invalid({ cursor: ["is not a cursor of this list"] });
  return { limit, after };
}

/** `rows` holds one more than the limit if there is a next page. */
export function listOf<Row, Shown>(
  rows: readonly Row[],
  page: Page,
  shape: { key: (row: Row) => string; show: (row: Row) => Shown },
): { data: Shown[]; next_cursor: string | null } {
  const shown = rows.slice(0, page.limit);
  const last = shown.at(-1);
  const more = rows.length > page.limit && last !== undefined;
  return { data: shown.map(shape.show), next_cursor: more ? encodeCursor(shape.key(last)) : null };
}

export function listSchema<T extends TSchema>(item: T) {
  return Type.Object({
    data: Type.Array(item),
    next_cursor: Type.Union([Type.String(), Type.Null()]),
  });
}

export const isUlid = (text: string): boolean => /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(text);
export const isRowId = (text: string): boolean => /^[1-9]\d{0,15}$/.test(text);

function encodeCursor(key: string): string {
  return Buffer.from(key).toString("base64url");
}
