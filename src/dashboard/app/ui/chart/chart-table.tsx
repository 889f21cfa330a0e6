import { Table } from "@mantine/core";
import { useState } from "react";

import { textOf, type ChartProps } from "./chart-series.ts";

/** Shows the values of a chart to read; the rows are made when somebody opens it. */
export function ChartTable({ title, times, series, format, formatTime }: ChartProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details className="chart-table" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Show as a table</summary>
      {isOpen && (
        // A box that scrolls must be reached by keyboard.
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
        <section className="scroll-box" tabIndex={0} aria-label={`${title}: table`}>
          <Table fz="xs" className="tabular" stickyHeader>
            <Table.Thead>
              <Table.Tr>
                <Table.Th scope="col">From</Table.Th>
                {series.map(({ label }) => (
                  <Table.Th key={label} scope="col" ta="right">
                    {label}
                  </Table.Th>
                ))}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {times.map((time, i) => (
                <Table.Tr key={time}>
                  <Table.Td>{formatTime(time)}</Table.Td>
                  {series.map(({ label, values }) => (
                    <Table.Td key={label} ta="right">
                      {textOf(values[i], format)}
                    </Table.Td>
                  ))}
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </section>
      )}
    </details>
  );
}
