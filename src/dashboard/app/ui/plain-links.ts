import { useCallback, type MouseEvent } from "react";
import { useLocation, useRouter } from "wouter";

/**
 * What a plain link of a long list does when it is clicked: the router's own links each listen to every move, which is
 * dear where dozens are made anew while somebody scrolls. Their `href` begins with the base.
 */
export function usePlainLinks() {
  const { base } = useRouter();
  const [, navigate] = useLocation();
  const follow = useCallback(
    (event: MouseEvent<HTMLAnchorElement>) => {
      const { button, altKey, ctrlKey, metaKey, shiftKey, currentTarget } = event;
      // Those open a tab, a window or a download.
      if (button !== 0 || altKey || ctrlKey || metaKey || shiftKey) return;
      event.preventDefault();
      navigate(currentTarget.pathname.slice(base.length));
    },
    [base, navigate],
  );
  return { base, follow };
}

export type Follow = ReturnType<typeof usePlainLinks>["follow"];
