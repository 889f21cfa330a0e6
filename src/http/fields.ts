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

import { invalid, type FieldErrors } from "../lib/problem.ts";
import { MAX_PARAMETERS, readParameters } from "./text.ts";

const compiled = new WeakMap<TSchema, TypeCheck<TSchema>>();

/**
 * A value without its faulty parts, down to the fields of objects and the elements of lists. What is malformed is there
 * as undefined, what is missing is not there at all: a rule that asks for a field can tell the two apart by `in`.
 */
export type ValidParts<T> = T extends readonly (infer E)[]
  ? readonly (ValidParts<E> | undefined)[]
  : T extends object
    ? { readonly [K in keyof T]?: ValidParts<T[K]> | undefined }
    : T;

/** The value, if it has the shape; else every bad field by its path, and what is left of the value without them. */
export type Examined<T> =
  | { readonly value: T }
  | {
      readonly fieldErrors: FieldErrors;
      /** Undefined where the value as a whole is malformed. */
      readonly sound: ValidParts<T> | undefined;
    };

/** All of the value, or what is left of it. */
export function validPartsOf<T>(examined: Examined<T>): T | ValidParts<T> | undefined {
  return "value" in examined ? examined.value : examined.sound;
}

/** Looks at everything: a 422 names every bad field at once, as `events.3.review.rate` (contract 2.5). */
export function examine<T extends TSchema>(schema: T, value: unknown): Examined<Static<T>> {
  let checker = compiled.get(schema);
  if (checker === undefined) compiled.set(schema, (checker = TypeCompiler.Compile(schema)));
  if (checker.Check(value)) return { value };
  // Without a prototype, so that a field named `constructor` or `__proto__` is one like any other.
  const fieldErrors: FieldErrors = Object.create(null);
  const paths = new Set<string>();
  const { known, unknown } = splitUnknown(schema, value);
  const nameUnknown = () => {
    for (const name of unknown.splice(0)) fieldErrors[fieldAt(`/${escaped(name)}`)] = [UNKNOWN];
  };
  for (const error of checker.Errors(known)) {
    // The checker tells first what is missing, then what is unknown, and at last what is wrong within.
    if (!isMissing(error)) nameUnknown();
    paths.add(error.path);
    const field = fieldAt(error.path);
    // The first word on a field says enough: a missing one is also "not a string".
    fieldErrors[field] ??= [explain(error)];
  }
  nameUnknown();
  // What the schema found no fault with has the type that it stands for.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return { fieldErrors, sound: without(known, paths) as ValidParts<Static<T>> | undefined };
}

const UNKNOWN = "is not a known field";

/** Whether a field of the value itself is missing, not one within another. */
function isMissing({ type, path }: ValueError): boolean {
  return type === ValueErrorType.ObjectRequiredProperty && path.lastIndexOf("/") === 0;
}

/** A JSON pointer in the words of an answer. */
const fieldAt = (pointer: string): string => pointer.slice(1).replaceAll("/", ".") || "body";

/**
 * The fields of an object that its schema knows, and the names of the others, if it forbids them. A stranger may send a
 * thousand of these, and the checker makes several objects for each that it finds.
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

const isRecord = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** `examine` of a part of a body: each field stands under `prefix`, such as `events.3.`. */
export function examineUnder<T extends TSchema>(
  prefix: string,
  schema: T,
  value: unknown,
): Examined<Static<T>> {
  const examined = examine(schema, value);
  if ("value" in examined) return examined;
  const fieldErrors = Object.entries(examined.fieldErrors).map(([field, texts]) => [
    // The part itself has a bad shape, not one of its fields.
    field === "body" && prefix !== "" ? prefix.slice(0, -1) : prefix + field,
    texts,
  ]);
  return { ...examined, fieldErrors: Object.fromEntries(fieldErrors) };
}

/** The parts that have a fault, or have parts that do. It is no deeper than the schema, however deep the value is. */
type Faulty = Map<string, Faulty | "whole">;

/** The value without the parts at these JSON pointers. What has no fault is taken over unseen. */
function without(value: unknown, pointers: ReadonlySet<string>): unknown {
  if (pointers.has("")) return undefined;
  const root: Faulty = new Map();
  for (const pointer of pointers) {
    const names = pointer.slice(1).split("/").map(unescaped);
    const last = names.pop() ?? "";
    let part: Faulty | undefined = root;
    for (const name of names) part = partOf(part, name);
    part?.set(last, "whole");
  }
  return validOf(value, root);
}

/** Undefined below what is at fault as a whole. */
function partOf(faulty: Faulty | undefined, name: string): Faulty | undefined {
  const known = faulty?.get(name);
  if (known !== undefined) return known === "whole" ? undefined : known;
  const part: Faulty = new Map();
  faulty?.set(name, part);
  return part;
}

/** RFC 6901, 3. */
const escaped = (step: string): string => step.replaceAll("~", "~0").replaceAll("/", "~1");

/** RFC 6901, 4. */
function unescaped(step: string): string {
  return step.includes("~") ? step.replaceAll("~1", "/").replaceAll("~0", "~") : step;
}

function validOf(value: unknown, faulty: Faulty | "whole" | undefined): unknown {
  if (faulty === "whole") return undefined;
  if (faulty === undefined || typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((one, i) => validOf(one, faulty.get(String(i))));
  const fields = Object.entries(value);
  return Object.fromEntries(fields.map(([name, one]) => [name, validOf(one, faulty.get(name))]));
}

/** A schema may carry `explain`: the sentence for people, where the general one would not help. */
function explain(error: ValueError): string {
  const { schema, value, message } = error;
  if (value === undefined && message.includes("required")) return "is required";
  if (message === "Unexpected property") return UNKNOWN;
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
 * Reads the parameters that the schema knows: integers are converted, an unknown parameter is ignored, a repeated one is
 * a list, which no schema of a parameter takes; where the schema says `repeatable` it counts as absent. More than the
 * cap are a 422.
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

/** `examine` of what `readQuery` read: a parameter that came twice says so. */
export function examineQuery<T extends TObject>(
  schema: T,
  value: Readonly<Record<string, unknown>>,
): Examined<Static<T>> {
  const examined = examine(schema, value);
  if ("fieldErrors" in examined)
    for (const [name, given] of Object.entries(value))
      if (Array.isArray(given)) examined.fieldErrors[name] = ["must be given once"];
  return examined;
}

function valueOf({ type, format }: TSchema, text: string): unknown {
  if (type === "integer") return toInteger(text);
  // Our own instants end in `+00:00`, and pasted into a query the sign is read as a blank.
  return format === "date-time" ? text.replace(/ (?=\d{2}:\d{2}$)/, "+") : text;
}

function toInteger(text: string): unknown {
  return /^-?\d{1,15}$/.test(text) ? Number(text) : text;
}

/**
 * A body that the handler checks itself: one that no schema can look through (a union names no field), or where the words
 * of a rule replace those of the schema. The schema describes the route and types its client; it lets everything pass.
 */
export function checkedByHandler<T extends TSchema>(schema: T): TUnsafe<Static<T>> {
  return Type.Unsafe<Static<T>>(Type.Unknown({ ...schema }));
}

/** The body of a route that takes none: an empty object says nothing either. */
export const NO_FIELDS = Type.Object({}, { additionalProperties: false });
