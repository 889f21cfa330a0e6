import { Button, Text } from "@mantine/core";
import { useCallback, useEffect, type CSSProperties, type ReactNode } from "react";

import type { PagedList } from "./pages.ts";
import { ErrorNotice } from "./states.tsx";
import { useIsNarrow } from "./layout.tsx";
import { useVisibleRows } from "./virtual-rows.tsx";

/** Number of rows below the view at which the next page is loaded. */
const PREFETCH_ROWS = 60;

export interface VirtualTableProps<Row> {
  readonly list: PagedList<Row>;
  readonly label: string;
  /** Plural noun of the rows, such as `attempts`. */
  readonly noun: string;
  readonly columns: readonly string[];
  readonly keyOf: (row: Row) => string;
  readonly heightOf: (row: Row | undefined, isNarrow: boolean) => number;
  /**
   * Renders the cells of a row. Should use plain elements, because dozens of rows are mounted while the user
   * scrolls.
   */
  readonly renderLine: (row: Row) => ReactNode;
}

/** Table with any number of rows that renders only the rows in view. The page scrolls, not the table. */
export function VirtualTable<Row>(props: VirtualTableProps<Row>) {
  const { list, label, columns, keyOf, heightOf, renderLine, noun } = props;
  const { slots: rows, pages } = list;
  const isNarrow = useIsNarrow("sm");
  // Memoized, because the virtualizer measures all rows again when this function changes.
  const getItemKey = useCallback(
    (index: number) => {
      const row = rows[index];
      return row === undefined ? index : keyOf(row);
    },
    [rows, keyOf],
  );
  const visible = useVisibleRows<HTMLTableSectionElement>(list, {
    heightOf: (index) => heightOf(rows[index], isNarrow),
    getItemKey,
    prefetch: PREFETCH_ROWS,
  });
  const { anchor: body, virtualizer, items, above, below } = visible;
  // The rule does not know that the virtualizer measures by `heightOf` and `isNarrow`.
  // oxlint-disable-next-line react/exhaustive-effect-dependencies
  useEffect(() => virtualizer.measure(), [virtualizer, heightOf, isNarrow]);
  const usual = heightOf(undefined, isNarrow);
  const sized: CSSProperties & { "--row-height": string } = { "--row-height": `${usual}px` };
  return (
    <>
      <table
        aria-label={label}
        aria-rowcount={pages.hasNextPage ? -1 : rows.length + 1}
        className="attempts"
        style={sized}
      >
        <thead>
          <tr aria-rowindex={1} className="attempt-head">
            {columns.map((name) => (
              <th scope="col" key={name}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody
          ref={body}
          className="attempt-body"
          style={{ paddingTop: above, paddingBottom: below }}
        >
          {/* Only rows of unusual height get an inline style, because browsers share the computed style of
              identical elements, and compare elements with inline styles one by one. */}
          {items.map(({ index, key, size }) => (
            <tr
              key={key}
              aria-rowindex={index + 2}
              className="attempt-line"
              {...(size !== usual && { style: { height: size } })}
            >
              {rows[index] === undefined ? <td>…</td> : renderLine(rows[index])}
            </tr>
          ))}
        </tbody>
      </table>
      <TableEnd pages={pages} noun={noun} />
    </>
  );
}

function TableEnd({
  pages: { error, hasNextPage, isFetchingNextPage, fetchNextPage },
  noun,
}: Pick<PagedList<unknown>, "pages"> & { readonly noun: string }) {
  const more = () => void fetchNextPage();
  if (error !== null) return <ErrorNotice error={error} retry={more} />;
  return (
    <Text size="sm" c="dimmed" ta="center" py="md" component="div" mih={52}>
      {isFetchingNextPage && `Loading older ${noun} …`}
      {!isFetchingNextPage && hasNextPage && (
        <Button variant="subtle" size="compact-sm" onClick={more}>
          Load older {noun}
        </Button>
      )}
      {!hasNextPage && "These are all. Attempts are kept for 30 days."}
    </Text>
  );
}
