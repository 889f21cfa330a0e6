import type { Static, TObject, TSchema } from "@sinclair/typebox";
import { TypeCompiler, type TypeCheck, type ValueError } from "@sinclair/typebox/compiler";

import { invalid, Problem, type FieldErrors } from "../lib/problem.ts";

const compiled = new WeakMap<TSchema, TypeCheck<TSchema>>();

/** The value, if it has the shape; else a 422 that names every bad field at once, as `events.3.review.rate`. */
export function check<T extends TSchema>(schema: T, value: unknown): Static<T> {
  let checker = compiled.get(schema);
  if (checker === undefined) compiled.set(schema, (checker = TypeCompiler.Compile(schema)));
  if (checker.Check(value)) return value;
  // Without a prototype, so that a field named `constructor` or `__proto__` is one like any other.
  const errors: FieldErrors = Object.create(null);
  for (const error of checker.Errors(value)) {
    const field = error.path.slice(1).replaceAll("/", ".") || "body";
    // The first word on a field says enough: a missing one is also "not a string".
    errors[field] ??= [explain(error)];
  }
  throw invalid(errors);
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
export function checkQuery<T extends TObject>(schema: T, search: URLSearchParams): Static<T> {
  const value: Record<string, unknown> = {};
  const repeated: FieldErrors = {};
  for (const [name, property] of Object.entries(schema.properties)) {
    const given = search.getAll(name);
    const [text] = given;
    if (given.length > 1 && property["repeatable"]) continue;
    if (given.length > 1) repeated[name] = ["must be given once"];
    else if (text !== undefined) value[name] = valueOf(property, text);
  }
  if (Object.keys(repeated).length > 0) throw invalid(repeated);
  return check(schema, value);
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
