import {
  ActionIcon,
  Anchor,
  type AnchorProps,
  Group,
  Paper,
  Stack,
  Text,
  type TextProps,
  Title,
  useMantineTheme,
  Tabs,
} from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { Fragment, type ReactNode, useEffect, useRef } from "react";
import { Link } from "wouter";

import { usePageTitle } from "./brand-name.ts";
import { number } from "./format.ts";
import { Icon } from "./icon.tsx";

/** Heading of a page. Takes the focus when the page opens, so that screen readers announce the page. */
export function PageHeader({
  title,
  description,
  actions,
  back,
  beside,
}: {
  readonly title: string;
  /**
   * Content beside the title. If present, the heading takes one line with the description below it, and the link back
   * is an arrow without a title.
   */
  readonly beside?: ReactNode;
  readonly description?: ReactNode;
  readonly actions?: ReactNode;
  readonly back?: { readonly href: string; readonly title: string };
}) {
  const heading = useRef<HTMLHeadingElement>(null);
  usePageTitle(title);
  useEffect(() => {
    // Leaves the focus in a dialog that was opened before the page had loaded, and in a field of the page.
    const focused = document.activeElement?.closest("[role=dialog], form") ?? null;
    if (focused === null) heading.current?.focus({ preventScroll: true });
  }, []);
  return (
    <header className="page-header">
      {back && beside === undefined && (
        <PageLink href={back.href}>
          <Group gap={4} component="span">
            <Icon name="arrowLeft" size={14} />
            {back.title}
          </Group>
        </PageLink>
      )}
      <Group justify="space-between" align="flex-start" gap="sm" mb="md">
        <div className={beside === undefined ? "shrinks" : "title-block"}>
          <div className={beside === undefined ? undefined : "title-line"}>
            {back && beside !== undefined && (
              <ActionIcon
                component={Link}
                href={back.href}
                variant="subtle"
                color="gray"
                aria-label={back.title}
              >
                <Icon name="arrowLeft" size={18} />
              </ActionIcon>
            )}
            <Title
              order={1}
              size={beside === undefined ? "h2" : "h3"}
              ref={heading}
              tabIndex={-1}
              className="shrinks"
            >
              {title}
            </Title>
            {beside}
          </div>
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
  id,
  title,
  description,
  actions,
  children,
}: {
  /** Target of links to the section. */
  readonly id?: string;
  readonly title: string;
  readonly description?: ReactNode;
  readonly actions?: ReactNode;
  readonly children?: ReactNode;
}) {
  return (
    <Paper component="section" id={id} className="section" withBorder p={{ base: "md", sm: "lg" }}>
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
      <Text fw={600} size="sm" data-name>
        {title}
      </Text>
      {children !== undefined && <Dimmed>{children}</Dimmed>}
    </>
  );
}

/** Text in a paler colour, by default in a small line below a value. */
export function Dimmed(
  props: TextProps & { readonly title?: string; readonly children: ReactNode },
) {
  return <Text size="xs" c="dimmed" {...props} />;
}

interface FactsProps {
  readonly facts: readonly (readonly [name: string, value: ReactNode])[];
}

/** Error that screen readers announce when it appears. */
export function ErrorText({ children }: { readonly children: ReactNode }) {
  return (
    <Text size="sm" c="var(--mantine-color-error)" role="alert">
      {children}
    </Text>
  );
}

/** List of names with their values. */
export function Facts({ facts }: FactsProps) {
  return (
    <dl className="facts">
      {facts.map(([name, value], i) => (
        // The `key` is the index, because two facts may have the same name: audit actions choose the names of their
        // details.
        <Fragment key={i}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
    </dl>
  );
}

/**
 * Keeps the focus near a control that disappears because of its own action, such as a form that its result
 * replaces. Moves a lost focus to the surrounding element, because the browser would move it to the top of the
 * page.
 */
export function useFocusFallback(state: string) {
  const container = useRef<HTMLElement>(null);
  const known = useRef(state);
  useEffect(() => {
    if (known.current === state) return;
    known.current = state;
    if (document.activeElement === document.body) container.current?.focus({ preventScroll: true });
  }, [state]);
  return container;
}

interface PanelProps {
  readonly title: string;
  /** Target of links to the panel. */
  readonly id?: string;
  /** Number of entries, shown after the title unless it is 0. */
  readonly count?: number;
  /** Key of the content's state. If a change of the key has removed the focused control, the panel takes the focus. */
  readonly state?: string;
  readonly children: ReactNode;
}

/** Part of a page with a small heading. Takes the focus when the focused control in it is removed. */
export function Panel({ title, id, count = 0, state = "", children }: PanelProps) {
  const container = useFocusFallback(state);
  return (
    <Paper
      withBorder
      p={{ base: "md", sm: "lg" }}
      component="section"
      aria-label={title}
      id={id}
      ref={container}
      tabIndex={-1}
    >
      <Title order={2} size="h5" mb="sm">
        {title}
        {count > 0 && (
          <Text span c="dimmed" inherit>
            {" "}
            {number(count)}
          </Text>
        )}
      </Title>
      {children}
    </Paper>
  );
}

interface PageLinkProps extends AnchorProps {
  readonly href: string;
  readonly title?: string;
  readonly children: ReactNode;
}

/** Link to another page. */
export function PageLink(props: PageLinkProps) {
  return <Anchor component={Link} size="sm" {...props} />;
}

/** Link that names a row of a table and makes the whole row clickable. */
export function RowLink(props: PageLinkProps) {
  return <Anchor component={Link} className="row-link" {...props} />;
}

/** Link within a sentence, which looks like the text around it. */
export function TextLink(props: PageLinkProps) {
  return <PageLink inherit underline="always" {...props} />;
}

interface GuideLinkProps {
  /** Name of the guide, with an anchor if the link leads to one of its sections. */
  readonly guide: string;
  readonly children: ReactNode;
}

/** Link to a guide, which opens in another tab, so that a form keeps its place. */
export function GuideLink({ guide, children }: GuideLinkProps) {
  return (
    <Anchor href={`/docs/${guide}`} target="_blank" inherit underline="always">
      {children}
    </Anchor>
  );
}

interface LinkButtonProps {
  readonly onClick: () => void;
  readonly children: ReactNode;
}

/** Button that looks like a link and leads to another step. */
export function LinkButton(props: LinkButtonProps) {
  return <Anchor component="button" type="button" size="sm" {...props} />;
}

/** Returns whether the window is narrower than a breakpoint, as the counterpart of Mantine's `visibleFrom`. */
export function useIsNarrow(below: "sm" | "md" | "xl"): boolean {
  const theme = useMantineTheme();
  return useMediaQuery(`(width < ${theme.breakpoints[below]})`, undefined, {
    getInitialValueInEffect: false,
  });
}

interface PageTabsProps {
  /** Title and content of each tab, by its name. */
  readonly tabs: Readonly<Record<string, { readonly title: string; readonly content: ReactNode }>>;
  /** Name of the shown tab. If absent, the component holds it, and begins with the first tab. */
  readonly value?: string;
  readonly onChange?: (name: string) => void;
}

/** Tabs: a list of titles, and the content of the selected one below it. */
export function PageTabs({ tabs, value, onChange }: PageTabsProps) {
  const entries = Object.entries(tabs);
  const shown = value === undefined ? { defaultValue: entries[0]?.[0] ?? "" } : { value };
  return (
    <Tabs {...shown} onChange={(next) => next !== null && onChange?.(next)} keepMounted={false}>
      <Tabs.List mb="sm">
        {entries.map(([name, { title }]) => (
          <Tabs.Tab key={name} value={name}>
            {title}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {entries.map(([name, { content }]) => (
        <Tabs.Panel key={name} value={name}>
          {content}
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}
