import { Group, Paper, Text, ThemeIcon } from "@mantine/core";
import type { ReactNode } from "react";

import { Icon } from "./icon.tsx";

/** Says in one sentence how things stand, before the details. */
export function Verdict({
  isWell,
  title,
  children,
  action,
}: {
  readonly isWell: boolean;
  readonly title: string;
  readonly children?: ReactNode;
  readonly action?: ReactNode;
}) {
  return (
    <Paper withBorder p="md" className="verdict">
      <Group gap="md" align="flex-start" className="grows" wrap="nowrap">
        <ThemeIcon variant="light" color={isWell ? "teal" : "yellow"} size={36} radius="xl">
          <Icon name={isWell ? "check" : "alert"} />
        </ThemeIcon>
        <output className="shrinks">
          <Text fw={650} component="span" display="block">
            {title}
          </Text>
          {children !== undefined && (
            <Text size="sm" c="dimmed" component="span" display="block">
              {children}
            </Text>
          )}
        </output>
      </Group>
      {action}
    </Paper>
  );
}
