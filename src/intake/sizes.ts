import { MAX_TEXT_BYTES } from "../http/body.ts";
import type { RuleErrors } from "../http/rules.ts";

/**
 * Maximum size of an action in bytes of UTF-8, in the form in which PostgreSQL prints it. The check constraints of
 * `inbox` contain the same limits.
 */
export const MAX_ACTION_BYTES = 1024 * 1024;

/** Returns the errors of an action that is too large or contains a text that is too long, by fields below `at`. */
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
 * Returns the size in bytes of a JSON value in the form in which PostgreSQL prints a `jsonb`, with a space after each
 * comma and colon. Calls `onLong` with the field of each text that is too long, and for a key that is too long, with
 * the field of the object that contains it.
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

/** Maximum number of characters of a key that an error names; for a longer key, it names the object around it. */
const MAX_FIELD_CHARS = 100;
