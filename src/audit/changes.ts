import { isDeepStrictEqual } from "node:util";

import { isRecord } from "../lib/fields.ts";

/** Limits of one value in an audit row: the characters of a text, and the items of a list. */
const TEXT_CHARS = 200;
const LIST_ITEMS = 20;

const SECRET_FIELD = /secret|password$|hash|sealed/;
const URL_FIELD = /_url$|_uris$/;

type FieldChanges = Readonly<Record<string, { readonly from: unknown; readonly to: unknown }>>;

/**
 * Returns the old and the new value of each changed field, for the details of an audit row (contract 3.8). Fields are
 * named as in the API. Secrets are omitted. User, query and fragment are removed from URLs, because they may contain a
 * secret.
 */
export function changesOf(fields: readonly string[], before: object, after: object): FieldChanges {
  const [old, current]: [FieldValues, FieldValues] = [{ ...before }, { ...after }];
  const changes: Record<string, { from: unknown; to: unknown }> = {};
  for (const field of fields) {
    const name = propertyOf(field);
    const [from, to] = [old[name], current[name]];
    if (SECRET_FIELD.test(field) || isDeepStrictEqual(from, to)) continue;
    changes[field] = { from: boundedValue(field, from), to: boundedValue(field, to) };
  }
  return changes;
}

/** Returns the fields that differ. A secret that was sent always counts as changed, because its value is not compared. */
export function changedFields(fields: readonly string[], before: object, after: object): string[] {
  const [old, current]: [FieldValues, FieldValues] = [{ ...before }, { ...after }];
  return fields.filter((field) => {
    const name = propertyOf(field);
    return SECRET_FIELD.test(field) || !isDeepStrictEqual(old[name], current[name]);
  });
}

/** Returns the details of an audit row about a change: the changed fields, and their values as `changesOf` does. */
export function changeDetails(fields: readonly string[], before: object, after: object) {
  const changed = changedFields(fields, before, after);
  return { fields: changed, changes: changesOf(changed, before, after) };
}

const propertyOf = (field: string): string =>
  field.replaceAll(/_(.)/g, (_, first: string) => first.toUpperCase());

type FieldValues = Readonly<Record<string, unknown>>;

function boundedValue(field: string, value: unknown): unknown {
  if (typeof value === "string") return textOf(URL_FIELD.test(field) ? addressOf(value) : value);
  if (isRecord(value))
    return Object.fromEntries(Object.entries(value).map(([k, one]) => [k, boundedValue(k, one)]));
  if (!Array.isArray(value)) return value ?? null;
  const items = value.slice(0, LIST_ITEMS).map((item) => boundedValue(field, item));
  return value.length > LIST_ITEMS ? [...items, `${value.length - LIST_ITEMS} more`] : items;
}

const textOf = (text: string): string =>
  text.length > TEXT_CHARS ? `${text.slice(0, TEXT_CHARS)}…` : text;

function addressOf(text: string): string {
  const url = URL.parse(text);
  if (url === null) return "…";
  return `${url.protocol}//${url.host}${url.pathname}${url.search === "" ? "" : "?…"}`;
}
