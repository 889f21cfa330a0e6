/** A part of a JSON Schema. */
export type Schema = Readonly<Record<string, unknown>>;

export interface Field {
  readonly name: string;
  readonly schema: Schema;
  readonly isRequired: boolean;
}

/** An operation of the API, as a method of a client has it. */
export interface Operation {
  readonly name: string;
  readonly summary: string;
  readonly description: string;
  /** The HTTP method in capitals. */
  readonly method: string;
  /** The path below the server's root, such as `/api/v1/partner/webhooks/{id}`. */
  readonly path: string;
  readonly inPath: readonly string[];
  readonly inQuery: readonly Field[];
  readonly body?: { readonly schema: Schema; readonly isRequired: boolean };
  /** Whether it accepts an `Idempotency-Key`. */
  readonly isKeyed: boolean;
  /** The schema of the response; undefined without one. */
  readonly answer: Schema | undefined;
  /** The schema of the rows, if the response is a page of a list. */
  readonly row: Schema | undefined;
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

/** Reads the operations of partners and accounts, and the events, from the OpenAPI document. */
export function readPartnerApi(document: Schema): PartnerApi {
  const components = at(document, "components");
  const found = (one: unknown): Schema => {
    const [, kind = "", name = ""] = /^#\/components\/(\w+)\/(.+)$/.exec(refOf(one)) ?? [];
    return kind === "" ? Object(one) : at(components, kind, name);
  };
  const operations = Object.entries(at(document, "paths")).flatMap(([path, item]) =>
    Object.entries(Object(item)).flatMap(([method, one]) =>
      readOperation({ path, method: method.toUpperCase(), operation: Object(one) }, found),
    ),
  );
  const all: Schema = at(components, "schemas");
  const names = new Set<string>();
  const visit = (value: unknown): void => {
    const name = refOf(value).replace("#/components/schemas/", "");
    if (name !== "" && !names.has(name)) {
      names.add(name);
      visit(all[name]);
    } else if (typeof value === "object" && value !== null) Object.values(value).forEach(visit);
  };
  for (const name of EVENTS) visit({ $ref: `#/components/schemas/${name}` });
  for (const { inQuery, body, answer } of operations) visit([inQuery, body, answer]);
  const schemas = Object.entries(all).filter(([name]) => names.has(name));
  return {
    operations,
    schemas: new Map(schemas.map(([name, schema]) => [name, Object(schema)])),
  };
}

/** Describes an operation; empty if the packages leave it out: those of others, streams, exports and aliases. */
function readOperation(
  one: { readonly path: string; readonly method: string; readonly operation: Schema },
  found: (one: unknown) => Schema,
): Operation[] {
  const { path, method, operation } = one;
  const name = String(operation["operationId"]);
  const tags: readonly unknown[] = Object(operation["tags"] ?? []);
  const isOurs = tags.some((tag) => TAGS.has(String(tag))) || SIGN_IN.has(name);
  if (!isOurs || name.endsWith("ByPatch")) return [];
  const success = Object.entries(at(operation, "responses")).find(([status]) => status < "300");
  const content = at(found(success?.[1]), "content");
  const answer = Object(content["application/json"])["schema"];
  if (answer === undefined && Object.keys(content).length > 0) return [];
  const parameters = listOf(operation["parameters"]).map(found);
  const fields = (place: string) =>
    parameters
      .filter((each) => each["in"] === place)
      .map((each) => ({
        name: String(each["name"]),
        schema: { ...at(each, "schema"), description: each["description"] },
        isRequired: each["required"] === true,
      }));
  const request = found(operation["requestBody"]);
  const schema = at(request, "content", "application/json")["schema"];
  return [
    {
      name,
      summary: String(operation["summary"]),
      description: String(operation["description"]),
      method,
      path,
      inPath: fields("path").map((each) => each.name),
      inQuery: fields("query"),
      ...(schema !== undefined && {
        body: { schema: Object(schema), isRequired: request["required"] === true },
      }),
      isKeyed: fields("header").some((each) => each.name === "Idempotency-Key"),
      answer,
      row: rowOf(found(answer)),
    },
  ];
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
