import { Anchor, Group, Text, Title } from "@mantine/core";
import { useEffect, useRef, type ReactNode } from "react";
import { Link } from "wouter";

import { Icon } from "./icon.tsx";

/** The heading of a page. It takes the focus when the page is shown, so that a screen reader says where one is. */
export function PageHeader({
  title,
  description,
  actions,
  back,
}: {
  readonly title: string;
  readonly description?: ReactNode;
  readonly actions?: ReactNode;
  readonly back?: { readonly href: string; readonly title: string };
}) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · ReviewRelay`;
  }, [title]);
  useEffect(() => {
    // Whoever has opened a dialog before the page was there is in it.
    const dialog = document.activeElement?.closest("[role=dialog]") ?? null;
    if (dialog === null) heading.current?.focus({ preventScroll: true });
  }, []);
  return (
    <header className="page-header">
      {back && (
        <Anchor component={Link} href={back.href} size="sm">
          <Group gap={4} component="span">
            <Icon name="arrowLeft" size={14} />
            {back.title}
          </Group>
        </Anchor>
      )}
      <Group justify="space-between" align="flex-start" gap="sm" mb="md">
        <div className="shrinks">
          <Title order={1} size="h2" ref={heading} tabIndex={-1}>
            {title}
          </Title>
          {description !== undefined && (
            <Text c="dimmed" component="div" maw={720}>
              {description}
            </Text>
          )}
        </div>
        {actions !== undefined && <Group gap="xs">{actions}</Group>}
      </Group>
    </header>
  );
}
