import { Checkbox, Group, Paper, Stack, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";

import { useBrand } from "../../session/session.tsx";
import { BrandLogo } from "../../shell/brand.tsx";
import { usePageTitle } from "../../ui/brand-name.ts";
import css from "./sign-in.module.css";

interface FrameProps {
  readonly title: string;
  readonly children: ReactNode;
  readonly below?: ReactNode;
}

/**
 * Layout of the pages that need no session, such as the sign-in page. They have the brand of the last session in this
 * browser. Before the first one they name nobody, because the visitor may belong to a company with a white label.
 */
export function Frame({ title, children, below }: FrameProps) {
  usePageTitle(title);
  const brand = useBrand();
  return (
    <main className={css.frame}>
      <Stack gap="lg">
        <Group gap="xs" justify="center">
          <BrandLogo logoUrl={brand?.logoUrl ?? null} size={brand === undefined ? 36 : 28} />
          {brand !== undefined && (
            <Text fw={650} size="lg">
              {brand.name}
            </Text>
          )}
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
      description="After a reload and in new tabs, for up to 24 hours. On a shared computer, sign out when you leave."
      checked={value}
      onChange={(event) => onChange(event.currentTarget.checked)}
    />
  );
}
