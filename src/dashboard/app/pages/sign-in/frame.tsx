import { Checkbox, Group, Paper, Stack, Text, Title } from "@mantine/core";
import { useDocumentTitle } from "@mantine/hooks";
import type { ReactNode } from "react";

import { BrandMark } from "../../shell/brand.tsx";
import css from "./sign-in.module.css";

interface FrameProps {
  readonly title: string;
  readonly children: ReactNode;
  readonly below?: ReactNode;
}

/** Layout of the pages that need no session, such as the sign-in page. */
export function Frame({ title, children, below }: FrameProps) {
  useDocumentTitle(`${title} · ReviewRelay`);
  return (
    <main className={css.frame}>
      <Stack gap="lg">
        <Group gap="xs" justify="center">
          <BrandMark size={28} />
          <Text fw={650} size="lg">
            ReviewRelay
          </Text>
        </Group>
        <Paper withBorder shadow="xs" p={{ base: "lg", xs: "xl" }}>
          <Stack>
            <Title order={1} size="h3">
              {title}
            </Title>
            {children}
          </Stack>
        </Paper>
        {below}
      </Stack>
    </main>
  );
}

interface RememberProps {
  readonly value: boolean;
  readonly onChange: (value: boolean) => void;
}

export function Remember({ value, onChange }: RememberProps) {
  return (
    <Checkbox
      label="Keep me signed in"
      description="After a reload and in new tabs, for up to 24 hours. Do not use on shared computers."
      checked={value}
      onChange={(event) => onChange(event.currentTarget.checked)}
    />
  );
}
