import { isDeepStrictEqual } from "node:util";

import { Type, type TSchema } from "@sinclair/typebox";

import { FIELDS } from "./fields.ts";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export type JsonObject = Record<string, Json>;

export interface Components {
  /** Schemas with a `title`; each occurs here once, and other parts of the document reference it. */
  readonly schemas: Record<string, Json>;
  readonly responses: Record<string, Json>;
  readonly parameters: Record<string, Json>;
  readonly requestBodies: Record<string, Json>;
}

/**
 * Stores a value that several operations share as a component, and returns its reference. The component gets the
 * first of the names that does not have another value.
 */
export function shared(
  components: Components,
  kind: keyof Components,
  names: readonly string[],
  value: JsonObject,
): JsonObject {
  const isFree = (name: string) => isDeepStrictEqual(components[kind][name] ?? value, value);
  const name = names.find(isFree);
  if (name === undefined) return value;
  components[kind][name] = value;
  return { $ref: `#/components/${kind}/${name}` };
}

/** Describes a JSON response of a route that describes its responses itself. */
export function jsonResponse(description: string, schema: TSchema) {
  return { description, content: { "application/json": { schema } } };
}

/**
 * Describes a schema as JSON Schema 2020-12, which OpenAPI 3.1 uses. Custom keywords are removed, and choices become
 * `enum`. Throws if two different schemas have the same title, because a schema that TypeBox derives from another
 * keeps its title and would be described as the original.
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
  "extends",
  "isKey",
  "isReceiver",
  "isSecret",
  "noValidate",
  "problems",
  "repeatable",
  "title",
]);

/**
 * Returns whether the description contains a keyword. Permitted additional properties are omitted: they are the
 * default of JSON Schema, unlike Elysia. A constant boolean is described by its type alone, because openapi-generator
 * makes text of it in Java.
 */
function isDescribed(name: string, value: unknown): boolean {
  if (name === "additionalProperties") return value !== true;
  return !OWN_KEYWORDS.has(name) && !(name === "const" && typeof value === "boolean");
}

function plain(schema: TSchema, components: Components): Record<string, Json> {
  const { extends: base, ...whole } = schema;
  if (isSchema(base)) return extension(base, whole, components);
  const entries = Object.entries(schema).filter(([name, value]) => isDescribed(name, value));
  const described = Object.fromEntries(
    entries.map(([name, value]) => [name, keyword(name, value, components)]),
  );
  Object.assign(described, schema["characters"]);
  return Array.isArray(schema["anyOf"]) ? asChoice(schema["anyOf"], described) : described;
}

/** Describes a schema that `extends` another schema as a reference to that schema and the additional fields. */
function extension(base: TSchema, whole: JsonObject, components: Components): Record<string, Json> {
  const isNew = (name: string) => base["properties"][name] === undefined;
  const added = Object.entries(Object(whole["properties"])).filter(([name]) => isNew(name));
  const needed = Array.isArray(whole["required"]) ? whole["required"] : [];
  const required = needed.filter((name) => typeof name === "string" && isNew(name));
  const own: TSchema = {
    ...Type.Object({}),
    properties: Object.fromEntries(added),
    ...(required.length > 0 && { required }),
  };
  const { description, examples } = whole;
  return {
    ...(description !== undefined && { description }),
    ...(examples !== undefined && { examples }),
    allOf: [describeSchema(base, components), plain(own, components)],
  };
}

function keyword(name: string, value: unknown, components: Components): Json {
  if (name === "properties")
    return Object.fromEntries(
      Object.entries(Object(value)).map(([key, one]) => [
        key,
        withDescription(key, one, components),
      ]),
    );
  if (name === "patternProperties")
    return Object.fromEntries(
      Object.entries(Object(value)).map(([key, one]) => [key, describe(one, components)]),
    );
  if (Array.isArray(value) && (name === "anyOf" || name === "allOf" || name === "oneOf"))
    return value.map((one: unknown) => describe(one, components));
  if (name === "items" || name === "additionalProperties") return describe(value, components);
  return JSON.parse(JSON.stringify(value));
}

/** Adds the general description of a field's name, unless the field or its component has a description. */
function withDescription(name: string, value: unknown, components: Components): Json {
  const described = describe(value, components);
  const meaning = FIELDS[name];
  if (typeof described !== "object" || described === null || Array.isArray(described))
    return described;
  if (meaning === undefined || "description" in described || "$ref" in described) return described;
  return { ...described, description: meaning };
}

function describe(value: unknown, components: Components): Json {
  return isSchema(value) ? describeSchema(value, components) : Boolean(value);
}

function isSchema(value: unknown): value is TSchema {
  return typeof value === "object" && value !== null;
}

/**
 * Shortens `anyOf`, because tools show the short forms better: constants become an `enum`, and the choice of a plain
 * type or null becomes a list of two types.
 */
function asChoice(members: unknown[], described: Record<string, Json>): Record<string, Json> {
  const { anyOf: choices, ...rest } = described;
  const values = members.map((one) => {
    const { const: constant, type } = Object(one);
    return type === "null" ? null : constant;
  });
  if (values.includes(undefined)) {
    const [only, none, ...more] = Array.isArray(choices) ? choices.map((one) => Object(one)) : [];
    const isOrNull = more.length === 0 && none?.type === "null" && typeof only?.type === "string";
    if (!isOrNull || "enum" in only) return described;
    return { ...only, type: [only.type, "null"], ...rest };
  }
  const types = [...new Set(values.map((one) => (one === null ? "null" : typeOf(one))))];
  const [only] = types;
  return { type: types.length === 1 && only !== undefined ? only : types, enum: values, ...rest };
}

function typeOf(value: unknown): string {
  return typeof value === "number" ? "integer" : typeof value;
}
