/** A part of a JSON Schema. */
export type Schema = Readonly<Record<string, unknown>>;

export interface Field {
  readonly name: string;
  readonly schema: Schema;
  readonly isRequired: boolean;
}

/** An operation of the API, as the reference shows it and as a method of a client has it. */
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
  /** Whether it accepts an `Idempotency-Key`. */
  readonly isKeyed: boolean;
  /** Scopes of a token; undefined for an operation without a bearer token. */
  readonly scopes: readonly string[] | undefined;
  /** Whether it may ask for a proof of the second factor. */
  readonly asksForProof: boolean;
  /** Whether the packages have it: operations of partners and accounts, without streams, exports and aliases. */
  readonly isPackaged: boolean;
  readonly responses: readonly Answer[];
  /** The schema of the response; undefined without one. */
  readonly answer: Schema | undefined;
  /** The schema of the rows, if the response is a page of a list. */
  readonly row: Schema | undefined;
}

interface Parameter extends Field {
  /** `path`, `query` or `header`. */
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
  /** Whether only the checks of all requests give it, such as a 401. */
  readonly isOfChecks: boolean;
  /** The content type; undefined without content. */
  readonly type: string | undefined;
  readonly schema: Schema;
  readonly example: unknown;
}

/** The part of the OpenAPI document that the packages have. */
export interface PartnerApi {
  readonly operations: readonly Operation[];
  /** Schemas by name: those of the operations, of events, and those that they refer to. */
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
    schemas: new Map(schemas.map(([name, schema]) => [name, Object(schema)])),
  };
}

/** Returns the names of all schemas to which the value refers, directly or through other schemas. */
export function schemasIn(value: unknown, all: Schema, names = new Set<string>()): Set<string> {
  const name = nameOf(value);
  if (name !== "" && !names.has(name)) {
    names.add(name);
    schemasIn(all[name], all, names);
  } else if (typeof value === "object" && value !== null)
    for (const one of Object.values(value)) schemasIn(one, all, names);
  return names;
}

/** Reads all operations of the OpenAPI document. PATCH aliases of another operation are left out. */
export function readOperations(document: Schema): Operation[] {
  const found = (one: unknown): Schema => {
    const [, kind = "", name = ""] = /^#\/components\/(\w+)\/(.+)$/.exec(refOf(one)) ?? [];
    return kind === "" ? Object(one) : at(document, "components", kind, name);
  };
  return Object.entries(at(document, "paths")).flatMap(([path, item]) =>
    Object.entries(Object(item))
      .map(([method, one]) => readOperation(path, method.toUpperCase(), Object(one), found))
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
  const body = readContent(request);
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

function readContent(one: Schema) {
  const [entry] = Object.entries(at(one, "content"));
  const content: Schema = Object(entry?.[1]);
  return { type: entry?.[0], schema: at(content, "schema"), example: content["example"] };
}

function readAnswer(status: string, one: unknown, found: Find): Answer {
  const answer = found(one);
  const description = String(answer["description"]);
  return { status, description, isOfChecks: /^\d/.test(nameOf(one)), ...readContent(answer) };
}

/** Returns the scopes of a bearer token. Without its own requirement, an operation has the document's: `*`. */
function scopesOf(security: unknown): string[] | undefined {
  if (security === undefined) return ["*"];
  const bearer = listOf(security).find((one) => Object.hasOwn(Object(one), "bearer"));
  return bearer === undefined ? undefined : listOf(Object(bearer)["bearer"]).map(String);
}

/** Returns the schema of the rows of a page, which extends `Page`. */
function rowOf({ allOf }: Schema): Schema | undefined {
  const [base, own] = listOf(allOf);
  if (!refOf(base).endsWith("/Page")) return undefined;
  return Object(at(Object(own), "properties", "data")["items"]);
}

/** Lists the fields of an object's schema. */
export function fieldsOf(schema: Schema): Field[] {
  const required = listOf(schema["required"]);
  return Object.entries(at(schema, "properties")).map(([name, one]) => ({
    name,
    schema: Object(one),
    isRequired: required.includes(name),
  }));
}

/** Returns the name of the component that the schema refers to, or an empty text. */
export const nameOf = (schema: unknown): string => refOf(schema).split("/").at(-1) ?? "";

/** Returns the schema's description in one line that ends with a full stop, or an empty text. */
export function aboutOf(schema: Schema): string {
  const { description } = schema;
  return typeof description === "string" ? description.replaceAll(/\s+/g, " ").trim() : "";
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function at(value: Schema, ...keys: readonly string[]): Schema {
  return keys.reduce<Schema>((one, key) => Object(one[key] ?? {}), value);
}

const refOf = (value: unknown): string => String(Object(value)["$ref"] ?? "");
