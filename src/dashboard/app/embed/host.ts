import { useEffect, useState, type RefObject } from "react";

/*
 * What the page around the portal is told (guide "embedding"): never more than that it is there, how high it is and that
 * it has ended, and nobody but the origins that may frame it.
 */

type Told =
  | { readonly type: "opened" }
  | { readonly type: "height"; readonly height: number }
  | { readonly type: "ended" };

const SOURCE = "reviewrelay-portal";
/** A dialog needs room, also over a short page. */
const LEAST_HEIGHT = 400;
/** Beyond it the frame scrolls: lists load what is in view, and in a frame without an end that would be all. */
const MOST_HEIGHT = 1_600;

/** The server has written them into the document, as into its policy. */
function listedOrigins(): readonly string[] {
  const meta = document.querySelector<HTMLMetaElement>('meta[name="framed-by"]');
  return (meta?.content ?? "").split(" ").filter((one) => one !== "");
}

/** Where the browser says who is around, it alone is told; elsewhere the browser drops what is for another origin. */
function hostOrigins(): readonly string[] {
  const listed = listedOrigins();
  const around = location.ancestorOrigins?.[0];
  return around === undefined ? listed : listed.filter((one) => one === around);
}

const isFramed = () => window.parent !== window;

export function tellHost(told: Told): void {
  if (!isFramed()) return;
  for (const origin of hostOrigins())
    window.parent.postMessage({ source: SOURCE, ...told }, origin);
}

/** Tells the host how high the content is, whenever it changes. */
export function useToldHeight(content: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const { current } = content;
    if (current === null || !isFramed()) return undefined;
    let last = 0;
    const observer = new ResizeObserver(() => {
      const full = Math.ceil(current.getBoundingClientRect().height);
      const height = Math.min(Math.max(full, LEAST_HEIGHT), MOST_HEIGHT);
      if (height === last) return;
      last = height;
      tellHost({ type: "height", height });
    });
    observer.observe(current);
    return () => observer.disconnect();
  }, [content]);
}

/** Whether some page is around this one that could open it again. */
export function useHasHost(): boolean {
  return useState(isFramed)[0];
}
