/** The longest search text that the API accepts. */
const MAX_TEXT = 200;

/** Returns the query parameter for a search text from the address. A text that the API would reject is left out. */
export function textQuery(q: string | undefined): { readonly q?: string } {
  return q === undefined || q.length > MAX_TEXT ? {} : { q };
}

/** The highest number of characters before the first match in an excerpt. */
const BEFORE = 60;
/** Matches up to this index are visible without an excerpt. */
const IN_VIEW = 120;

/** Returns whether the text contains the search text, ignoring case. */
export function has(text: string, q: string): boolean {
  return text.toLowerCase().includes(q.toLowerCase());
}

/** Cuts the beginning of a text if its first match would be out of view. */
export function excerpt(text: string, q: string): string {
  const at = text.toLowerCase().indexOf(q.toLowerCase());
  if (at <= IN_VIEW) return text;
  const from = text.indexOf(" ", at - BEFORE) + 1;
  return `… ${text.slice(from > 0 && from <= at ? from : at)}`;
}

interface TextMatch {
  /** The index of the part in the text. */
  readonly from: number;
  readonly before: string;
  /** The matched text in its original case; empty in the last part. */
  readonly found: string;
}

/** Splits a text at all matches of `q`: each part is the text before a match and the match. */
export function matchesIn(text: string, q = ""): readonly TextMatch[] {
  const matches: TextMatch[] = [];
  let from = 0;
  const [lower, lowerQuery] = [text.toLowerCase(), q.toLowerCase()];
  // The indexes would be wrong if a letter changes its length in lower case, such as "İ".
  if (lowerQuery !== "" && lower.length === text.length)
    for (let at = lower.indexOf(lowerQuery); at >= 0; at = lower.indexOf(lowerQuery, from)) {
      const end = at + lowerQuery.length;
      matches.push({ from, before: text.slice(from, at), found: text.slice(at, end) });
      from = end;
    }
  return [...matches, { from, before: text.slice(from), found: "" }];
}
