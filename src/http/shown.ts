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
import type { TInstant } from "./text.ts";

/** Declares a value that a row stores as the JSON of the response, so that `shown` does not change it. */
export function storedJson(schema: TSchema): TUnsafe<unknown> {
  return Type.Unsafe<unknown>({ ...schema, [Kind]: "Any" });
}

/** The name of a field in TypeScript: `started_at` becomes `startedAt`. */
type CamelCase<Name> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Name;

/** The names of an object schema's fields in TypeScript. */
type FieldsOf<T extends TObject> = CamelCase<keyof T["properties"] & string>;

/** Picks the fields that a schema shows, for example from the columns of a table. */
export function fieldsShown<T extends TObject, Fields extends Record<FieldsOf<T>, unknown>>(
  schema: T,
  fields: Fields,
): Pick<Fields, FieldsOf<T>> {
  const names = Object.keys(schema.properties).map(camelCase);
  const all: Readonly<Record<string, unknown>> = fields;
  // The type of `fields` says that it has each of these names.
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
 * The value that `shown` turns into a response of this schema: names are in camel case, and instants are dates. A row
 * of a query may have more fields; the response omits them.
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

/** A field of a response: its names in JSON and in TypeScript, and the conversion of its value if it needs one. */
type Field = readonly [name: string, source: string, convert: Convert | undefined];

const converters = new WeakMap<TObject, Convert>();

/**
 * Shows a row as the API does: its fields have the names and the order of the schema, instants are ISO text, and
 * null stays null.
 */
export function shown<T extends TObject>(schema: T, row: RowOf<T>): Static<T> {
  let convert = converters.get(schema);
  if (convert === undefined) converters.set(schema, (convert = objectConverter(schema)));
  // The converter copies each field of the schema, and the type of the row says that it has the right value.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return convert(row) as Static<T>;
}

/** Returns a function that shows rows of a list by this schema. */
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
    const values: Readonly<Record<string, unknown>> = Object(row);
    const body: Record<string, unknown> = {};
    for (const [name, source, convert] of fields) {
      const value = values[source];
      if (value !== undefined) body[name] = convert === undefined ? value : convert(value);
    }
    return body;
  };
}

/** Returns the conversion of a value; undefined if the response contains the value as it is. */
function converterOf(schema: TSchema): Convert | undefined {
  if (schema["format"] === "date-time")
    return (value) => (types.isDate(value) ? isoInstant(value) : value);
  if (TypeGuard.IsObject(schema)) return objectConverter(schema);
  if (TypeGuard.IsArray(schema)) {
    const convert = converterOf(schema.items);
    return convert && ((values) => Array.from(Object(values), convert));
  }
  if (!TypeGuard.IsUnion(schema)) return undefined;
  const [convert] = schema.anyOf.flatMap((member) => converterOf(member) ?? []);
  return convert && ((value) => (value === null ? null : convert(value)));
}
