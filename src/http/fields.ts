import {
  Type,
  TypeGuard,
  type Static,
  type TObject,
  type TSchema,
  type TUnsafe,
} from "@sinclair/typebox";
import { TypeCompiler, type TypeCheck, type ValueError } from "@sinclair/typebox/compiler";
import { ValueErrorType } from "@sinclair/typebox/errors";

import { isRecord } from "../lib/fields.ts";
import { invalid, type FieldErrors } from "../lib/problem.ts";
import { MAX_PARAMETERS, readParameters } from "./text.ts";

const compiledSchemas = new WeakMap<TSchema, TypeCheck<TSchema>>();

/**
 * A value without its invalid parts, at every level of nested objects and arrays. A malformed field is present as
 * undefined and a missing field is absent, so that a rule can distinguish the two cases with `in`.
 */
export type ValidParts<T> = T extends readonly (infer E)[]
  ? readonly (ValidParts<E> | undefined)[]
  : T extends object
    ? { readonly [K in keyof T]?: ValidParts<T[K]> | undefined }
    : T;

/**
 * Result of a validation: the value if it is valid; otherwise all field errors by path, and the valid parts of the
 * value.
 */
export type Examined<T> =
  | { readonly value: T }
  | {
      readonly fieldErrors: FieldErrors;
      /** The valid parts of the value; undefined if the value as a whole is malformed. */
      readonly sound: ValidParts<T> | undefined;
    };

export function validPartsOf<T>(examined: Examined<T>): T | ValidParts<T> | undefined {
  return "value" in examined ? examined.value : examined.sound;
}

/**
 * Validates a value completely: a 422 names all invalid fields together, by paths such as `events.3.review.rate`
 * (contract 2.5).
 */
export function examine<T extends TSchema>(schema: T, value: unknown): Examined<Static<T>> {
  let checker = compiledSchemas.get(schema);
  if (checker === undefined) compiledSchemas.set(schema, (checker = TypeCompiler.Compile(schema)));
  if (checker.Check(value)) return { value };
  // The object has no prototype, so that fields named `constructor` or `__proto__` behave like any other field.
  const fieldErrors: FieldErrors = Object.create(null);
  const paths = new Set<string>();
  const { known, unknown } = splitUnknown(schema, value);
  const nameUnknown = () => {
    for (const name of unknown.splice(0))
      fieldErrors[fieldAt(`/${escaped(name)}`)] = [UNKNOWN_FIELD];
  };
  for (const error of allErrors(checker.Errors(known))) {
    // Errors are kept in the order in which the checker would report them: missing fields first, then unknown fields,
    // then errors inside fields.
    if (!isMissing(error)) nameUnknown();
    paths.add(error.path);
    const field = fieldAt(error.path);
    // Only the first error of a field is kept: a missing field, for example, is also reported as "not a string".
    fieldErrors[field] ??= [explain(error)];
  }
  nameUnknown();
  // The cast is safe, because the parts without an error have the type of the schema.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return { fieldErrors, sound: without(known, paths) as ValidParts<Static<T>> | undefined };
}

/**
 * Replaces the error of an object that may also be null by the errors of its fields, so that the response names these
 * fields.
 */
function* allErrors(errors: Iterable<ValueError>): Iterable<ValueError> {
  for (const error of errors) {
    const { anyOf: members } = error.schema;
    const at =
      error.type === ValueErrorType.Union && isRecord(error.value) && Array.isArray(members)
        ? members.findIndex((one) => TypeGuard.IsObject(one))
        : -1;
    const inner = error.errors[at];
    if (inner === undefined) yield error;
    else yield* allErrors(inner);
  }
}

const UNKNOWN_FIELD = "is not a known field";

/** Returns whether a field of the value itself is missing, rather than a field of a nested object. */
function isMissing({ type, path }: ValueError): boolean {
  return type === ValueErrorType.ObjectRequiredProperty && path.lastIndexOf("/") === 0;
}

/** Converts a JSON pointer to a field path of the error response. */
const fieldAt = (pointer: string): string => pointer.slice(1).replaceAll("/", ".") || "body";

/**
 * Separates the known fields of an object from the names of unknown fields, if the schema forbids unknown fields.
 * Otherwise a client could send thousands of unknown fields, and the checker would create several objects for each.
 */
function splitUnknown(schema: TSchema, value: unknown): { known: unknown; unknown: string[] } {
  if (!TypeGuard.IsObject(schema) || schema.additionalProperties !== false || !isRecord(value))
    return { known: value, unknown: [] };
  const isKnown = (name: string) => Object.hasOwn(schema.properties, name);
  const fields = Object.entries(value);
  return {
    known: Object.fromEntries(fields.filter(([name]) => isKnown(name))),
    unknown: fields.flatMap(([name]) => (isKnown(name) ? [] : [name])),
  };
}

/** Escapes a reference token of a JSON pointer (RFC 6901, 3). */
const escaped = (step: string): string => step.replaceAll("~", "~0").replaceAll("/", "~1");

/** Validates a part of a body with `examine`. The paths of its errors get the prefix, such as `events.3.`. */
export function examineUnder<T extends TSchema>(
  prefix: string,
  schema: T,
  value: unknown,
): Examined<Static<T>> {
  const examined = examine(schema, value);
  if ("value" in examined) return examined;
  const fieldErrors = Object.entries(examined.fieldErrors).map(([field, texts]) => [
    // The error path `body` means that the part itself is malformed, rather than one of its fields.
    field === "body" && prefix !== "" ? prefix.slice(0, -1) : prefix + field,
    texts,
  ]);
  return { ...examined, fieldErrors: Object.fromEntries(fieldErrors) };
}

/**
 * Returns the value without the parts at these JSON pointers. Only the parents of such parts are visited and copied, so
 * the recursion is never deeper than the schema, however deep the value is.
 */
function without(whole: unknown, pointers: ReadonlySet<string>): unknown {
  const parents = new Set<string>();
  for (const pointer of pointers) {
    let parent = pointer.slice(0, pointer.lastIndexOf("/"));
    while (!parents.has(parent)) {
      parents.add(parent);
      parent = parent.slice(0, Math.max(0, parent.lastIndexOf("/")));
    }
  }
  const validOf = (value: unknown, path: string): unknown => {
    if (pointers.has(path)) return undefined;
    if (!parents.has(path) || typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map((one, i) => validOf(one, `${path}/${i}`));
    const fields = Object.entries(value);
    return Object.fromEntries(
      fields.map(([name, one]) => [name, validOf(one, `${path}/${escaped(name)}`)]),
    );
  };
  return validOf(whole, "");
}

/**
 * Returns the message for a validation error. A schema may define `explain`, a sentence that replaces a general message
 * that would not help the reader.
 */
function explain(error: ValueError): string {
  const { schema, value, message } = error;
  if (value === undefined && message.includes("required")) return "is required";
  if (message === "Unexpected property") return UNKNOWN_FIELD;
  if (typeof schema["explain"] === "string") return schema["explain"];
  if (schema.minLength !== undefined && typeof value === "string") return lengths(schema);
  if (schema.minimum !== undefined && typeof value === "number") return range(schema);
  if (Array.isArray(schema.anyOf)) return options(schema.anyOf) ?? lowerFirst(message);
  return lowerFirst(message);
}

function lengths(schema: TSchema): string {
  if (schema.maxLength === undefined) return "must not be empty";
  return `must have ${schema.minLength} to ${schema.maxLength} characters`;
}

function range(schema: TSchema): string {
  const whole = schema.type === "integer" ? "a whole number" : "a number";
  if (schema.maximum === undefined) return `must be ${whole} of at least ${schema.minimum}`;
  return `must be ${whole} from ${schema.minimum} to ${schema.maximum}`;
}

function options(schemas: TSchema[]): string | undefined {
  const values = schemas.map((one) => (one.type === "null" ? "null" : one.const));
  return values.every((one) => one !== undefined)
    ? `must be one of ${values.join(", ")}`
    : undefined;
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

/**
 * Reads the query parameters that the schema defines. Integers are converted, and unknown parameters are ignored. A
 * repeated parameter becomes an array, which no schema of a parameter accepts; with `repeatable` it counts as absent.
 * More than `MAX_PARAMETERS` parameters are a 422.
 */
export function readQuery(schema: TObject, query: string): Record<string, unknown> {
  const given = readParameters(query);
  if (given === undefined)
    throw invalid({ query: [`must have at most ${MAX_PARAMETERS} parameters`] });
  const value: Record<string, unknown> = {};
  for (const [name, property] of Object.entries(schema.properties)) {
    const [text, ...more] = given.get(name) ?? [];
    if (text === undefined) continue;
    if (more.length === 0) value[name] = valueOf(property, text);
    else if (!property["repeatable"]) value[name] = [text, ...more];
  }
  return value;
}

/** Validates the result of `readQuery` with `examine`, and reports a repeated parameter with a clear message. */
export function examineQuery<T extends TObject>(
  schema: T,
  value: Readonly<Record<string, unknown>>,
): Examined<Static<T>> {
  const examined = examine(schema, value);
  if ("fieldErrors" in examined)
    for (const [name, given] of Object.entries(value))
      if (Array.isArray(given)) examined.fieldErrors[name] = ["must not be repeated"];
  return examined;
}

function valueOf({ type, format }: TSchema, text: string): unknown {
  if (type === "integer") return toInteger(text);
  // A space before the offset of an instant becomes a plus sign. Instants in responses end in `+00:00`; if a client
  // puts one into a query without encoding it, the plus sign is decoded as a space.
  return format === "date-time" ? text.replace(/ (?=\d{2}:\d{2}$)/, "+") : text;
}

function toInteger(text: string): unknown {
  return /^-?\d{1,15}$/.test(text) ? Number(text) : text;
}

/**
 * Describes a body that the handler validates itself. Such a body cannot be validated by its schema, because the error
 * of a union names no field, or because the handler's rules have better messages. The schema documents the route and
 * types its client, but accepts every value.
 */
export function checkedByHandler<T extends TSchema>(schema: T): TUnsafe<Static<T>> {
  return Type.Unsafe<Static<T>>(Type.Unknown({ ...schema }));
}

/** Schema of the body of a route without fields: an absent body, or an empty object. */
export const NO_FIELDS = Type.Object({}, { additionalProperties: false });
