/** The longest text that a list is searched for. */
const MAX_TEXT = 200;

/** What the API is asked for a text in the address; one that it would refuse is left out. */
export function textQuery(q: string | undefined): { readonly q?: string } {
  return q === undefined || q.length > MAX_TEXT ? {} : { q };
}

/** What stands before a place in a text that is searched for, at the most. */
const BEFORE = 60;
/** So far into a text a place is in view without being cut. */
const IN_VIEW = 120;

/** Whether the text has what is searched for, in letters of either size. */
export function has(text: string, q: string): boolean {
  return text.toLowerCase().includes(q.toLowerCase());
}

/** The text from shortly before the first place of `q` on, where that would be out of view. */
export function excerpt(text: string, q: string): string {
  const at = text.toLowerCase().indexOf(q.toLowerCase());
  if (at <= IN_VIEW) return text;
  const from = text.indexOf(" ", at - BEFORE) + 1;
  return `… ${text.slice(from > 0 && from <= at ? from : at)}`;
}

interface Place {
  /** Where it begins in the text. */
  readonly from: number;
  readonly before: string;
  /** It is empty at the end of the text. */
  readonly found: string;
}

/** The text in its parts: what stands before each place of `q`, and that place as it is written there. */
export function placesIn(text: string, q = ""): readonly Place[] {
  const places: Place[] = [];
  let from = 0;
  const [lower, wanted] = [text.toLowerCase(), q.toLowerCase()];
  // Where a letter has another length in lower case, the places could not be told.
  if (wanted !== "" && lower.length === text.length)
    for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, from)) {
      const end = at + wanted.length;
      places.push({ from, before: text.slice(from, at), found: text.slice(at, end) });
      from = end;
    }
  return [...places, { from, before: text.slice(from), found: "" }];
}
