import { Button, Text } from "@mantine/core";
import { useWindowVirtualizer, type VirtualItem } from "@tanstack/react-virtual";
import { useCallback, useEffect, type CSSProperties, type ReactNode } from "react";

import { ErrorNotice } from "./states.tsx";
import { useIsNarrow } from "./use-is-narrow.ts";
import { useOffset } from "./virtual-rows.tsx";

const OVERSCAN = 8;
/** The next page is asked for so many rows before the end. */
const AHEAD = 60;

interface EndProps {
  readonly hasMore: boolean;
  readonly isLoading: boolean;
  readonly error: unknown;
  readonly onMore: () => void;
  /** What the rows are, such as `attempts`. */
  readonly noun: string;
}

interface VirtualTableProps<Row> extends EndProps {
  readonly label: string;
  /** Names the columns in the style sheet. */
  readonly kind: string;
  readonly columns: readonly string[];
  /** Undefined for those that are not at hand. */
  readonly rows: readonly (Row | undefined)[];
  readonly keyOf: (row: Row) => string;
  readonly heightOf: (row: Row | undefined, isNarrow: boolean) => number;
  /** The cells of a row, in plain elements: dozens are made anew while somebody scrolls. */
  readonly renderLine: (row: Row) => ReactNode;
  /** Told which rows are in view; it must stay the same function. */
  readonly onView: (first: number, last: number) => void;
}

/** Has only those of any number of rows in the document that are in view; the page itself scrolls. */
export function VirtualTable<Row>(props: VirtualTableProps<Row>) {
  const { label, kind, columns, rows, keyOf, heightOf, renderLine, onView } = props;
  const { hasMore, isLoading, error, onMore } = props;
  const isNarrow = useIsNarrow("sm");
  const { place: body, offset } = useOffset<HTMLTableSectionElement>();
  const virtualizer = useLines({ rows, keyOf, heightOf }, { isNarrow, offset });
  const items = virtualizer.getVirtualItems();
  const first = items.at(0)?.index ?? 0;
  const last = items.at(-1)?.index ?? 0;
  const isNearEnd = hasMore && !isLoading && error === null && last >= rows.length - AHEAD;
  useEffect(() => {
    if (isNearEnd) onMore();
  }, [isNearEnd, onMore]);
  useEffect(() => onView(first, last), [onView, first, last]);
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
  // The virtualizer lays out all rows anew for a function that is not the one of before.
  const getItemKey = useCallback(
    (index: number) => {
      const row = rows[index];
      return row === undefined ? index : keyOf(row);
    },
    [rows, keyOf],
  );
  // No memorised component gets anything of the virtualizer.
  // oxlint-disable-next-line react/incompatible-library
  const virtualizer = useWindowVirtualizer({
    count: rows.length,
    estimateSize: (index) => heightOf(rows[index], isNarrow),
    overscan: OVERSCAN,
    // What comes into view is made by a task of its own, not by that of the scrolling as well.
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
 * Only a line of another height than the usual one has a style of its own: of lines that are alike the browser computes
 * the styles once, and of others it looks through those of all before them.
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
