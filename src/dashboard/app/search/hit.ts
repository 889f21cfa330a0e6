/** Something that was found, and where it is. */
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
  /** Below `/dashboard`; a guide is below `/docs`, and opens beside it. */
  readonly href: string;
}

export const isGuide = ({ href }: Hit): boolean => href.startsWith("/docs/");

/** Whether each word that was typed is somewhere in it. */
export function hasWords(text: string, typed: string): boolean {
  const lower = text.toLowerCase();
  return typed
    .toLowerCase()
    .split(/\s+/)
    .every((word) => lower.includes(word));
}

/** So many of a kind. */
export const EACH = 5;

/** A section of a guide. */
export interface Section {
  readonly path: string;
  readonly guide: string;
  readonly title: string;
  readonly text: string;
}

/** Those whose titles fit come first, then those that have the words anywhere. */
export function guidesLike(sections: readonly Section[], typed: string): Hit[] {
  const titled = sections.filter(({ title, guide }) => hasWords(`${guide} ${title}`, typed));
  const others = sections.filter((one) => !titled.includes(one) && hasWords(one.text, typed));
  return [...titled, ...others].slice(0, EACH).map(({ path, guide, title }) => ({
    group: "Documentation",
    title,
    hint: guide === title ? "" : guide,
    href: path,
  }));
}
