import { useEffect, useRef } from "react";

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
