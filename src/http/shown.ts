import { types } from "node:util";

import {
  type Static,
  type TArray,
  type TObject,
  type TOptional,
  type TProperties,
  type TSchema,
  type TUnion,
  type TUnsafe,
  Kind,
  Type,
  TypeGuard,
} from "@sinclair/typebox";

import { isoInstant } from "../lib/clock.ts";
import { fieldsOf } from "../lib/fields.ts";
import type { TInstant } from "./text.ts";

/** Declares a value that the row already stores in the JSON form of the response. `shown` does not change it. */
export function storedJson(schema: TSchema): TUnsafe<unknown> {
  return Type.Unsafe<unknown>({ ...schema, [Kind]: "Any" });
}

/** Converts the name of a field to camel case: `started_at` becomes `startedAt`. */
type CamelCase<Name> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Name;

/** The names of an object schema's fields in TypeScript. */
type FieldsOf<T extends TObject> = CamelCase<keyof T["properties"] & string>;

/** Picks those fields that a schema contains, for example from the columns of a table. */
export function fieldsShown<T extends TObject, Fields extends Record<FieldsOf<T>, unknown>>(
  schema: T,
  fields: Fields,
): Pick<Fields, FieldsOf<T>> {
  const names = Object.keys(schema.properties).map(camelCase);
  const all: Readonly<Record<string, unknown>> = fields;
  // The cast is safe: by its type, `fields` contains each of these names.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return Object.fromEntries(names.map((name) => [name, all[name]])) as Pick<Fields, FieldsOf<T>>;
}

const camelCase = (name: string): string =>
  name.replaceAll(/_(.)/g, (_, first: string) => first.toUpperCase());

type OptionalNames<P extends TProperties> = {
  [Name in keyof P]: P[Name] extends TOptional<TSchema> ? Name : never;
}[keyof P];

type RowOfFields<P extends TProperties> = {
  readonly [Name in Exclude<keyof P, OptionalNames<P>> as CamelCase<Name>]: RowOf<P[Name]>;
} & {
  readonly [Name in OptionalNames<P> as CamelCase<Name>]?: RowOf<P[Name]> | undefined;
};

/**
 * The value that `shown` converts into a response of this schema. Its names are in camel case, and its instants are
 * dates. A row may have further fields; the response omits them.
 */
export type RowOf<T extends TSchema> = T extends TInstant
  ? Date
  : T extends TObject<infer P>
    ? RowOfFields<P>
    : T extends TArray<infer Item>
      ? readonly RowOf<Item>[]
      : T extends TUnion<infer Members>
        ? RowOf<Members[number]>
        : Static<T>;

type Convert = (value: unknown) => unknown;

/**
 * A field of a response: its names in JSON and in TypeScript, and the conversion of its value (undefined if there is
 * none).
 */
type Field = readonly [name: string, source: string, convert: Convert | undefined];

const converters = new WeakMap<TObject, Convert>();

/**
 * Converts a row to its form in the API: the fields have the names and the order of the schema, and instants become ISO
 * text. Null stays null.
 */
export function shown<T extends TObject>(schema: T, row: RowOf<T>): Static<T> {
  let convert = converters.get(schema);
  if (convert === undefined) converters.set(schema, (convert = objectConverter(schema)));
  // The cast is safe: the converter copies each field of the schema, and the type of the row guarantees the types of
  // the values.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return convert(row) as Static<T>;
}

/** Returns a function that converts rows with `shown` by this schema. */
export function shownAs<T extends TObject>(schema: T): (row: RowOf<T>) => Static<T> {
  return (row) => shown(schema, row);
}

function objectConverter({ properties }: TObject): Convert {
  const fields = Object.entries(properties).map(([name, schema]): Field => [
    name,
    camelCase(name),
    converterOf(schema),
  ]);
  return (row) => {
    const values = fieldsOf(row);
    const body: Record<string, unknown> = {};
    for (const [name, source, convert] of fields) {
      const value = values[source];
      if (value !== undefined) body[name] = convert === undefined ? value : convert(value);
    }
    return body;
  };
}

/** Returns the conversion of a value; undefined if the response contains the value unchanged. */
function converterOf(schema: TSchema): Convert | undefined {
  if (schema["format"] === "date-time")
    return (value) => (types.isDate(value) ? isoInstant(value) : value);
  if (TypeGuard.IsObject(schema)) return objectConverter(schema);
  if (TypeGuard.IsArray(schema)) {
    const convert = converterOf(schema.items);
    return convert && ((values) => (Array.isArray(values) ? values.map(convert) : []));
  }
  if (!TypeGuard.IsUnion(schema)) return undefined;
  const [convert] = schema.anyOf.flatMap((member) => converterOf(member) ?? []);
  return convert && ((value) => (value === null ? null : convert(value)));
}
