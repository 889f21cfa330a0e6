/** A page of a list. Its rows are evicted when it is far out of view, and read again when it comes near. */
export interface KeptPage<Row> {
  readonly rows: readonly Row[] | undefined;
  readonly count: number;
  readonly next: string | null;
}

/**
 * The number of pages whose rows are kept, with 100 rows each. With at most 500 live rows a list keeps 2,000
 * rows.
 */
export const PAGES_KEPT = 15;

/** Returns all rows in order; undefined for evicted ones. */
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

/** Evicts the rows of the pages that are farthest from `near`, until at most `PAGES_KEPT` pages have rows. */
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
