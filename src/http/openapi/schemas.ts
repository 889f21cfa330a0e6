import { isDeepStrictEqual } from "node:util";

import type { TSchema } from "@sinclair/typebox";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export type JsonObject = Record<string, Json>;

export interface Components {
  /** Schemas with a `title` stand here once and are referred to. */
  readonly schemas: Record<string, Json>;
  readonly responses: Record<string, Json>;
}

/**
 * A schema as JSON Schema 2020-12, which OpenAPI 3.1 takes as it is: without our own keywords, choices as `enum`. Two
 * schemas of one title are refused: what TypeBox derives from another keeps its title, and would be described as that.
 */
export function describeSchema(schema: TSchema, components: Components): Record<string, Json> {
  const { title } = schema;
  const described = plain(schema, components);
  if (title === undefined) return described;
  const known = (components.schemas[title] ??= described);
  if (!isDeepStrictEqual(known, described)) throw new Error(`Two schemas are titled ${title}.`);
  return { $ref: `#/components/schemas/${title}` };
}

const OWN_KEYWORDS = new Set([
  "characters",
  "contentType",
  "explain",
  "isKey",
  "noValidate",
  "problems",
  "repeatable",
  "title",
]);

function plain(schema: TSchema, components: Components): Record<string, Json> {
  const entries = Object.entries(schema).filter(([name]) => !OWN_KEYWORDS.has(name));
  const described = Object.fromEntries(
    entries.map(([name, value]) => [name, keyword(name, value, components)]),
  );
  Object.assign(described, schema["characters"]);
  return Array.isArray(schema["anyOf"]) ? asChoice(schema["anyOf"], described) : described;
}

function keyword(name: string, value: unknown, components: Components): Json {
  if (name === "properties" || name === "patternProperties")
    return Object.fromEntries(
      Object.entries(Object(value)).map(([key, one]) => [key, describe(one, components)]),
    );
  if (Array.isArray(value) && (name === "anyOf" || name === "allOf" || name === "oneOf"))
    return value.map((one: unknown) => describe(one, components));
  if (name === "items" || name === "additionalProperties") return describe(value, components);
  return JSON.parse(JSON.stringify(value));
}

function describe(value: unknown, components: Components): Json {
  return isSchema(value) ? describeSchema(value, components) : Boolean(value);
}

function isSchema(value: unknown): value is TSchema {
  return typeof value === "object" && value !== null;
}

/** `anyOf` of constants is an enumeration; OpenAPI tools show it as one. */
function asChoice(members: unknown[], described: Record<string, Json>): Record<string, Json> {
  const values = members.map((one) => {
    const { const: constant, type } = Object(one);
    return type === "null" ? null : constant;
  });
  if (values.includes(undefined)) return described;
  const { anyOf: _, ...rest } = described;
  const types = [...new Set(values.map((one) => (one === null ? "null" : typeOf(one))))];
  const [only] = types;
  return { type: types.length === 1 && only !== undefined ? only : types, enum: values, ...rest };
}

function typeOf(value: unknown): string {
  return typeof value === "number" ? "integer" : typeof value;
}
