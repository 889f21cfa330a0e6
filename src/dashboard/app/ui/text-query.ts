/** Maximum length in characters of a search text that the API accepts. */
const MAX_QUERY_CHARS = 200;

/** Returns the `q` query parameter for a search text from the address. A text that the API would reject is left out. */
export function textQuery(q: string | undefined): { readonly q?: string } {
  return q === undefined || q.length > MAX_QUERY_CHARS ? {} : { q };
}

/** Maximum number of characters before the first match in an excerpt. */
const CHARS_BEFORE_MATCH = 60;
/** Character index up to which a match is visible without an excerpt. */
const CHARS_IN_VIEW = 120;

/** Returns whether the text contains the search text, ignoring case. */
export function has(text: string, q: string): boolean {
  return text.toLowerCase().includes(q.toLowerCase());
}

/** Returns whether the text contains every word of the search text, ignoring case. */
export function hasWords(text: string, typed: string): boolean {
  const lower = text.toLowerCase();
  const words = typed.toLowerCase().split(/\s+/);
  return words.every((word) => lower.includes(word));
}

/** Cuts off the beginning of a text if the first match of the search text would otherwise be out of view. */
export function excerpt(text: string, q: string): string {
  const at = text.toLowerCase().indexOf(q.toLowerCase());
  if (at <= CHARS_IN_VIEW) return text;
  const from = text.indexOf(" ", at - CHARS_BEFORE_MATCH) + 1;
  return `… ${text.slice(from > 0 && from <= at ? from : at)}`;
}

interface TextMatch {
  /** Character index in the text at which this part begins. */
  readonly from: number;
  readonly before: string;
  /** Matched characters in their original case; empty in the last part. */
  readonly found: string;
}

/** Splits a text at all matches of `q`. Each part consists of the text before a match and the match itself. */
export function matchesIn(text: string, q = ""): readonly TextMatch[] {
  const matches: TextMatch[] = [];
  let from = 0;
  const [lower, lowerQuery] = [text.toLowerCase(), q.toLowerCase()];
  // Skips the search if lower case changes the length of the text, as with "İ", because the indexes would be wrong.
  if (lowerQuery !== "" && lower.length === text.length)
    for (let at = lower.indexOf(lowerQuery); at >= 0; at = lower.indexOf(lowerQuery, from)) {
      const end = at + lowerQuery.length;
      matches.push({ from, before: text.slice(from, at), found: text.slice(at, end) });
      from = end;
    }
  return [...matches, { from, before: text.slice(from), found: "" }];
}
