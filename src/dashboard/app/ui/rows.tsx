import { Stack } from "@mantine/core";
import type { ReactNode } from "react";

interface RowsProps {
  /** Says to screen readers what the rows are. */
  readonly label: string;
  readonly children: ReactNode;
}

/** Entries of several lines each, one below the other. */
export function Rows({ label, children }: RowsProps) {
  return (
    <ul className="rows" aria-label={label}>
      {children}
    </ul>
  );
}

interface RowProps {
  readonly children: ReactNode;
  /** They stand at the end of the row. */
  readonly actions: ReactNode;
  readonly gap?: number;
}

export function Row({ children, actions, gap = 2 }: RowProps) {
  return (
    <li className="row">
      <Stack gap={gap} className="grows">
        {children}
      </Stack>
      {actions}
    </li>
  );
}
