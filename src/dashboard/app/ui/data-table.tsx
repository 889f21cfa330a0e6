import { useHotkeys, useWindowEvent } from "@mantine/hooks";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import {
  memo,
  type ReactNode,
  useCallback,
  useEffect,
  useEffectEvent,
  useLayoutEffect,
  useRef,
  useState,
} from "react";

import css from "./data-table.module.css";
import { hasDialog } from "./dialog.tsx";
import { Icon } from "./icon.tsx";
import { useIsNarrow } from "./layout.tsx";
import type { PagedList } from "./pages.ts";

type Key = string | number;

/** Content that a button at the end of each row shows below the row. */
interface Details<Row> {
  /** Returns the label of the button. */
  label(this: void, row: Row): string;
  render(this: void, row: Row): ReactNode;
}

/**
 * Content of the rows of a table. Declares methods and not function properties, so that the memoized `Cells` accept
 * the functions for any type of row.
 */
interface Columns<Row> {
  /**
   * Returns the content of each cell of a row by column title. All rows must return the same titles in the same
   * order.
   */
  columns(this: void, row: Row): Readonly<Record<string, ReactNode>>;
  /** Title of the last column, which contains the buttons of each row. */
  readonly end?: string | undefined;
  readonly details?: Details<Row> | undefined;
}

export interface DataTableProps<Row> extends Columns<Row> {
  /** Caption of the table for screen readers; it is not visible. */
  readonly caption: string;
  /** Rows of the table, with undefined in place of rows that are no longer in memory. At least one row is required. */
  readonly rows: readonly (Row | undefined)[];
  readonly rowKey: (row: Row) => Key;
  /** List that the rows come from. If it is long, only the rows in view are rendered, and pages load by scrolling. */
  readonly list?: PagedList<unknown>;
  /**
   * Class of a table of dense lines; it sets the grid of the rows. If absent, each row becomes a card on narrow
   * windows.
   */
  readonly lines?: string | undefined;
  /** Estimated heights in px of a row in wide and in narrow windows, used until the real height is measured. */
  readonly heights?: readonly [wide: number, narrow: number];
}

/**
 * Table that all lists use. The page scrolls, not the table, and the header stays in view. The keys J and K move the
 * focus between the rows.
 */
export function DataTable<Row>(props: DataTableProps<Row>) {
  const { caption, rows, rowKey, list, lines, columns, end, details } = props;
  const { heights = [ROW_PX, CARD_PX] } = props;
  const isNarrow = useIsNarrow(lines === undefined ? "md" : "sm");
  const { body, isLong, measure, indexes, above, below } = useRowsInView(rows, list, {
    height: heights[isNarrow ? 1 : 0],
    gap: isNarrow && lines === undefined ? CARD_GAP_PX : 0,
  });
  const { head, widths } = useFixedWidths(
    isLong && lines === undefined && !isNarrow && indexes.length > 0,
  );
  const [open, setOpen] = useState<ReadonlySet<Key>>(new Set());
  const toggle = useCallback(
    (key: Key) => setOpen((before) => before.symmetricDifference(new Set([key]))),
    [],
  );
  useRowKeys(body);
  const some = rows.find((row) => row !== undefined);
  const titles = some === undefined ? [] : Object.keys(columns(some));
  return (
    <table
      className={`${css.table} ${lines === undefined ? css.cards : `${css.lines} ${lines}`}`}
      aria-rowcount={list?.pages.hasNextPage ? -1 : rows.length + 1}
      data-fixed={widths !== undefined || undefined}
    >
      <caption className="unseen">{caption}</caption>
      {widths && (
        <colgroup>
          {titles.map((title, index) => (
            <col key={title} style={{ width: widths[index] }} />
          ))}
        </colgroup>
      )}
      <thead>
        <tr ref={head} aria-rowindex={1}>
          {titles.map((title) => (
            <th key={title} scope="col" data-title={title} data-end={title === end || undefined}>
              {title}
            </th>
          ))}
          {details && (
            <th scope="col">
              <span className="unseen">Details</span>
            </th>
          )}
        </tr>
      </thead>
      <tbody ref={body}>
        <Space height={above} />
        {indexes.map((index) => {
          const row = rows[index];
          const key = row === undefined ? `evicted ${index}` : rowKey(row);
          return (
            <tr key={key} ref={measure} data-index={index} aria-rowindex={index + 2}>
              {row === undefined ? (
                <td colSpan={titles.length}>…</td>
              ) : (
                <Cells
                  {...{ row, columns, end, details }}
                  isLine={lines !== undefined}
                  rowKey={key}
                  isOpen={open.has(key)}
                  onToggle={toggle}
                />
              )}
            </tr>
          );
        })}
        <Space height={below} />
      </tbody>
    </table>
  );
}

interface CellsProps extends Columns<unknown> {
  readonly isLine: boolean;
  readonly row: unknown;
  readonly rowKey: Key;
  readonly isOpen: boolean;
  readonly onToggle: (key: Key) => void;
}

/**
 * Cells of one row. Uses plain elements and not components of Mantine, because dozens of rows are mounted while the
 * user scrolls.
 */
const Cells = memo(function Cells(props: CellsProps) {
  const { row, columns, end, details, isLine, rowKey, isOpen, onToggle } = props;
  return (
    <>
      {Object.entries(columns(row)).map(([title, cell]) => (
        <td
          key={title}
          data-title={title}
          data-end={title === end || undefined}
          // Places a cell of a dense line into the grid area with the name of its column.
          style={{ gridArea: isLine ? title.toLowerCase() : undefined }}
        >
          {/* Wraps the content into one element, so that a cell of a card always has two: title and content. */}
          <div className={css.cell}>{cell}</div>
        </td>
      ))}
      {details && (
        <td className={css.toggle}>
          <button
            type="button"
            className="mantine-focus-auto"
            aria-expanded={isOpen}
            aria-label={details.label(row)}
            onClick={() => onToggle(rowKey)}
          >
            <Icon name={isOpen ? "chevronDown" : "chevronRight"} size={16} />
          </button>
        </td>
      )}
      {details && isOpen && <td className={css.details}>{details.render(row)}</td>}
    </>
  );
});

/** Table row that fills the height of the rows that are not rendered. */
function Space({ height }: { readonly height: number }) {
  return height > 0 && <tr className={css.space} aria-hidden style={{ height }} />;
}

/** Estimated heights of a row and of a card in px. */
const ROW_PX = 62;
const CARD_PX = 150;
/** Gap between two cards in px, which must equal the gap in the style sheet. */
const CARD_GAP_PX = 12;

/** Number of rows from which a list renders only the rows in view. Equals the size of one API page. */
const LONG_LIST_ROWS = 100;
/** Number of rows that are rendered beyond the view. */
const OVERSCAN_ROWS = 10;
/** Number of rows above or below the view at which the page before or after is loaded. */
const PREFETCH_ROWS = 30;

/**
 * Chooses the rows of a list that are in view, and loads the page before or after when the user scrolls near the start or
 * the end of the rows in memory. `above` and `below` are the heights in px of the rows that are not rendered.
 */
function useRowsInView(
  rows: readonly unknown[],
  list: PagedList<unknown> | undefined,
  { height, gap }: { readonly height: number; readonly gap: number },
) {
  const hasNextPage = list?.pages.hasNextPage ?? false;
  const isLong = hasNextPage || (list !== undefined && rows.length > LONG_LIST_ROWS);
  const { anchor, offset } = useOffset();
  // The rule warns because the virtualizer is a mutable object. It is not passed to memoized components here.
  // oxlint-disable-next-line react/incompatible-library
  const virtualizer = useWindowVirtualizer({
    enabled: isLong,
    count: rows.length,
    estimateSize: () => height,
    gap,
    overscan: OVERSCAN_ROWS,
    // Renders rows that scroll into view in a separate task, so that scrolling itself stays smooth.
    useFlushSync: false,
    scrollMargin: offset,
  });
  const items = virtualizer.getVirtualItems();
  const indexes = isLong ? items.map(({ index }) => index) : [...rows.keys()];
  const first = indexes.at(0) ?? 0;
  const last = indexes.at(-1) ?? 0;
  const isNearEnd =
    hasNextPage &&
    last >= rows.length - PREFETCH_ROWS &&
    list?.pages.isFetchingNextPage === false &&
    !list.pages.isFetchNextPageError;
  const isNearStart =
    list?.pages.hasPreviousPage === true &&
    first < list.from + PREFETCH_ROWS &&
    !list.pages.isFetchingPreviousPage &&
    !list.pages.isFetchPreviousPageError;
  const readNext = useEffectEvent(() => list?.pages.fetchNextPage());
  const readPrevious = useEffectEvent(() => list?.pages.fetchPreviousPage());
  useEffect(() => {
    if (isNearEnd) void readNext();
  }, [isNearEnd]);
  useEffect(() => {
    if (isNearStart) void readPrevious();
  }, [isNearStart]);
  return {
    body: anchor,
    isLong,
    measure: isLong ? virtualizer.measureElement : undefined,
    indexes,
    above: (items.at(0)?.start ?? offset) - offset,
    below: isLong ? virtualizer.getTotalSize() - ((items.at(-1)?.end ?? offset) - offset) : 0,
  };
}

/** Measures the distance in px between the table's body and the top of the page, whenever content above may change. */
function useOffset() {
  const anchor = useRef<HTMLTableSectionElement>(null);
  const [offset, setOffset] = useState(0);
  useLayoutEffect(() => {
    const measure = () => {
      const { top } = anchor.current?.getBoundingClientRect() ?? { top: 0 };
      setOffset(Math.round(top + window.scrollY));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(document.body);
    return () => observer.disconnect();
  }, []);
  return { anchor, offset };
}

/** Fixes the column widths that the first rendered rows have, so that columns do not change while the user scrolls. */
function useFixedWidths(areThere: boolean) {
  const head = useRef<HTMLTableRowElement>(null);
  const [widths, setWidths] = useState<readonly number[]>();
  useLayoutEffect(() => {
    if (!areThere || widths !== undefined || head.current === null) return;
    setWidths([...head.current.cells].map((cell) => cell.offsetWidth));
  }, [areThere, widths]);
  useWindowEvent("resize", () => setWidths(undefined));
  return { head, widths: areThere ? widths : undefined };
}

/**
 * Lets J and K move the focus to the first control of the next or previous row. While an event is open beside the list,
 * J and K open its neighbours instead (`NeighbourButtons`).
 */
function useRowKeys(body: { readonly current: HTMLTableSectionElement | null }): void {
  const move = (step: number) => {
    const focused = document.activeElement?.closest("tr");
    const table = focused?.closest("table") ?? document.querySelector(`main .${css.table}`);
    const own = body.current;
    if (own === null || own.closest("table") !== table || hasDialog()) return;
    if (own.querySelector("[aria-current]") !== null) return;
    const rows = [...own.rows].filter((row) => row.querySelector("a, button") !== null);
    const at = rows.findIndex((row) => row === focused);
    rows[at + step]?.querySelector<HTMLElement>("a, button")?.focus();
  };
  useHotkeys([
    ["j", () => move(1)],
    ["k", () => move(-1)],
  ]);
}
