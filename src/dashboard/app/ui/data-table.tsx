import { Table } from "@mantine/core";
import type { ReactNode, Ref } from "react";

export interface DataTableProps<Row> {
  /** It is said to screen readers only. */
  readonly caption: string;
  /** There must be one at least: the columns are read from it. */
  readonly rows: readonly Row[];
  readonly rowKey: (row: Row) => string | number;
  /** Title of the column → what a row has there; the same titles in the same order for every row. */
  readonly columns: (row: Row) => Readonly<Record<string, ReactNode>>;
  /** The title of the column for buttons, at the end of the row. */
  readonly end?: string;
}

/** A table that becomes cards where it is too narrow for columns; the first column is then the card's heading. */
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

export function HeadRow({ titles, end, ref }: HeadRowProps) {
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

export function Cells({ columns, end }: CellsProps) {
  return Object.entries(columns).map(([title, cell]) => (
    <Table.Td key={title} data-title={title} className={title === end ? "at-end" : ""}>
      {/* It is one box, so that a card has two columns whatever is in it. */}
      <div className="shrinks">{cell}</div>
    </Table.Td>
  ));
}
