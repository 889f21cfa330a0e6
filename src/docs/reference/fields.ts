import { at, nameOf, propertiesOf, schemasIn, schemasOf, type Schema } from "./operations.ts";

/** The schemas of the document by name. */
export type Schemas = Schema;

/** Escapes a text for HTML, and shows the parts between backticks as code. */
export function inline(text: string): string {
  return escape(text).replaceAll(/`([^`]+)`/g, "<code>$1</code>");
}

export function escape(text: string): string {
  const marks: Readonly<Record<string, string>> = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
  };
  return text.replaceAll(/[&<>"]/g, (one) => marks[one] ?? one);
}

/**
 * Renders the fields of an object as a list. The names of fields of nested objects are paths, such as `review.rate`.
 */
export function fieldRows(schema: Schema, schemas: Schemas): string {
  const rows = rowsOf(schema, schemas, "");
  return rows.length === 0 ? "" : `<dl>${rows.join("")}</dl>`;
}

export interface ShownField {
  readonly name: string;
  readonly schema: Schema;
  readonly isRequired: boolean;
}

export function fieldRow({ name, schema, isRequired }: ShownField, schemas: Schemas): string {
  const { default: preset } = schema;
  const description = schema["description"] ?? at(schemas, nameOf(schema))["description"];
  const about = [
    ...(typeof description === "string" ? [inline(description)] : []),
    ...(preset === undefined ? [] : [`Default: <code>${escape(JSON.stringify(preset))}</code>.`]),
  ];
  const facts = [typeOf(schema, schemas), ...limitsOf(schema), ...(isRequired ? ["required"] : [])];
  return `<dt><code>${escape(name)}</code> <span>${facts.join(", ")}</span></dt><dd>${about.join(" ")}</dd>`;
}

/** Returns the names of the objects in a value that have a section of their own, including nested objects. */
export function objectsIn(value: unknown, schemas: Schemas): string[] {
  return [...schemasIn(value, schemas)].filter((name) => isObject(at(schemas, name), schemas));
}

/** Returns the type of a value in words, with links to the sections of objects. */
export function typeOf(schema: Schema, schemas: Schemas): string {
  const name = nameOf(schema);
  if (name !== "") {
    const target = at(schemas, name);
    if (!isObject(target, schemas)) return typeOf(target, schemas);
    return `<a href="#object-${name}">${name}</a>`;
  }
  if (schema["const"] !== undefined) return code(schema["const"]);
  if (Array.isArray(schema["enum"])) return schema["enum"].map(code).join(" | ");
  const choices = [...schemasOf(schema["oneOf"]), ...schemasOf(schema["anyOf"])];
  if (choices.length > 0) return choices.map((one) => typeOf(one, schemas)).join(" | ");
  const [only] = schemasOf(schema["allOf"]);
  if (only !== undefined) return typeOf(only, schemas);
  const types = Array.isArray(schema["type"]) ? schema["type"] : [schema["type"] ?? "any value"];
  const items = at(schema, "items");
  const words = types.map((type) => {
    if (type === "array") return `list of ${typeOf(items, schemas)}`;
    return type === "string" && schema["format"] === "date-time" ? "string (date-time)" : type;
  });
  return words.join(" | ");
}

const code = (value: unknown): string =>
  `<code>${escape(typeof value === "string" ? value : JSON.stringify(value))}</code>`;

/** Returns the limits of a value as texts. */
function limitsOf(schema: Schema): string[] {
  const range = (least: string, most: string, unit: string) => {
    const [from, to] = [schema[least], schema[most]].map((one) =>
      typeof one === "number" && one < 2_147_483_647 ? one.toLocaleString("en") : undefined,
    );
    if (to === undefined)
      return from === undefined || unit === "" ? [] : [`at least ${from}${unit}`];
    return [from === undefined ? `at most ${to}${unit}` : `${from} to ${to}${unit}`];
  };
  return [
    ...range("minLength", "maxLength", " characters"),
    ...range("minItems", "maxItems", " items"),
    ...range("minimum", "maximum", ""),
  ];
}

/**
 * Returns whether a schema describes an object with fields. Such schemas have a section; other types are described in
 * place.
 */
function isObject(schema: Schema, schemas: Schemas): boolean {
  const name = nameOf(schema);
  if (name !== "") return isObject(at(schemas, name), schemas);
  if (schema["properties"] !== undefined || schema["allOf"] !== undefined) return true;
  const choices = [...schemasOf(schema["oneOf"]), ...schemasOf(schema["anyOf"])];
  return choices.some((one) => isObject(one, schemas));
}

function rowsOf(schema: Schema, schemas: Schemas, path: string): string[] {
  const name = nameOf(schema);
  if (name !== "" && path === "") return rowsOf(at(schemas, name), schemas, path);
  const parts = schemasOf(schema["allOf"]).flatMap((one) => rowsOf(one, schemas, path));
  const own = propertiesOf(schema).flatMap((one) => {
    const shown = `${path}${one.name}`;
    const [inner, mark] = innerOf(one.schema);
    const rows = [fieldRow({ ...one, name: shown }, schemas)];
    return inner === undefined ? rows : [...rows, ...rowsOf(inner, schemas, `${shown}${mark}.`)];
  });
  return [...parts, ...own];
}

/** Returns the object inside a field that has no section. The second value is `[]` if the field is a list. */
function innerOf(schema: Schema): [Schema | undefined, string] {
  if (schema["properties"] !== undefined) return [schema, ""];
  const items = at(schema, "items");
  if (items["properties"] !== undefined) return [items, "[]"];
  const [one] = schemasOf(schema["anyOf"]);
  return [one?.["properties"] === undefined ? undefined : one, ""];
}
