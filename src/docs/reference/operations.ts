import { type Fields, fieldsOf } from "../../lib/fields.ts";

/** A part of a JSON Schema. */
export type Schema = Fields;

export interface Field {
  readonly name: string;
  readonly schema: Schema;
  readonly isRequired: boolean;
}

/** An operation of the API. */
export interface Operation {
  readonly name: string;
  readonly tag: string;
  readonly summary: string;
  readonly description: string;
  /** The HTTP method in capitals. */
  readonly method: string;
  /** The path below the server's root, such as `/api/v1/partner/webhooks/{id}`. */
  readonly path: string;
  readonly parameters: readonly Parameter[];
  readonly body?: Body;
  /** Scopes of a token; undefined for an operation without a bearer token. */
  readonly scopes: readonly string[] | undefined;
  /** Whether the operation may demand a proof of a second factor. */
  readonly asksForProof: boolean;
  readonly responses: readonly Answer[];
  /** The schema of the rows; undefined unless the response is a page of a list. */
  readonly row: Schema | undefined;
}

interface Parameter extends Field {
  /** The location: `path`, `query` or `header`. */
  readonly place: string;
  readonly example: unknown;
}

interface Body {
  readonly schema: Schema;
  readonly isRequired: boolean;
  readonly type: string;
  readonly example: unknown;
}

export interface Answer {
  readonly status: string;
  readonly description: string;
  /** Whether the response comes only from checks that every operation has, such as a 401. */
  readonly isOfChecks: boolean;
  /** The content type; undefined for a response without content. */
  readonly type: string | undefined;
  readonly schema: Schema;
  readonly example: unknown;
}

/** Returns the names of all schemas that the value references, directly or through other schemas. */
export function schemasIn(value: unknown, all: Schema, names = new Set<string>()): Set<string> {
  const name = nameOf(value);
  if (name !== "" && !names.has(name)) {
    names.add(name);
    schemasIn(all[name], all, names);
  } else if (typeof value === "object" && value !== null)
    for (const one of Object.values(value)) schemasIn(one, all, names);
  return names;
}

/** Reads all operations of the OpenAPI document, except PATCH aliases of another operation. */
export function readOperations(document: Schema): Operation[] {
  const found = (one: unknown): Schema => {
    const [, kind = "", name = ""] = /^#\/components\/(\w+)\/(.+)$/.exec(refOf(one)) ?? [];
    return kind === "" ? fieldsOf(one) : at(document, "components", kind, name);
  };
  return Object.entries(at(document, "paths")).flatMap(([path, item]) =>
    Object.entries(fieldsOf(item))
      .map(([method, one]) => readOperation(path, method.toUpperCase(), fieldsOf(one), found))
      .filter(({ name }) => !name.endsWith("ByPatch")),
  );
}

type Find = (one: unknown) => Schema;

function readOperation(path: string, method: string, operation: Schema, found: Find): Operation {
  const name = String(operation["operationId"]);
  const tag = String(listOf(operation["tags"])[0]);
  const parameters = listOf(operation["parameters"]).map(found).map(readParameter);
  const request = found(operation["requestBody"]);
  const body = readBodyContent(request);
  const responses = Object.entries(at(operation, "responses")).map(([status, one]) =>
    readAnswer(status, one, found),
  );
  const success = responses.find(({ status }) => status < "300");
  return {
    name,
    tag,
    summary: String(operation["summary"]),
    description: String(operation["description"]),
    method,
    path,
    parameters,
    ...(body.type !== undefined && {
      body: { ...body, type: body.type, isRequired: request["required"] === true },
    }),
    scopes: scopesOf(operation["security"]),
    asksForProof: operation["x-step-up"] === true,
    responses,
    row: rowOf(found(success?.schema)),
  };
}

function readParameter(one: Schema): Parameter {
  return {
    name: String(one["name"]),
    place: String(one["in"]),
    schema: { ...at(one, "schema"), description: one["description"] },
    isRequired: one["required"] === true,
    example: one["example"],
  };
}

function readBodyContent(one: Schema) {
  const [entry] = Object.entries(at(one, "content"));
  const content = fieldsOf(entry?.[1]);
  return { type: entry?.[0], schema: at(content, "schema"), example: content["example"] };
}

function readAnswer(status: string, one: unknown, found: Find): Answer {
  const answer = found(one);
  const description = String(answer["description"]);
  return { status, description, isOfChecks: /^\d/.test(nameOf(one)), ...readBodyContent(answer) };
}

/**
 * Returns the scopes of a bearer token. An operation without a requirement of its own has that of the document: `*`.
 */
function scopesOf(security: unknown): string[] | undefined {
  if (security === undefined) return ["*"];
  const bearer = schemasOf(security).find((one) => Object.hasOwn(one, "bearer"));
  return bearer && listOf(bearer["bearer"]).map(String);
}

/** Returns the schema of the rows of a page, which extends `Page`. */
function rowOf({ allOf }: Schema): Schema | undefined {
  const [base, own = {}] = schemasOf(allOf);
  return refOf(base).endsWith("/Page") ? at(own, "properties", "data", "items") : undefined;
}

/** Lists the fields of an object's schema. */
export function propertiesOf(schema: Schema): Field[] {
  const required = listOf(schema["required"]);
  return Object.entries(at(schema, "properties")).map(([name, one]) => ({
    name,
    schema: fieldsOf(one),
    isRequired: required.includes(name),
  }));
}

/** Returns the name of the component that the schema references; empty if it is not a reference. */
export const nameOf = (schema: unknown): string => refOf(schema).split("/").at(-1) ?? "";

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Lists the objects in a list, such as the members of `anyOf`. */
export function schemasOf(value: unknown): readonly Schema[] {
  return listOf(value).map(fieldsOf);
}

export function at(value: Schema, ...keys: readonly string[]): Schema {
  return keys.reduce<Schema>((one, key) => fieldsOf(one[key]), value);
}

function refOf(value: unknown): string {
  const { $ref: ref } = fieldsOf(value);
  return typeof ref === "string" ? ref : "";
}
