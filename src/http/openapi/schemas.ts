import { isDeepStrictEqual } from "node:util";

import { Type, type TSchema } from "@sinclair/typebox";

import { fieldsOf } from "../../lib/fields.ts";
import { FIELDS } from "./fields.ts";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export type JsonObject = Record<string, Json>;

/** Returns a JSON value as an object; an empty one if it is null, a list or a primitive value. */
export function objectIn(value: Json | undefined): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
}

export interface Components {
  /** Schemas with a `title`. Each occurs once here, and other parts of the document reference it. */
  readonly schemas: Record<string, Json>;
  readonly responses: Record<string, Json>;
  readonly parameters: Record<string, Json>;
  readonly requestBodies: Record<string, Json>;
}

/**
 * Stores a value that several operations share as a component, and returns its reference. The component gets the first
 * of the names that is free or already stands for the same value.
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
 * Returns whether the description contains a keyword. `additionalProperties: true` is omitted, because it is the
 * default of JSON Schema, although not of Elysia. A constant boolean is described by its type alone, because
 * openapi-generator turns it into text in Java.
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
  const added = Object.entries(objectIn(whole["properties"])).filter(([name]) => isNew(name));
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
      Object.entries(fieldsOf(value)).map(([key, one]) => [
        key,
        withDescription(key, one, components),
      ]),
    );
  if (name === "patternProperties")
    return Object.fromEntries(
      Object.entries(fieldsOf(value)).map(([key, one]) => [key, describe(one, components)]),
    );
  if (Array.isArray(value) && (name === "anyOf" || name === "allOf" || name === "oneOf"))
    return value.map((one: unknown) => describe(one, components));
  if (name === "items" || name === "additionalProperties") return describe(value, components);
  return JSON.parse(JSON.stringify(value));
}

/** Adds the general description of a field's name, unless the field or its component has its own description. */
function withDescription(name: string, value: unknown, components: Components): Json {
  const described = describe(value, components);
  const meaning = FIELDS[name];
  if (typeof described !== "object" || described === null || Array.isArray(described))
    return described;
  if (meaning === undefined || "description" in described || "$ref" in described) return described;
  return { ...described, description: meaning };
}

/** Describes a schema; `true` and `false` are schemas, too. */
export function describe(value: unknown, components: Components): Json {
  return isSchema(value) ? describeSchema(value, components) : Boolean(value);
}

function isSchema(value: unknown): value is TSchema {
  return typeof value === "object" && value !== null;
}

/**
 * Shortens `anyOf`, because tools display the short forms better: constants become an `enum`, and a choice between a
 * plain type and null becomes a list of two types.
 */
function asChoice(members: TSchema[], described: Record<string, Json>): Record<string, Json> {
  const { anyOf: choices, ...rest } = described;
  const values = members.flatMap(({ const: constant, type }): Json[] => {
    if (type === "null") return [null];
    return constant === undefined ? [] : [constant];
  });
  if (values.length < members.length) {
    const [only = {}, none, ...more] = Array.isArray(choices) ? choices.map(objectIn) : [];
    const { type } = only;
    const isOrNull = more.length === 0 && none?.["type"] === "null" && typeof type === "string";
    if (!isOrNull || "enum" in only) return described;
    return { ...only, type: [type, "null"], ...rest };
  }
  const types = [...new Set(values.map((one) => (one === null ? "null" : typeOf(one))))];
  const [only] = types;
  return { type: types.length === 1 && only !== undefined ? only : types, enum: values, ...rest };
}

function typeOf(value: unknown): string {
  return typeof value === "number" ? "integer" : typeof value;
}
