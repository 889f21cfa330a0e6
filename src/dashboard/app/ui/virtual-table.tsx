import { Button, Text } from "@mantine/core";
import { useWindowVirtualizer, type VirtualItem } from "@tanstack/react-virtual";
import { useCallback, useEffect, useEffectEvent, type CSSProperties, type ReactNode } from "react";

import { ErrorNotice } from "./states.tsx";
import { useIsNarrow } from "./use-is-narrow.ts";
import { useOffset } from "./virtual-rows.tsx";

const OVERSCAN = 8;
/** Number of rows below the view at which the next page is loaded. */
const PREFETCH_ROWS = 60;

interface EndProps {
  readonly hasMore: boolean;
  readonly isLoading: boolean;
  readonly error: unknown;
  readonly onMore: () => void;
  /** Plural noun of the rows, such as `attempts`. */
  readonly noun: string;
}

interface VirtualTableProps<Row> extends EndProps {
  readonly label: string;
  /** Kind of table, from which the style sheet derives the column widths. */
  readonly kind: string;
  readonly columns: readonly string[];
  /** Rows of the table, with undefined in place of evicted rows. */
  readonly rows: readonly (Row | undefined)[];
  readonly keyOf: (row: Row) => string;
  readonly heightOf: (row: Row | undefined, isNarrow: boolean) => number;
  /**
   * Renders the cells of a row. Should use plain elements, because dozens of rows are mounted while the user
   * scrolls.
   */
  readonly renderLine: (row: Row) => ReactNode;
  /** Called with the indexes of the first and the last row in view when they change. */
  readonly onView: (first: number, last: number) => void;
}

/** Table with any number of rows that renders only the rows in view. The page scrolls, not the table. */
export function VirtualTable<Row>(props: VirtualTableProps<Row>) {
  const { label, kind, columns, rows, keyOf, heightOf, renderLine, onView } = props;
  const { hasMore, isLoading, error, onMore } = props;
  const isNarrow = useIsNarrow("sm");
  const { anchor: body, offset } = useOffset<HTMLTableSectionElement>();
  const virtualizer = useLines({ rows, keyOf, heightOf }, { isNarrow, offset });
  const items = virtualizer.getVirtualItems();
  const first = items.at(0)?.index ?? 0;
  const last = items.at(-1)?.index ?? 0;
  const isNearEnd = hasMore && !isLoading && error === null && last >= rows.length - PREFETCH_ROWS;
  const more = useEffectEvent(onMore);
  useEffect(() => {
    if (isNearEnd) more();
  }, [isNearEnd]);
  const view = useEffectEvent(onView);
  useEffect(() => view(first, last), [first, last]);
  const usual = heightOf(undefined, isNarrow);
  const sized: CSSProperties & { "--row-height": string } = { "--row-height": `${usual}px` };
  const above = (items.at(0)?.start ?? offset) - offset;
  const below = virtualizer.getTotalSize() - ((items.at(-1)?.end ?? offset) - offset);
  return (
    <>
      <table
        aria-label={label}
        aria-rowcount={hasMore ? -1 : rows.length + 1}
        className="attempts"
        data-kind={kind}
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
          <Lines items={items} usualHeight={usual} rows={rows} renderLine={renderLine} />
        </tbody>
      </table>
      <TableEnd {...{ hasMore, isLoading, error, onMore, noun: props.noun }} />
    </>
  );
}

type Measured<Row> = Pick<VirtualTableProps<Row>, "rows" | "keyOf" | "heightOf">;

function useLines<Row>(
  { rows, keyOf, heightOf }: Measured<Row>,
  { isNarrow, offset }: { readonly isNarrow: boolean; readonly offset: number },
) {
  // Memoized, because the virtualizer measures all rows again when this function changes.
  const getItemKey = useCallback(
    (index: number) => {
      const row = rows[index];
      return row === undefined ? index : keyOf(row);
    },
    [rows, keyOf],
  );
  // The rule warns because the virtualizer is a mutable object. It is not passed to memoized components here.
  // oxlint-disable-next-line react/incompatible-library
  const virtualizer = useWindowVirtualizer({
    count: rows.length,
    estimateSize: (index) => heightOf(rows[index], isNarrow),
    overscan: OVERSCAN,
    // Renders rows that scroll into view in a separate task, so that scrolling itself stays smooth.
    useFlushSync: false,
    scrollMargin: offset,
    getItemKey,
  });
  useEffect(() => virtualizer.measure(), [virtualizer, heightOf, isNarrow]);
  return virtualizer;
}

interface LinesProps<Row> extends Pick<VirtualTableProps<Row>, "rows" | "renderLine"> {
  readonly items: readonly VirtualItem[];
  readonly usualHeight: number;
}

/**
 * Renders the rows. Only rows of unusual height get an inline style, because browsers share the computed style
 * of identical elements, and compare elements with inline styles one by one.
 */
function Lines<Row>({ items, usualHeight, rows, renderLine }: LinesProps<Row>) {
  return items.map(({ index, key, size }) => (
    <tr
      key={key}
      aria-rowindex={index + 2}
      className="attempt-line"
      {...(size !== usualHeight && { style: { height: size } })}
    >
      {rows[index] === undefined ? <td>…</td> : renderLine(rows[index])}
    </tr>
  ));
}

function TableEnd({ hasMore, isLoading, error, onMore, noun }: EndProps) {
  if (error !== null) return <ErrorNotice error={error} retry={onMore} />;
  return (
    <Text size="sm" c="dimmed" ta="center" py="md" component="div" mih={52}>
      {isLoading && `Loading older ${noun} …`}
      {!isLoading && hasMore && (
        <Button variant="subtle" size="compact-sm" onClick={onMore}>
          Load older {noun}
        </Button>
      )}
      {!hasMore && "These are all. Attempts are kept for 30 days."}
    </Text>
  );
}
