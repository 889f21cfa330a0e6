import { Anchor, Group, Paper, Stack, Text, Title } from "@mantine/core";
import { Fragment, type ReactNode, useEffect, useRef } from "react";
import { Link } from "wouter";

import { Icon } from "./icon.tsx";

/** Heading of a page. Takes the focus when the page opens, so that screen readers announce the page. */
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
    // Leaves the focus in a dialog that was opened before the page had loaded.
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

/** Part of a page with a heading and an optional description. */
export function Section({
  title,
  description,
  actions,
  children,
}: {
  readonly title: string;
  readonly description?: ReactNode;
  readonly actions?: ReactNode;
  readonly children?: ReactNode;
}) {
  return (
    <Paper component="section" className="section" withBorder p={{ base: "md", sm: "lg" }}>
      <Stack gap="md">
        <Group justify="space-between" align="flex-start" gap="sm">
          <div className="grows section-words">
            <Title order={2} size="h4">
              {title}
            </Title>
            {description !== undefined && (
              <Text c="dimmed" size="sm" component="div" maw={640} mt={4}>
                {description}
              </Text>
            )}
          </div>
          {actions}
        </Group>
        {children}
      </Stack>
    </Paper>
  );
}

/** Named value with an optional hint. Must be inside a `dl` element with the class `value-grid`. */
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

interface CellTextProps {
  readonly title: ReactNode;
  /** Details in a second line. */
  readonly children?: ReactNode;
}

/** Content of a table cell that names its row. */
export function CellText({ title, children }: CellTextProps) {
  return (
    <>
      <Text fw={600} size="sm">
        {title}
      </Text>
      {children !== undefined && <Dimmed>{children}</Dimmed>}
    </>
  );
}

/** Details in a small line below a value. */
export function Dimmed({ children }: { readonly children: ReactNode }) {
  return (
    <Text size="xs" c="dimmed">
      {children}
    </Text>
  );
}

interface FactsProps {
  readonly facts: readonly (readonly [name: string, value: ReactNode])[];
}

/** List of names with their values. */
export function Facts({ facts }: FactsProps) {
  return (
    <dl className="facts">
      {facts.map(([name, value], i) => (
        // Two facts may have the same name, as details of the audit log are named by the action.
        <Fragment key={i}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
    </dl>
  );
}
