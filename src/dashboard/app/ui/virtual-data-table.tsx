import { Table } from "@mantine/core";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useRef, useState } from "react";

import { Cells, HeadRow, type DataTableProps } from "./data-table.tsx";
import type { PagedList } from "./pages.ts";
import { useIsNarrow } from "./use-is-narrow.ts";
import { useNextPage } from "./use-next-page.ts";
import { useOffset } from "./use-offset.ts";

const OVERSCAN = 10;
/** About how high a row, and a card, is in px until it was seen. */
const ROW_PX = 62;
const CARD_PX = 260;
/** Between two cards, as the style sheet has it. */
const CARD_GAP_PX = 12;

interface VirtualDataTableProps<Row> extends Omit<DataTableProps<Row>, "rows"> {
  readonly list: PagedList<Row>;
}

/** A `DataTable` of which only the rows in view are in the document; the page itself scrolls. */
export function VirtualDataTable<Row>(props: VirtualDataTableProps<Row>) {
  const { caption, list, rowKey, columns, end } = props;
  const { slots } = list;
  const { place: body, offset } = useOffset<HTMLTableSectionElement>();
  const isNarrow = useIsNarrow("md");
  // No memorised component gets anything of the virtualizer.
  // oxlint-disable-next-line react/incompatible-library
  const virtualizer = useWindowVirtualizer({
    count: slots.length,
    estimateSize: () => (isNarrow ? CARD_PX : ROW_PX),
    gap: isNarrow ? CARD_GAP_PX : 0,
    overscan: OVERSCAN,
    // What comes into view is made by a task of its own, not by that of the scrolling as well.
    useFlushSync: false,
    scrollMargin: offset,
  });
  const items = virtualizer.getVirtualItems();
  const { head, widths } = useKeptWidths(!isNarrow && items.length > 0);
  const hasMore = useNextPage(list, items);
  const some = slots.find((row) => row !== undefined);
  const titles = some === undefined ? [] : Object.keys(columns(some));
  return (
    <Table
      className="data-table"
      verticalSpacing="sm"
      aria-rowcount={hasMore ? -1 : slots.length + 1}
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
        <Space height={(items.at(0)?.start ?? offset) - offset} />
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
        <Space height={virtualizer.getTotalSize() + offset - (items.at(-1)?.end ?? offset)} />
      </Table.Tbody>
    </Table>
  );
}

/** Stands for the rows that are not in the document. */
function Space({ height }: { readonly height: number }) {
  return <tr className="space" aria-hidden style={{ height }} />;
}

/** The widths of the columns as the first rows ask for them, so that they do not change while somebody scrolls. */
function useKeptWidths(areThere: boolean) {
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
