import { Kind, Type, TypeRegistry, type TSchema } from "@sinclair/typebox";

type KeyTest = (key: string) => boolean;

const CURSOR = "Cursor";
TypeRegistry.Set<{ readonly isKey: KeyTest }>(
  CURSOR,
  ({ isKey }, text) => typeof text === "string" && isCursor(text, isKey),
);

/**
 * Contract 2.4: `?limit=` 1 to 100, default 50; `?cursor=` opaque. Spread into a list's query schema. A cursor
 * is the key of a row, made opaque; the schema refuses one that this list never made, beside every other bad field.
 */
export function pageQuery(isKey: KeyTest) {
  const cursor = { [Kind]: CURSOR, type: "string", isKey, explain: "is not a cursor of this list" };
  return {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    cursor: Type.Optional(Type.Unsafe<string>(cursor)),
  };
}

const DEFAULT_LIMIT = 50;

export interface Page {
  readonly limit: number;
  /** The key of the last row of the page before. */
  readonly after: string | undefined;
}

/** The page asked for, by a query that `pageQuery` has let pass. */
export function pageOf({
  limit = DEFAULT_LIMIT,
  cursor,
}: {
  limit?: number;
  cursor?: string;
}): Page {
  return { limit, after: cursor === undefined ? undefined : decodeCursor(cursor) };
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

/** Rows that a look through a part of a list found, up to one more than the page has. */
export interface Found<Row> {
  readonly rows: readonly Row[];
  readonly end: string | undefined;
}

/** A page that ends where its look ended, full or not; `next` is undefined at the end of the list. */
export function lookOf<Shown>(
  data: Shown[],
  next: string | undefined,
): { data: Shown[]; next_cursor: string | null } {
  return { data, next_cursor: next === undefined ? null : encodeCursor(next) };
}

/**
 * A page of a look through so many of the newest rows: where it found less than a page, the next begins where it ended.
 * `end` is the key of the last row that was looked at, undefined if there are none behind it.
 */
export function foundOf<Row, Shown>(
  { rows, end }: Found<Row>,
  page: Page,
  shape: { key: (row: Row) => string; show: (row: Row) => Shown },
): { data: Shown[]; next_cursor: string | null } {
  return rows.length > page.limit ? listOf(rows, page, shape) : lookOf(rows.map(shape.show), end);
}

const anyPage = Type.Object(
  { next_cursor: Type.Union([Type.String(), Type.Null()]) },
  { title: "Page", description: "What every page of a list has." },
);

const pages = new WeakMap<TSchema, TSchema>();

/**
 * A page of these; it is named after them. There is one for all who ask, because Elysia writes into a schema when its
 * route is first used, and two of one name that differ cannot be described.
 */
export function listSchema<T extends TSchema>(item: T) {
  const make = () =>
    Type.Object(
      { data: Type.Array(item), ...anyPage.properties },
      item.title === undefined ? {} : { title: `${item.title}Page`, extends: anyPage },
    );
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the page of this very item, from this function.
  const page = (pages.get(item) as ReturnType<typeof make> | undefined) ?? make();
  pages.set(item, page);
  return page;
}

export const isUlid = (text: string): boolean => /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(text);
export const isRowId = (text: string): boolean => /^[1-9]\d{0,15}$/.test(text);

function encodeCursor(key: string): string {
  return Buffer.from(key).toString("base64url");
}

function decodeCursor(cursor: string): string {
  return Buffer.from(cursor, "base64url").toString();
}

function isCursor(text: string, isKey: KeyTest): boolean {
  const key = decodeCursor(text);
  return isKey(key) && encodeCursor(key) === text;
}
