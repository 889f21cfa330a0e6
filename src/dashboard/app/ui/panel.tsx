import { Paper, Text, Title } from "@mantine/core";
import { type ReactNode, useEffect, useRef } from "react";

import { number } from "./format.ts";

/**
 * Keeps the focus near a control that its own action removes, such as a form that is replaced by its answer.
 * If the focus was lost, it moves to the surrounding element instead of the top of the page.
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
  /** The number of entries, shown unless it is 0. */
  readonly count?: number;
  /** A key of the content's state. When it changes and the focused control is gone, the panel takes the focus. */
  readonly state?: string;
  readonly children: ReactNode;
}

/** A part of a page with a small heading. It takes the focus when the focused control inside is replaced. */
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
