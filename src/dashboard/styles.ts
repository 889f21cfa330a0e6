// Makes the style sheets of the dashboard, without what the library has in them and no page can show.
import { createHash } from "node:crypto";

import { bundleStyles } from "../lib/bundle.ts";

export interface Sheet {
  readonly name: string;
  readonly text: string;
}

/** Makes one sheet of some, which must be in the order in which the later win; its name carries a hash of its content. */
export async function styleSheet(name: string, paths: readonly string[]): Promise<Sheet> {
  const parts = await Promise.all(paths.map(bundleStyles));
  const text = slimmed(parts.join(""));
  const hash = createHash("sha256").update(text).digest("base64url").slice(0, 8);
  return { name: `${name}-${hash}.css`, text };
}

/** The library's factor of all sizes, which is 1; behind the parenthesis there may be no space, and behind a unit has to. */
const SCALED = /calc\((-?[\d.]+rem)\*var\(--mantine-scale\)\)(?=(.?))/g;
/** Of the library's colours those that no page names. */
export const UNUSED_COLORS = [
  "cyan",
  "grape",
  "green",
  "indigo",
  "lime",
  "orange",
  "pink",
  "violet",
] as const;
const UNUSED_VARIABLES = new RegExp(
  `--mantine-color-(?:${UNUSED_COLORS.join("|")})-[\\w-]+:[^;}]+;?`,
  "g",
);
/** What the library has styles for and no element of ours has; the tests look for it wherever they look at a page. */
export const NEVER_SET = [
  "dir=rtl",
  "data-full-screen",
  "data-inverted",
  "data-layout=alt",
  "data-mode=static",
  "data-orientation=vertical",
  "data-placement=left",
  "data-placement=right",
  "data-sticky",
  "data-striped",
  "data-variant=pills",
  "data-with-column-border",
  "data-with-table-border",
] as const;

/** Leaves out of the styles what no page can show. */
export const slimmed = (css: string) =>
  css
    .replace(SCALED, (_, size: string, next: string) => size + (/[\w.#("'-]/.test(next) ? " " : ""))
    .replace(UNUSED_VARIABLES, "")
    .replace(/([^{}]+)\{([^{}]*)\}/g, (_, selectors: string, body: string) => {
      const used = selectorsOf(selectors).filter((one) => !isNeverSeen(one));
      return used.length === 0 ? "" : `${used.join(",")}{${body}}`;
    })
    .replace(/@media[^{}]*\{\}/g, "");

/** Splits at the commas that stand in no parentheses. */
function selectorsOf(list: string): string[] {
  const found: string[] = [];
  let depth = 0;
  let from = 0;
  for (const { 0: sign, index } of list.matchAll(/[(),]/g)) {
    if (sign !== ",") depth += sign === "(" ? 1 : -1;
    else if (depth === 0) {
      found.push(list.slice(from, index));
      from = index + 1;
    }
  }
  return [...found, list.slice(from)];
}

/** From the inside out: what is in `:not()`, or one of several in `:where()`, may be missing. */
function isNeverSeen(selector: string): boolean {
  const alone = selector.replace(/:(?:where|is|has)\(([^(),]*)\)/g, "$1");
  if (alone !== selector) return isNeverSeen(alone);
  const outer = selector.replace(/:[\w-]+\([^()]*\)/g, "");
  if (outer !== selector) return isNeverSeen(outer);
  return NEVER_SET.some((attribute) => selector.includes(`[${attribute}]`));
}
