import { FormatRegistry, type TString, Type } from "@sinclair/typebox";

import { parseInstant } from "../lib/clock.ts";

/** No NUL, which Postgres text cannot hold, and no half of a surrogate pair, which is no character. */
const STORABLE = "(?:[^\\u0000\\ud800-\\udfff]|[\\ud800-\\udbff][\\udc00-\\udfff])";

/**
 * Text that may be stored, of `min` to `max` characters: code points, as people and JSON Schema count. TypeBox counts
 * the units of UTF-16, so the pattern does it.
 */
export function storableText(
  [min, max]: readonly [min: number, max: number],
  explain = `must be text of ${min} to ${max} characters, without NUL or broken ones`,
): TString {
  // Generators drop a pattern with surrogates; no JSON that they write has half a pair.
  const characters = { minLength: min, maxLength: max, pattern: "^[^\\u0000]*$" };
  return Type.String({ pattern: `^${STORABLE}{${min},${max}}$`, characters, explain });
}

/** The `q` of a list: text that its rows have somewhere, in upper or lower case (contract 2.4). */
export const searchText = (): TString => storableText([1, 200]);

const INSTANT = "date-time";
FormatRegistry.Set(INSTANT, (text) => parseInstant(text) !== undefined);

/** An instant as contract 2.3 writes it; read it with `parseInstant`. */
export function instantText(): TString {
  return Type.String({
    format: INSTANT,
    explain: "must be an ISO 8601 instant with an offset, such as 2026-06-01T12:00:00.000+00:00",
  });
}

/** An instant in an answer. */
export function instantAnswer(): TString {
  return Type.String({ format: INSTANT });
}

const MAX_INTEGER = 2_147_483_647;

/** An id of an integer column. */
export function rowId() {
  return Type.Integer({
    minimum: 1,
    maximum: MAX_INTEGER,
    explain: "must be a whole number above 0",
  });
}

/** Crockford base 32, as `ulid` writes it. */
export const ULID_PATTERN = "[0-7][0-9A-HJKMNP-TV-Z]{25}";

export function ulidText(): TString {
  return Type.String({
    pattern: `^${ULID_PATTERN}$`,
    explain: "must be a ULID of 26 characters",
  });
}

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
