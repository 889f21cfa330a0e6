/** What the link to a portal carries. */
export interface PortalLink {
  /** Below it are the portal's pages. */
  readonly base: string;
  /** Absent after a reload: a code is good once, and nothing is kept. */
  readonly code: string | undefined;
  readonly theme: "light" | "dark" | undefined;
}

const PORTAL = /^\/embed\/[^/]+/;

/** A frame that is sent to another link of the same portal is loaded anew, which a new fragment alone does not do. */
export function followNewLinks(): void {
  addEventListener("hashchange", () => {
    if (location.hash.startsWith("#code=")) location.reload();
  });
}

/**
 * Answers the link where the page is a portal. Takes the code out of the address before anything else happens: it must
 * not be kept, copied or sent anywhere.
 */
export function takePortalLink(): PortalLink | undefined {
  const base = PORTAL.exec(location.pathname)?.[0];
  if (base === undefined) return undefined;
  const code = new URLSearchParams(location.hash.replace(/^#/, "")).get("code") ?? undefined;
  if (location.hash !== "") history.replaceState(null, "", location.pathname + location.search);
  const theme = new URLSearchParams(location.search).get("theme");
  return { base, code, theme: theme === "light" || theme === "dark" ? theme : undefined };
}
