import { Table } from "@mantine/core";
import { type ReactNode, type Ref, useEffect, useLayoutEffect, useRef, useState } from "react";

import type { PagedList } from "./pages.ts";
import { useIsNarrow } from "./use-is-narrow.ts";
import { useVisibleRows } from "./virtual-rows.tsx";

export interface DataTableProps<Row> {
  /** Caption of the table for screen readers; it is not visible. */
  readonly caption: string;
  /** Rows of the table. At least one row is required, because the columns are read from the first row. */
  readonly rows: readonly Row[];
  readonly rowKey: (row: Row) => string | number;
  /**
   * Returns the content of each cell of a row by column title. All rows must return the same titles in the same
   * order.
   */
  readonly columns: (row: Row) => Readonly<Record<string, ReactNode>>;
  /** Title of the last column, which contains the buttons of each row. */
  readonly end?: string;
}

/** Table that shows each row as a card on narrow windows. The first column becomes the heading of the card. */
export function DataTable<Row>({ caption, rows, rowKey, columns, end }: DataTableProps<Row>) {
  const [first] = rows;
  return (
    <Table className="data-table" verticalSpacing="sm">
      <Table.Caption className="unseen">{caption}</Table.Caption>
      <Table.Thead>
        <HeadRow titles={first === undefined ? [] : Object.keys(columns(first))} end={end} />
      </Table.Thead>
      <Table.Tbody>
        {rows.map((row) => (
          <Table.Tr key={rowKey(row)}>
            <Cells columns={columns(row)} end={end} />
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

interface HeadRowProps {
  readonly titles: readonly string[];
  readonly end: string | undefined;
  readonly ref?: Ref<HTMLTableRowElement>;
}

function HeadRow({ titles, end, ref }: HeadRowProps) {
  return (
    <Table.Tr ref={ref}>
      {titles.map((title) => (
        <Table.Th key={title} scope="col" className={title === end ? "at-end" : ""}>
          {title}
        </Table.Th>
      ))}
    </Table.Tr>
  );
}

interface CellsProps {
  readonly columns: Readonly<Record<string, ReactNode>>;
  readonly end: string | undefined;
}

function Cells({ columns, end }: CellsProps) {
  return Object.entries(columns).map(([title, cell]) => (
    <Table.Td key={title} data-title={title} className={title === end ? "at-end" : ""}>
      {/* Wraps the content into one element, so that a card always has two columns: title and content. */}
      <div className="shrinks">{cell}</div>
    </Table.Td>
  ));
}

/** Estimated heights of a row and of a card in px, used until the real heights are measured. */
const ROW_PX = 62;
const CARD_PX = 260;
/** Gap between two cards in px, which must equal the gap in the style sheet. */
const CARD_GAP_PX = 12;

interface VirtualDataTableProps<Row> extends Omit<DataTableProps<Row>, "rows"> {
  readonly list: PagedList<Row>;
}

/** A `DataTable` that renders only the rows in view, for long lists. The page scrolls, not the table. */
export function VirtualDataTable<Row>(props: VirtualDataTableProps<Row>) {
  const { caption, list, rowKey, columns, end } = props;
  const { slots, pages } = list;
  const isNarrow = useIsNarrow("md");
  const visible = useVisibleRows<HTMLTableSectionElement>(list, {
    heightOf: () => (isNarrow ? CARD_PX : ROW_PX),
    gap: isNarrow ? CARD_GAP_PX : 0,
  });
  const { anchor: body, virtualizer, items, above, below } = visible;
  const { head, widths } = useFixedWidths(!isNarrow && items.length > 0);
  const some = slots.find((row) => row !== undefined);
  const titles = some === undefined ? [] : Object.keys(columns(some));
  return (
    <Table
      className="data-table"
      verticalSpacing="sm"
      aria-rowcount={pages.hasNextPage ? -1 : slots.length + 1}
      layout={widths === undefined ? "auto" : "fixed"}
    >
      <Table.Caption className="unseen">{caption}</Table.Caption>
      {widths && (
        <colgroup>
          {titles.map((title, index) => (
            <col key={title} style={{ width: widths[index] }} />
          ))}
        </colgroup>
      )}
      <Table.Thead>
        <HeadRow titles={titles} end={end} ref={head} />
      </Table.Thead>
      <Table.Tbody ref={body}>
        <Space height={above} />
        {items.map(({ index }) => {
          const row = slots[index];
          return (
            <Table.Tr
              key={row === undefined ? `forgotten ${index}` : rowKey(row)}
              ref={virtualizer.measureElement}
              data-index={index}
              aria-rowindex={index + 2}
            >
              {row === undefined ? (
                <Table.Td colSpan={titles.length}>…</Table.Td>
              ) : (
                <Cells columns={columns(row)} end={end} />
              )}
            </Table.Tr>
          );
        })}
        <Space height={below} />
      </Table.Tbody>
    </Table>
  );
}

/** Table row that fills the height of the rows that are not rendered. */
function Space({ height }: { readonly height: number }) {
  return <tr className="space" aria-hidden style={{ height }} />;
}

/** Fixes the column widths that the first rendered rows have, so that columns do not change while the user scrolls. */
function useFixedWidths(areThere: boolean) {
  const head = useRef<HTMLTableRowElement>(null);
  const [widths, setWidths] = useState<readonly number[]>();
  useLayoutEffect(() => {
    if (!areThere || widths !== undefined || head.current === null) return;
    setWidths([...head.current.cells].map((cell) => cell.offsetWidth));
  }, [areThere, widths]);
  useEffect(() => {
    const measureAnew = () => setWidths(undefined);
    window.addEventListener("resize", measureAnew);
    return () => window.removeEventListener("resize", measureAnew);
  }, []);
  return { head, widths: areThere ? widths : undefined };
}
