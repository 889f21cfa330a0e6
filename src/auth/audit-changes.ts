import { isDeepStrictEqual } from "node:util";

/** The most characters of a text, and the most items of a list, that an audit row has of a value. */
const TEXT_CHARS = 200;
const LIST_ITEMS = 20;

const SECRET = /secret|password|hash|sealed/;
const ADDRESS = /_url$|_uris$/;

type Changes = Readonly<Record<string, { readonly from: unknown; readonly to: unknown }>>;

/**
 * Returns the old and the new value of each field that differs, for the details of an audit row (contract 3.8). Fields
 * are named as in the API. Secrets are left out. Addresses lose user, query and fragment, which may hold a secret.
 */
export function changesOf(fields: readonly string[], before: object, after: object): Changes {
  const [old, current]: [Values, Values] = [{ ...before }, { ...after }];
  const changes: Record<string, { from: unknown; to: unknown }> = {};
  for (const field of fields) {
    const name = field.replaceAll(/_(.)/g, (_, first: string) => first.toUpperCase());
    const [from, to] = [old[name], current[name]];
    if (SECRET.test(field) || isDeepStrictEqual(from, to)) continue;
    changes[field] = { from: bounded(field, from), to: bounded(field, to) };
  }
  return changes;
}

type Values = Readonly<Record<string, unknown>>;

function bounded(field: string, value: unknown): unknown {
  if (typeof value === "string") return textOf(ADDRESS.test(field) ? addressOf(value) : value);
  if (!Array.isArray(value)) return value ?? null;
  const items = value.slice(0, LIST_ITEMS).map((item) => bounded(field, item));
  return value.length > LIST_ITEMS ? [...items, `${value.length - LIST_ITEMS} more`] : items;
}

const textOf = (text: string): string =>
  text.length > TEXT_CHARS ? `${text.slice(0, TEXT_CHARS)}…` : text;

function addressOf(text: string): string {
  const url = URL.parse(text);
  if (url === null) return "…";
  return `${url.protocol}//${url.host}${url.pathname}${url.search === "" ? "" : "?…"}`;
}
