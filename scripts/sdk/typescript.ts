import {
  aboutOf,
  at,
  type Field,
  nameOf,
  type Operation,
  type PartnerApi,
  propertiesOf,
  type Schema,
  schemasOf,
} from "../../src/docs/reference/operations.ts";

const HEAD = `// Written by scripts/sdk.ts from the OpenAPI document.
import type { Pages, Request, RequestOptions } from "./requests.ts";
`;

/** Returns the source code of the types of the API and of a class with one method per operation. */
export function writeTypescript({ operations, schemas }: PartnerApi): string {
  const types = [...schemas].map(
    ([name, schema]) => `${comment(aboutOf(schema), "")}export type ${name} = ${typeOf(schema)};\n`,
  );
  return `${HEAD}
${types.join("\n")}
/** One method for each operation that partners and accounts use. */
export abstract class Operations {
  protected abstract send<T>(request: Request): Promise<T>;
  protected abstract pages<T>(request: Request): Pages<T>;
${operations.map((one) => `\n${methodOf(one)}`).join("")}}
`;
}

function methodOf(one: Operation): string {
  const { name, method, path, inPath, inQuery, body, isKeyed, row, answer } = one;
  const query: Schema = {
    properties: Object.fromEntries(inQuery.map((each) => [each.name, each.schema])),
    required: inQuery.filter((each) => each.isRequired).map((each) => each.name),
  };
  const isQueryNeeded = inQuery.some((each) => each.isRequired);
  const parameters = [
    ...inPath.map((each) => `${each}: string | number`),
    ...(body ? [`body: ${typeOf(body.schema, "  ")}${body.isRequired ? "" : " = {}"}`] : []),
    ...(inQuery.length > 0
      ? [`query: ${objectOf(query, "  ")}${isQueryNeeded ? "" : " = {}"}`]
      : []),
    "options: RequestOptions = {}",
  ];
  const address = path.replaceAll(/\{(\w+)\}/g, (_, each) => `\${encodeURIComponent(${each})}`);
  const request = [
    `method: "${method}"`,
    `path: \`${address}\``,
    ...(body ? ["body"] : []),
    ...(inQuery.length > 0 ? ["query"] : []),
    ...(isKeyed ? ["isKeyed: true"] : []),
    "options",
  ];
  const result =
    row === undefined ? ((answer && typeOf(answer, "  ")) ?? "void") : typeOf(row, "  ");
  const about = `${one.summary}. ${aboutOf({ description: one.description })}`;
  const returned = row === undefined ? `Promise<${result}>` : `Pages<${result}>`;
  return `${comment(about, "  ")}  ${name}(${parameters.join(", ")}): ${returned} {
    return this.${row === undefined ? "send" : "pages"}({ ${request.join(", ")} });
  }
`;
}

/** Returns the type of a schema. */
function typeOf(schema: Schema, indent = ""): string {
  if (nameOf(schema) !== "") return nameOf(schema);
  if (schema["const"] !== undefined) return JSON.stringify(schema["const"]);
  if (Array.isArray(schema["enum"]))
    return schema["enum"].map((one) => JSON.stringify(one)).join(" | ");
  const members = (kind: string) => schemasOf(schema[kind]).map((one) => typeOf(one, indent));
  if (schema["allOf"] !== undefined) return members("allOf").join(" & ");
  const choices = [...members("oneOf"), ...members("anyOf")];
  if (choices.length > 0) return choices.join(" | ");
  const types = Array.isArray(schema["type"]) ? schema["type"] : [schema["type"]];
  return types.map((type) => plainType(String(type), schema, indent)).join(" | ");
}

const PLAIN: Readonly<Record<string, string>> = { integer: "number", undefined: "unknown" };

function plainType(type: string, schema: Schema, indent: string): string {
  if (type === "object") return objectOf(schema, indent);
  if (type !== "array") return PLAIN[type] ?? type;
  const item = typeOf(at(schema, "items"), indent);
  return item.includes(" | ") && !item.startsWith("{") ? `(${item})[]` : `${item}[]`;
}

function objectOf(schema: Schema, indent: string): string {
  const fields = propertiesOf(schema);
  if (fields.length > 0)
    return `{\n${fields.map((one) => fieldOf(one, `${indent}  `)).join("")}${indent}}`;
  const { additionalProperties } = schema;
  const isTyped = typeof additionalProperties === "object";
  return `Record<string, ${isTyped ? typeOf(at(schema, "additionalProperties"), indent) : "unknown"}>`;
}

function fieldOf({ name, schema, isRequired }: Field, indent: string): string {
  const key = /^\w+$/.test(name) ? name : JSON.stringify(name);
  const type = typeOf(schema, indent);
  return `${comment(aboutOf(schema), indent)}${indent}${key}${isRequired ? "" : "?"}: ${type};\n`;
}

function comment(text: string, indent: string): string {
  return text === "" ? "" : `${indent}/** ${text.replaceAll("*/", "*\\/")} */\n`;
}
