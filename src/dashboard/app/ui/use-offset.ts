import { useLayoutEffect, useRef, useState, type RefObject } from "react";

/** Measures how far down the page an element begins; what is above may grow and shrink. */
export function useOffset<E extends HTMLElement>(): {
  readonly place: RefObject<E | null>;
  readonly offset: number;
} {
  const place = useRef<E>(null);
  const [offset, setOffset] = useState(0);
  useLayoutEffect(() => {
    const measure = () => {
      const { top } = place.current?.getBoundingClientRect() ?? { top: 0 };
      setOffset(Math.round(top + window.scrollY));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(document.body);
    return () => observer.disconnect();
  }, []);
  return { place, offset };
}
