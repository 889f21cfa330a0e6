/**
 * Loaded page of a list. Its rows are evicted from memory when the page is far out of view, and read again when
 * the page comes near the view.
 */
export interface KeptPage<Row> {
  readonly rows: readonly Row[] | undefined;
  readonly count: number;
  readonly next: string | null;
}

/**
 * Maximum number of pages whose rows stay in memory. With 100 rows per page and at most 500 live rows, a list
 * keeps at most 2,000 rows.
 */
export const PAGES_KEPT = 15;

/** Returns the rows of all pages in order, with undefined in place of evicted rows. */
export function slotsOf<Row>(pages: readonly KeptPage<Row>[]): readonly (Row | undefined)[] {
  return pages.flatMap(
    ({ rows, count }): readonly (Row | undefined)[] =>
      rows ?? Array.from<undefined>({ length: count }),
  );
}

/** Returns the indexes of the pages that contain the rows `first` to `last`. */
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

/** Evicts the rows of the pages farthest from the pages `near`, until at most `PAGES_KEPT` pages have rows. */
export function evictDistant<Row, P extends KeptPage<Row>>(
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
