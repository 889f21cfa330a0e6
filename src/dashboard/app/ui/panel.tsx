import { Paper, Text, Title } from "@mantine/core";
import { type ReactNode, useEffect, useRef } from "react";

import { number } from "./format.ts";

/**
 * For a place whose controls are replaced by what they did, such as a form by its answer: if the focus was on a control
 * that is gone, it moves to the place, so that the keyboard does not begin at the top of the page again.
 */
export function useKeptFocus(state: string) {
  const place = useRef<HTMLElement>(null);
  const known = useRef(state);
  useEffect(() => {
    if (known.current === state) return;
    known.current = state;
    if (document.activeElement === document.body) place.current?.focus({ preventScroll: true });
  }, [state]);
  return place;
}

interface PanelProps {
  readonly title: string;
  /** The number of things in it; it is said unless it is 0. */
  readonly count?: number;
  /** The state of its content, where controls come and go with it. */
  readonly state?: string;
  readonly children: ReactNode;
}

/** A part of a page with a small heading. It takes the focus when the control that had it is replaced. */
export function Panel({ title, count = 0, state = "", children }: PanelProps) {
  const place = useKeptFocus(state);
  return (
    <Paper
      withBorder
      p="lg"
      component="section"
      aria-label={title}
      ref={place}
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
