import { Problem } from "../lib/problem.ts";

/** Contract 2.7. What our schemas describe nests to four levels. */
export const MAX_DEPTH = 64;
/** As much as the longest text of a schema, of 20,000 characters, may take with each half of a character escaped. */
export const MAX_STRING_BYTES = 256 * 1024;
/** How many bytes of the limit of a body there are for each value in it: fuller than this is none that we describe. */
const BYTES_PER_VALUE = 64;

/** How many values, in lists and under names, a body of this limit may have. */
export const maxValues = (bodyLimit: number): number => bodyLimit / BYTES_PER_VALUE;

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Bytes → JSON value. Invalid UTF-8, malformed JSON and JSON beyond the bounds are the same 400; of duplicate keys the
 * last wins. The bounds keep what is done with a value as small as its bytes, before anybody knows who sent it.
 */
export function parseJson(raw: Uint8Array, bodyLimit: number): unknown {
  const excess = excessOf(raw, maxValues(bodyLimit));
  if (excess !== undefined) throw new Problem("invalid_json", { message: excess });
  try {
    return JSON.parse(utf8.decode(raw));
  } catch {
    throw new Problem("invalid_json");
  }
}

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Which bound the bytes are beyond, if they are JSON at all: looks at each of them once, up to there. */
function excessOf(raw: Uint8Array, values: number): string | undefined {
  let depth = 0;
  let seen = 0;
  for (let at = 0; at < raw.length; at++) {
    const byte = raw[at];
    if (byte === QUOTE) {
      const end = endOfString(raw, at + 1);
      if (end - at > MAX_STRING_BYTES) return "The request body has a text that is too long.";
      at = end;
    } else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      seen += 1;
      depth += 1;
      if (depth > MAX_DEPTH) return `The request body nests deeper than ${MAX_DEPTH} levels.`;
    } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) depth -= 1;
    else if (byte === COMMA) seen += 1;
    if (seen > values) return `The request body has more than ${values} values.`;
  }
  return undefined;
}

function endOfString(raw: Uint8Array, from: number): number {
  let at = from;
  while (at < raw.length && raw[at] !== QUOTE) at += raw[at] === BACKSLASH ? 2 : 1;
  return at;
}
