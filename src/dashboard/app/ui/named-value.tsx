import { Text } from "@mantine/core";
import type { ReactNode } from "react";

/** A number or an instant with its name and a hint. It stands in a `dl` of the class `value-grid`. */
export function NamedValue({
  name,
  children,
  hint,
}: {
  readonly name: string;
  readonly children: ReactNode;
  readonly hint?: ReactNode;
}) {
  return (
    <div className="shrinks">
      <Text size="sm" c="dimmed" component="dt">
        {name}
      </Text>
      <Text fw={650} size="lg" component="dd" m={0} className="tabular">
        {children}
      </Text>
      {hint !== undefined && (
        <Text size="xs" c="dimmed" component="dd" m={0}>
          {hint}
        </Text>
      )}
    </div>
  );
}
