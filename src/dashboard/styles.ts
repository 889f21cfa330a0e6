// Builds the style sheets of the dashboard, without the rules of Mantine that match no element of the dashboard.
import { createHash } from "node:crypto";

import { bundleStyles } from "../lib/bundle.ts";

export interface Sheet {
  readonly name: string;
  readonly text: string;
}

/**
 * Bundles several style sheets into one, in the given order, because later CSS rules win. The name of the
 * result contains a hash of its content.
 */
export async function styleSheet(name: string, paths: readonly string[]): Promise<Sheet> {
  const parts = await Promise.all(paths.map(bundleStyles));
  const text = slimmed(parts.join(""));
  const hash = createHash("sha256").update(text).digest("base64url").slice(0, 8);
  return { name: `${name}-${hash}.css`, text };
}

/**
 * Matches Mantine's multiplications by the global scale factor, which is 1 here, so that only the size remains.
 * The next character is captured because a space must follow the size only if a value follows.
 */
const SCALED = /calc\((-?[\d.]+rem)\*var\(--mantine-scale\)\)(?=(.?))/g;
/** Mantine's colours that no page uses. Their CSS variables are removed. */
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
/**
 * Attributes that Mantine has style rules for and that no element of the dashboard has. The browser tests check
 * this on every page that they open.
 */
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

/** Removes the CSS rules that cannot match on any page, and the variables of unused colours. */
export const slimmed = (css: string) =>
  css
    .replace(SCALED, (_, size: string, next: string) => size + (/[\w.#("'-]/.test(next) ? " " : ""))
    .replace(UNUSED_VARIABLES, "")
    .replace(/([^{}]+)\{([^{}]*)\}/g, (_, selectors: string, body: string) => {
      const used = selectorsOf(selectors).filter((one) => !isNeverSeen(one));
      return used.length === 0 ? "" : `${used.join(",")}{${body}}`;
    })
    .replace(/@media[^{}]*\{\}/g, "");

/** Splits a selector list at its top-level commas, not at commas inside parentheses. */
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

/**
 * Returns whether a selector can never match an element of the dashboard. Functional selectors are resolved
 * from the inside out: an attribute of `NEVER_SET` inside `:not()`, or as one of several alternatives in
 * `:where()`, does not count.
 */
function isNeverSeen(selector: string): boolean {
  const alone = selector.replace(/:(?:where|is|has)\(([^(),]*)\)/g, "$1");
  if (alone !== selector) return isNeverSeen(alone);
  const outer = selector.replace(/:[\w-]+\([^()]*\)/g, "");
  if (outer !== selector) return isNeverSeen(outer);
  return NEVER_SET.some((attribute) => selector.includes(`[${attribute}]`));
}
