/** More than any route, RFC 6749 with its extensions, or an identity provider sends. */
export const MAX_PARAMETERS = 64;

/** Name → everything that was given under it, in order. */
export type Parameters = ReadonlyMap<string, readonly string[]>;

/** Reads a form or a query in one pass; undefined where it has more parameters than the cap. */
export function readParameters(text: string): Parameters | undefined {
  if (text.split("&", MAX_PARAMETERS + 1).length > MAX_PARAMETERS) return undefined;
  const values = new Map<string, string[]>();
  for (const [name, value] of new URLSearchParams(text)) {
    const earlier = values.get(name);
    if (earlier === undefined) values.set(name, [value]);
    else earlier.push(value);
  }
  return values;
}

const PATH = /^\w+:\/\/[^/?#]*([^?#]*)/;

/** The path of a request, whether or not a URL may have the `Host` that it names: `a.1` is none, and yet well-formed. */
export function pathOf({ url }: Pick<Request, "url">): string {
  return PATH.exec(url)?.[1] ?? "";
}

/** The query of a request as it was sent. What `Host` says takes no part in it: anybody may write anything there. */
export function queryOf({ url }: Pick<Request, "url">): string {
  const [path = ""] = url.split("#", 1);
  const at = path.indexOf("?");
  return at === -1 ? "" : path.slice(at + 1);
}
