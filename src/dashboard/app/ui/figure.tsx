import { Text } from "@mantine/core";
import type { ReactNode } from "react";

/** One number with its name, and what there is to know about it. Stands in a `dl`. */
export function Figure({
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
      <Text fw={650} size="lg" component="dd" m={0} className="figures">
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
