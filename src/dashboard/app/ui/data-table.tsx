import { Table } from "@mantine/core";
import type { ReactNode } from "react";

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => ReactNode;
  /** At the end of the row: numbers and buttons. */
  readonly end?: boolean;
}

/** A table that becomes cards where it is too narrow for columns; the first column is then the card's heading. */
export function DataTable<Row>({
  caption,
  columns,
  rows,
  rowKey,
}: {
  /** Said to screen readers only. */
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly rowKey: (row: Row) => string | number;
}) {
  return (
    <Table className="data-table" verticalSpacing="sm" highlightOnHover>
      <Table.Caption className="unseen">{caption}</Table.Caption>
      <Table.Thead>
        <Table.Tr>
          {columns.map(({ title, end }) => (
            <Table.Th key={title} scope="col" {...(end && { ta: "end" })}>
              {title}
            </Table.Th>
          ))}
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {rows.map((row) => (
          <Table.Tr key={rowKey(row)}>
            {columns.map(({ title, cell, end }) => (
              <Table.Td key={title} data-title={title} className={end === true ? "at-end" : ""}>
                {cell(row)}
              </Table.Td>
            ))}
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
