/** A search result and the page that it links to. */
export interface Hit {
  readonly group:
    | "Pages"
    | "Events"
    | "Reviews"
    | "Subscriptions"
    | "Users"
    | "Event catalog"
    | "Documentation";
  readonly title: string;
  readonly hint: string;
  /** A path below `/dashboard`. A guide has a path below `/docs` and opens in a new tab. */
  readonly href: string;
}

export const isGuide = ({ href }: Hit): boolean => href.startsWith("/docs/");

/** Returns whether the text contains each typed word, ignoring case. */
export function hasWords(text: string, typed: string): boolean {
  const lower = text.toLowerCase();
  return typed
    .toLowerCase()
    .split(/\s+/)
    .every((word) => lower.includes(word));
}

/** The highest number of results per group. */
export const RESULTS_PER_GROUP = 5;

/** A section of a guide in the search index `/docs/search.json`. */
export interface Section {
  readonly path: string;
  readonly guide: string;
  readonly title: string;
  readonly text: string;
}

/** Finds sections of guides. Matches in titles come first, then matches anywhere in the text. */
export function guidesLike(sections: readonly Section[], typed: string): Hit[] {
  const titled = sections.filter(({ title, guide }) => hasWords(`${guide} ${title}`, typed));
  const others = sections.filter((one) => !titled.includes(one) && hasWords(one.text, typed));
  return [...titled, ...others].slice(0, RESULTS_PER_GROUP).map(({ path, guide, title }) => ({
    group: "Documentation",
    title,
    hint: guide === title ? "" : guide,
    href: path,
  }));
}
