import { type Fields, fieldsOf } from "../../lib/fields.ts";

/** A part of a JSON Schema. */
export type Schema = Fields;

export interface Field {
  readonly name: string;
  readonly schema: Schema;
  readonly isRequired: boolean;
}

/** An operation of the API, for the reference and for the methods of the client packages. */
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
  readonly inPath: readonly string[];
  readonly inQuery: readonly Field[];
  readonly body?: Body;
  /** Whether the operation accepts an `Idempotency-Key`. */
  readonly isKeyed: boolean;
  /** Scopes of a token; undefined for an operation without a bearer token. */
  readonly scopes: readonly string[] | undefined;
  /** Whether the operation may demand a proof of a second factor. */
  readonly asksForProof: boolean;
  /**
   * Whether the client packages contain the operation. They contain the operations of partners and accounts, without
   * streams, exports and aliases.
   */
  readonly isPackaged: boolean;
  readonly responses: readonly Answer[];
  /** The schema of the response; undefined if it has none. */
  readonly answer: Schema | undefined;
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

/** The part of the OpenAPI document that the client packages contain. */
export interface PartnerApi {
  readonly operations: readonly Operation[];
  /** Schemas by name: those of the operations and events, and all schemas that they reference. */
  readonly schemas: ReadonlyMap<string, Schema>;
}

const TAGS = new Set(["Webhooks", "Partner", "Reviews"]);
const SIGN_IN = new Set(["signIn", "verifyToken"]);
const EVENTS = ["Event", "MinimalEvent"];
const JSON_TYPE = "application/json";

/** Reads the operations of partners and accounts, and the events, from the OpenAPI document. */
export function readPartnerApi(document: Schema): PartnerApi {
  const operations = readOperations(document).filter((one) => one.isPackaged);
  const all = at(document, "components", "schemas");
  const used = [operations.map(({ inQuery, body, answer }) => [inQuery, body?.schema, answer])];
  const names = schemasIn(
    [EVENTS.map((name) => ({ $ref: `#/components/schemas/${name}` })), used],
    all,
  );
  const schemas = Object.entries(all).filter(([name]) => names.has(name));
  return {
    operations,
    schemas: new Map(schemas.map(([name, schema]) => [name, fieldsOf(schema)])),
  };
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
  const inPlace = (place: string) => parameters.filter((one) => one.place === place);
  const request = found(operation["requestBody"]);
  const body = readBodyContent(request);
  const responses = Object.entries(at(operation, "responses")).map(([status, one]) =>
    readAnswer(status, one, found),
  );
  const success = responses.find(({ status }) => status < "300");
  const isJson = success?.type === undefined || success.type === JSON_TYPE;
  const answer = success?.type === JSON_TYPE ? success.schema : undefined;
  return {
    name,
    tag,
    summary: String(operation["summary"]),
    description: String(operation["description"]),
    method,
    path,
    parameters,
    inPath: inPlace("path").map((one) => one.name),
    inQuery: inPlace("query"),
    ...(body.type !== undefined && {
      body: { ...body, type: body.type, isRequired: request["required"] === true },
    }),
    isKeyed: inPlace("header").some((one) => one.name === "Idempotency-Key"),
    scopes: scopesOf(operation["security"]),
    asksForProof: operation["x-step-up"] === true,
    isPackaged: (TAGS.has(tag) || SIGN_IN.has(name)) && isJson && operation["deprecated"] !== true,
    responses,
    answer,
    row: rowOf(found(answer)),
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

/** Returns the schema's description as one line that ends with a full stop; empty if there is none. */
export function aboutOf(schema: Schema): string {
  const { description } = schema;
  return typeof description === "string" ? description.replaceAll(/\s+/g, " ").trim() : "";
}

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
