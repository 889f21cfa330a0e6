/** The fields of an object by name. Their types are not known. */
export type Fields = Readonly<Record<string, unknown>>;

/** Returns an object so that its fields can be read. Null, undefined and primitive values have no fields. */
export function fieldsOf(value: unknown): Fields {
  return isObject(value) ? value : {};
}

/** Whether a value is an object with named fields, and not a list. */
export function isRecord(value: unknown): value is Fields {
  return isObject(value) && !Array.isArray(value);
}

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null;
}
