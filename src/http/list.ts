import { Kind, type SchemaOptions, Type, TypeRegistry, type TSchema } from "@sinclair/typebox";

type KeyTest = (key: string) => boolean;

const CURSOR = "Cursor";
TypeRegistry.Set<{ readonly isKey: KeyTest }>(
  CURSOR,
  ({ isKey }, text) => typeof text === "string" && isCursor(text, isKey),
);

/**
 * Query parameters of a paginated list (contract 2.4): `limit` from 1 to 100, 50 by default, and the opaque `cursor`. A
 * cursor encodes the sort key of a row. The schema rejects a cursor that this list never produced, so the 422 names it
 * together with all other invalid fields.
 */
export function pageQuery(isKey: KeyTest) {
  return {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    cursor: Type.Optional(cursorText(isKey)),
  };
}

/** Declares the schema of the cursor of a list. `isKey` tests the sort key that the cursor encodes. */
export function cursorText(isKey: KeyTest, options: SchemaOptions = {}) {
  const cursor = { [Kind]: CURSOR, type: "string", isKey, explain: "is not a cursor of this list" };
  return Type.Unsafe<string>({ ...cursor, ...options });
}

const DEFAULT_LIMIT = 50;

export interface Page {
  readonly limit: number;
  /** The sort key of the last row of the previous page; undefined for the first page. */
  readonly after: string | undefined;
}

/** Converts a validated query of `pageQuery` into a page: its limit, and the key after which it begins. */
export function pageOf({
  limit = DEFAULT_LIMIT,
  cursor,
}: {
  limit?: number;
  cursor?: string;
}): Page {
  return { limit, after: cursor === undefined ? undefined : decodeCursor(cursor) };
}

/**
 * Builds the response with a page of a list. `rows` must contain one row more than the limit if there is a next page.
 */
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

/** The rows that a search found which reads a bounded number of rows or bytes: at most one more than the page has. */
export interface Found<Row> {
  readonly rows: readonly Row[];
  readonly end: string | undefined;
}

/** Ends a page at its last row if the query left out further rows because those of the page are large (`isCut`). */
export function endingEarly<Row>(
  { rows, isCut }: { readonly rows: readonly Row[]; readonly isCut: boolean },
  key: (row: Row) => string,
): Found<Row> {
  const last = rows.at(-1);
  return { rows, end: isCut && last !== undefined ? key(last) : undefined };
}

/**
 * Builds the response with a page of search results that ends where the search ended, even if the page is not full.
 * `next` is undefined at the end of the list.
 */
export function pageAnswer<Shown>(
  data: Shown[],
  next: string | undefined,
): { data: Shown[]; next_cursor: string | null } {
  return { data, next_cursor: next === undefined ? null : encodeCursor(next) };
}

/**
 * Builds the response with a page of a search that reads a bounded number of rows or bytes. If the search found less
 * than a page, the next page continues where the search ended. `end` is the key of the last row that was read;
 * undefined if there are no further rows.
 */
export function searchPageAnswer<Row, Shown>(
  { rows, end }: Found<Row>,
  page: Page,
  shape: { key: (row: Row) => string; show: (row: Row) => Shown },
): { data: Shown[]; next_cursor: string | null } {
  return rows.length > page.limit
    ? listOf(rows, page, shape)
    : pageAnswer(rows.map(shape.show), end);
}

const anyPage = Type.Object(
  { next_cursor: Type.Union([Type.String(), Type.Null()]) },
  { title: "Page", description: "Fields of every page of a list." },
);

const pages = new WeakMap<TSchema, TSchema>();

/**
 * Returns the schema of a page of these items. Its title is derived from the item's title. All callers share one
 * schema, because Elysia changes a schema when its route is first used, and the OpenAPI description rejects two
 * different schemas with the same title.
 */
export function listSchema<T extends TSchema>(item: T) {
  const make = () =>
    Type.Object(
      { data: Type.Array(item), ...anyPage.properties },
      item.title === undefined ? {} : { title: `${item.title}Page`, extends: anyPage },
    );
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `pages` contains only results of `make`.
  const page = (pages.get(item) as ReturnType<typeof make> | undefined) ?? make();
  pages.set(item, page);
  return page;
}

export function encodeCursor(key: string): string {
  return Buffer.from(key).toString("base64url");
}

export function decodeCursor(cursor: string): string {
  return Buffer.from(cursor, "base64url").toString();
}

function isCursor(text: string, isKey: KeyTest): boolean {
  const key = decodeCursor(text);
  return isKey(key) && encodeCursor(key) === text;
}
