import {
  FormatRegistry,
  type StringOptions,
  type TSchema,
  type TString,
  Type,
} from "@sinclair/typebox";

import { parseInstant } from "../lib/clock.ts";

/**
 * Declares the schema of a text that PostgreSQL can store, of `min` to `max` characters, counted as code points like
 * in JSON Schema. TypeBox counts UTF-16 units, so a pattern checks the length. It excludes NUL, which a PostgreSQL text
 * cannot contain, and lone surrogates, which are not characters.
 */
export function storableText(
  [min, max]: Length,
  explain = `must be text of ${min} to ${max} characters, without NUL or broken ones`,
): TString {
  return textWithout("\\u0000", [min, max], explain);
}

/** Matches text that consists only of characters that are not visible. */
const INVISIBLE_TEXT = /^[\p{Z}\p{Cc}\p{Cf}\p{M}\p{DI}\u2800\ufffc]*$/u;
const LINE_FORMAT = "line";
FormatRegistry.Set(LINE_FORMAT, (text) => !INVISIBLE_TEXT.test(text));

/**
 * Declares the schema of a text of one line, such as a name. It excludes line breaks, other control characters (with
 * which a name could change the output of a terminal), characters that change the direction of the surrounding text,
 * and text without any visible character.
 */
export function lineText([min, max]: Length): TString {
  const explain = `must be one line of ${min} to ${max} characters, without control characters, and not blank`;
  const controls =
    "\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069";
  const line = textWithout(controls, [min, max], explain);
  // The OpenAPI description omits the format, which clients do not know.
  return { ...line, format: LINE_FORMAT, characters: { ...line["characters"], format: undefined } };
}

/** The name of a client, a token, a service or a second factor. */
export const shortName = {
  ...lineText([1, 100]),
  title: "ShortName",
  examples: ["Nightly export"],
};

type Length = readonly [min: number, max: number];

function textWithout(excluded: string, [min, max]: Length, explain: string): TString {
  const character = `(?:[^${excluded}\\ud800-\\udfff]|[\\ud800-\\udbff][\\udc00-\\udfff])`;
  // The OpenAPI description gets this simpler pattern: code generators drop a pattern that contains surrogates, and the
  // JSON of generated clients never contains half a surrogate pair.
  const characters = { minLength: min, maxLength: max, pattern: `^[^${excluded}]*$` };
  return Type.String({ pattern: `^${character}{${min},${max}}$`, characters, explain });
}

/** Declares the query parameter `q` of a list: a text that the listed rows contain, ignoring case (contract 2.4). */
export const searchText = (): TString => storableText([1, 200]);

const DATE_TIME = "date-time";
FormatRegistry.Set(DATE_TIME, (text) => parseInstant(text) !== undefined);

/**
 * Declares the schema of an instant in a request, in the format of contract 2.3. The handler reads it with
 * `parseInstant`.
 */
export function instantText(): TString {
  return Type.String({
    format: DATE_TIME,
    explain: "must be an ISO 8601 instant with an offset, such as 2026-06-01T12:00:00.000+00:00",
  });
}

/** The schema of an instant in a response. The row contains a `Date`, which `shown` converts (src/http/shown.ts). */
export interface TInstant extends TString {
  format: typeof DATE_TIME;
}

export function instantAnswer(): TInstant {
  // The format is given twice: to TypeBox, so that it is the first key in the API description, and to the TypeScript
  // type.
  return Object.assign(Type.String({ format: DATE_TIME }), { format: DATE_TIME } as const);
}

/**
 * Declares the schema of a secret, a token or a link in a response. A route that returns one requires a step-up
 * (contract 4.27). tests/integration/auth/step-up.test.ts finds these routes by the property `isSecret`.
 */
export const secretText = (options: StringOptions = {}): TString =>
  Type.String({ ...options, isSecret: true });

/**
 * Sets `isReceiver` in the schema of an address in a request if data is sent to the address, or if the address lets
 * others open pages, and in the schema of headers for it. A route that changes such a field requires a step-up; tests/integration/auth/step-up.test.ts
 * checks this.
 */
export const receiving = <T extends TSchema>(schema: T): T => ({ ...schema, isReceiver: true });

/** Declares a schema whose value may be null. */
export function orNull<T extends TSchema>(schema: T, options: { [name: string]: unknown } = {}) {
  return Type.Union([schema, Type.Null()], options);
}

const MAX_INTEGER = 2_147_483_647;

/** Declares the schema of the numeric id of a database row. */
export function rowId() {
  return Type.Integer({
    minimum: 1,
    maximum: MAX_INTEGER,
    explain: "must be a whole number above 0",
  });
}

/** Pattern of a ULID: Crockford base 32, as the package `ulid` produces it. */
export const ULID_PATTERN = "[0-7][0-9A-HJKMNP-TV-Z]{25}";

export function ulidText(): TString {
  return Type.String({
    pattern: `^${ULID_PATTERN}$`,
    explain: "must be a ULID of 26 characters",
  });
}

/**
 * Maximum number of parameters in a form or a query. No route defines as many, and no extension of RFC 6749 and no
 * identity provider sends as many.
 */
export const MAX_PARAMETERS = 64;

/** All values of each parameter in a form or a query, in the order in which they were sent. */
export type Parameters = ReadonlyMap<string, readonly string[]>;

/** Parses a form or a query in one pass; returns undefined if it has more than `MAX_PARAMETERS` parameters. */
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

const PATH = /^\w+:\/\/[^/?#]*(\/?[^?#]*?)\/?(?:[?#]|$)/;

/**
 * Returns the path of a request, without a trailing slash (contract 2.1). A URL parser is not used, because it rejects
 * some well-formed `Host` headers, such as `a.1`.
 */
export function pathOf({ url }: Pick<Request, "url">): string {
  return PATH.exec(url)?.[1] ?? "";
}

/**
 * Returns the query of a request as it was sent. It is cut from the text of the URL, so that the `Host` header, which
 * may contain any text, has no influence on it.
 */
export function queryOf({ url }: Pick<Request, "url">): string {
  const [path = ""] = url.split("#", 1);
  const at = path.indexOf("?");
  return at === -1 ? "" : path.slice(at + 1);
}
