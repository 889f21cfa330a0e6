/** A page of a list; its rows are forgotten while they are far away from what is in view, and read again. */
export interface KeptPage<Row> {
  readonly rows: readonly Row[] | undefined;
  readonly count: number;
  readonly next: string | null;
}

/** With 100 rows each; the rows that came live, at most 500, complete the 2,000 that a list keeps. */
export const PAGES_KEPT = 15;

/** All rows in their order; undefined for those that are forgotten. */
export function slotsOf<Row>(pages: readonly KeptPage<Row>[]): readonly (Row | undefined)[] {
  return pages.flatMap(
    ({ rows, count }): readonly (Row | undefined)[] =>
      rows ?? Array.from<undefined>({ length: count }),
  );
}

/** The pages that have a row from `first` to `last`, of the rows of all pages. */
export function pagesOf(
  pages: readonly KeptPage<unknown>[],
  first: number,
  last: number,
): number[] {
  let from = 0;
  return pages.flatMap(({ count }, index) => {
    const begin = from;
    from += count;
    return begin <= last && from > first ? [index] : [];
  });
}

/** Forgets the rows of the pages that are farthest from these, until few enough are left. */
export function forgetFar<Row, P extends KeptPage<Row>>(
  pages: readonly P[],
  near: readonly number[],
): readonly P[] {
  const held = pages.flatMap(({ rows }, index) => (rows === undefined ? [] : [index]));
  if (held.length <= PAGES_KEPT) return pages;
  const middle = near[Math.floor(near.length / 2)] ?? 0;
  const kept = new Set(
    held.toSorted((a, b) => Math.abs(a - middle) - Math.abs(b - middle)).slice(0, PAGES_KEPT),
  );
  return pages.map((page, index) => (kept.has(index) ? page : { ...page, rows: undefined }));
}
