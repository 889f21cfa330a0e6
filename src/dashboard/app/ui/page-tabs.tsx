import { Tabs } from "@mantine/core";
import type { ReactNode } from "react";

interface PageTabsProps {
  /** Title and content of each tab, by its name. */
  readonly tabs: Readonly<Record<string, { readonly title: string; readonly content: ReactNode }>>;
  /** Name of the shown tab. If absent, the component holds it, and begins with the first tab. */
  readonly value?: string;
  readonly onChange?: (name: string) => void;
}

/** Contents of which one is shown at a time, under a list of their titles. */
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
