import { MAX_TEXT_BYTES } from "../http/body.ts";
import type { RuleErrors } from "../http/rules.ts";

/** The most bytes of an action in UTF-8, as PostgreSQL prints it. The checks of `inbox` have both limits, too. */
export const MAX_ACTION_BYTES = 1024 * 1024;

/** Returns the errors of an action whose texts or whole are too long, by fields below `at`. */
export function sizeErrors(at: string, action: unknown): RuleErrors {
  const errors: Record<string, string> = {};
  const bytes = measure(action, at, (field) => {
    errors[field] = `has a text of more than ${MAX_TEXT_BYTES} bytes`;
  });
  if (bytes > MAX_ACTION_BYTES) errors[at] = `has more than ${MAX_ACTION_BYTES} bytes`;
  return errors;
}

const bytesOf = (text: string) => Buffer.byteLength(text);

/**
 * Returns the bytes of a JSON value as PostgreSQL prints a `jsonb`, which has a space after each comma and colon. Names
 * each text that is too long by its field, or for a key by the field of its object.
 */
function measure(value: unknown, at: string, onLong: (field: string) => void): number {
  const check = (text: string) => {
    if (bytesOf(text) > MAX_TEXT_BYTES) onLong(at);
  };
  if (typeof value === "string") check(value);
  if (typeof value !== "object" || value === null) return bytesOf(JSON.stringify(value) ?? "");
  const entries = Object.entries(value).filter(([, one]) => one !== undefined);
  let bytes = 2 + 2 * Math.max(0, entries.length - 1);
  for (const [key, one] of entries) {
    if (!Array.isArray(value)) {
      check(key);
      bytes += bytesOf(JSON.stringify(key)) + 2;
    }
    bytes += measure(one, key.length > MAX_FIELD_CHARS ? at : `${at}.${key}`, onLong);
  }
  return bytes;
}

/** The most characters of a key that an error names. */
const MAX_FIELD_CHARS = 100;
