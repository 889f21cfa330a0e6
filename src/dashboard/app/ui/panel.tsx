import { Paper, Text, Title } from "@mantine/core";
import { type ReactNode, useEffect, useRef } from "react";

import { number } from "./format.ts";

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
  /** Number of entries, shown after the title unless it is 0. */
  readonly count?: number;
  /**
   * Key of the content's state. If the focused control is gone after the key has changed, the panel takes the
   * focus.
   */
  readonly state?: string;
  readonly children: ReactNode;
}

/** Part of a page with a small heading. Takes the focus when the focused control in it is replaced. */
export function Panel({ title, count = 0, state = "", children }: PanelProps) {
  const container = useFocusFallback(state);
  return (
    <Paper
      withBorder
      p="lg"
      component="section"
      aria-label={title}
      ref={container}
      tabIndex={-1}
      className="panel"
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
