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
      const { button, altKey, ctrlKey, metaKey, shiftKey, currentTarget } = event;
      // Leaves clicks with a modifier key to the browser, because they open a new tab or window, or start a download.
      if (button !== 0 || altKey || ctrlKey || metaKey || shiftKey) return;
      event.preventDefault();
      navigate(currentTarget.pathname.slice(base.length));
    },
    [base, navigate],
  );
  return { base, follow };
}

export type Follow = ReturnType<typeof usePlainLinks>["follow"];
