import { hasWords } from "../ui/text-query.ts";

/** Result of the search dialog, with the page that it links to. */
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
  /** Path of the page below `/dashboard`. Guides have a path below `/docs` and open in a new tab. */
  readonly href: string;
}

export const isGuide = ({ href }: Hit): boolean => href.startsWith("/docs/");

/** Maximum number of search results per group. */
export const RESULTS_PER_GROUP = 5;

/** Section of a guide, as the search index `/docs/search.json` lists it. */
export interface Section {
  readonly path: string;
  readonly guide: string;
  readonly title: string;
  readonly text: string;
}

/**
 * Finds sections of guides that contain every word of the search text. Matches in section titles come before
 * matches in the section text.
 */
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
