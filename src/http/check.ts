import type { Static, TObject, TSchema } from "@sinclair/typebox";
import { TypeCompiler, type TypeCheck, type ValueError } from "@sinclair/typebox/compiler";

import { Problem, type FieldErrors } from "../lib/problem.ts";

const compiled = new WeakMap<TSchema, TypeCheck<TSchema>>();

/**
 * A value without its faulty parts, down to the fields of objects and the elements of lists. What is malformed is there
 * as undefined, what is missing is not there at all: a rule that asks for a field can tell the two apart by `in`.
 */
export type Sound<T> = T extends readonly (infer E)[]
  ? readonly (Sound<E> | undefined)[]
  : T extends object
    ? { readonly [K in keyof T]?: Sound<T[K]> | undefined }
    : T;

/** The value, if it has the shape; else every bad field by its path, and what is left of the value without them. */
export type Examined<T> =
  | { readonly value: T }
  | {
      readonly faults: FieldErrors;
      /** Undefined where the value as a whole is malformed. */
      readonly sound: Sound<T> | undefined;
    };

/** All of the value, or what is left of it. */
export function soundOf<T>(examined: Examined<T>): T | Sound<T> | undefined {
  return "value" in examined ? examined.value : examined.sound;
}

/** Looks at everything: a 422 names every bad field at once, as `events.3.review.rate` (decisions.md 1). */
export function examine<T extends TSchema>(schema: T, value: unknown): Examined<Static<T>> {
  let checker = compiled.get(schema);
  if (checker === undefined) compiled.set(schema, (checker = TypeCompiler.Compile(schema)));
  if (checker.Check(value)) return { value };
  // Without a prototype, so that a field named `constructor` or `__proto__` is one like any other.
  const faults: FieldErrors = Object.create(null);
  const paths = new Set<string>();
  for (const error of checker.Errors(value)) {
    paths.add(error.path);
    const field = error.path.slice(1).replaceAll("/", ".") || "body";
    // The first word on a field says enough: a missing one is also "not a string".
    faults[field] ??= [explain(error)];
  }
  // What the schema found no fault with has the type that it stands for.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return { faults, sound: without(value, paths) as Sound<Static<T>> | undefined };
}

/** The value without the parts at these JSON pointers. */
function without(value: unknown, paths: ReadonlySet<string>, path = ""): unknown {
  if (paths.has(path)) return undefined;
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((one, i) => without(one, paths, `${path}/${i}`));
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => {
      const pointer = `${path}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
      return [name, without(one, paths, pointer)];
    }),
  );
}

/** A schema may carry `explain`: the sentence for people, where the general one would not help. */
function explain(error: ValueError): string {
  const { schema, value, message } = error;
  if (value === undefined && message.includes("required")) return "is required";
  if (message === "Unexpected property") return "is not a known field";
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
 * Reads a query string: integers are converted, an unknown parameter is ignored, a repeated one is an error; where the
 * schema says `repeatable` it counts as absent.
 */
export function examineQuery<T extends TObject>(
  schema: T,
  search: URLSearchParams,
): Examined<Static<T>> {
  const value: Record<string, unknown> = {};
  const repeated: string[] = [];
  for (const [name, property] of Object.entries(schema.properties)) {
    const given = search.getAll(name);
    const [text] = given;
    if (given.length > 1 && property["repeatable"]) continue;
    // A list has the shape of no parameter, so the schema refuses it; only the words are better here.
    if (given.length > 1) repeated.push(name);
    if (given.length > 1) value[name] = given;
    else if (text !== undefined) value[name] = valueOf(property, text);
  }
  const examined = examine(schema, value);
  if ("faults" in examined)
    for (const name of repeated) examined.faults[name] = ["must be given once"];
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

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Bytes → JSON value. Invalid UTF-8 and malformed JSON are the same 400; of duplicate keys the last wins. */
export function parseJson(raw: Uint8Array): unknown {
  try {
    return JSON.parse(utf8.decode(raw));
  } catch {
    throw new Problem("invalid_json");
  }
}
