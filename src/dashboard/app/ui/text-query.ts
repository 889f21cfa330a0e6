/** The longest text that a list is searched for. */
const MAX_TEXT = 200;

/** What the API is asked for a text in the address; one that it would refuse is left out. */
export function textQuery(q: string | undefined): { readonly q?: string } {
  return q === undefined || q.length > MAX_TEXT ? {} : { q };
}
