import { Stack } from "@mantine/core";
import type { ReactNode } from "react";

interface RowsProps {
  /** Name of the list for screen readers. */
  readonly label: string;
  readonly children: ReactNode;
}

/** List whose entries have several lines each. */
export function Rows({ label, children }: RowsProps) {
  return (
    <ul className="rows" aria-label={label}>
      {children}
    </ul>
  );
}

interface RowProps {
  readonly children: ReactNode;
  /** Buttons at the end of the entry. */
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
