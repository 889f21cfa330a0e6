import { useCallback, type MouseEvent } from "react";
import { useLocation, useRouter } from "wouter";

/**
 * Returns a click handler for plain `<a>` elements in long lists. The router's link components each subscribe
 * to every navigation, which is slow when dozens are mounted while the user scrolls. The `href` must include
 * the router's base path.
 */
export function usePlainLinks() {
  const { base } = useRouter();
  const [, navigate] = useLocation();
  const follow = useCallback(
    (event: MouseEvent<HTMLAnchorElement>) => {
      const { currentTarget } = event;
      if (isModified(event)) return;
      event.preventDefault();
      navigate(currentTarget.pathname.slice(base.length) + currentTarget.search);
    },
    [base, navigate],
  );
  return { base, follow };
}

export type Follow = ReturnType<typeof usePlainLinks>["follow"];

/** Returns whether a click is left to the browser, because it opens a new tab or window, or starts a download. */
export function isModified(event: MouseEvent): boolean {
  const { button, altKey, ctrlKey, metaKey, shiftKey } = event;
  return button !== 0 || altKey || ctrlKey || metaKey || shiftKey;
}
