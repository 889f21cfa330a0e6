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

const HEAD = `# Written by scripts/sdk.ts from the OpenAPI document.
# mypy: disable-error-code="no-any-return"
from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from ._requests import Pages, Requests, new_key, segment
`;

/** Names of fields that are keywords in Python, so a class cannot declare them. */
const KEYWORDS = new Set(["from"]);

/** Returns the source code of the types of the API and of a class with one method per operation. */
export function writePython({ operations, schemas }: PartnerApi): string {
  const written = new Map<string, string>();
  for (const [name, schema] of schemas) writeType(name, schema, { written, schemas });
  return `${HEAD}
${[...written.values()].join("\n")}

class Operations(Requests):
    """One method for each operation that partners and accounts use."""
${operations.map((one) => `\n${methodOf(one)}`).join("")}`;
}

interface Writing {
  readonly written: Map<string, string>;
  readonly schemas: ReadonlyMap<string, Schema>;
}

/**
 * Writes a type after the types that it extends. Objects inside it become separate types that are named after their
 * fields.
 */
function writeType(name: string, schema: Schema, writing: Writing): void {
  const { written, schemas } = writing;
  if (written.has(name)) return;
  const parts = schema["allOf"] === undefined ? [schema] : schemasOf(schema["allOf"]);
  const bases = parts.map(nameOf).filter((one) => one !== "");
  for (const base of bases) writeType(base, schemas.get(base) ?? {}, writing);
  const own = parts.filter((one) => nameOf(one) === "");
  const fields = own.flatMap(propertiesOf);
  if (fields.length === 0 && bases.length === 0) {
    const alias = typeOf(schema, name, writing);
    written.set(name, `\n${name}: TypeAlias = "${alias.replaceAll('"', "'")}"\n`);
    return;
  }
  if (bases.length === 0 && fields.some((one) => KEYWORDS.has(one.name))) {
    const items = fields.map((one) => `"${one.name}": ${annotationOf(name, one, writing)}`);
    written.set(name, `\n${name} = TypedDict("${name}", {${items.join(", ")}})\n`);
    return;
  }
  written.set(name, "");
  const lines = fields.map((one) => fieldOf(name, one, writing));
  const about = aboutOf(schema);
  const body = [...(about === "" ? [] : [docstring(about, 4)]), ...lines];
  // A type inside of this one was written meanwhile, so this one is moved behind it.
  written.delete(name);
  const heading = `class ${name}(${bases.length === 0 ? "TypedDict" : bases.join(", ")}):\n`;
  written.set(name, `\n${heading}${body.length === 0 ? "    pass\n" : body.join("")}`);
}

function fieldOf(owner: string, field: Field, writing: Writing): string {
  const about = aboutOf(field.schema);
  const type = annotationOf(owner, field, writing);
  return `    ${field.name}: ${type}\n${about === "" ? "" : docstring(about, 4)}`;
}

function annotationOf(owner: string, field: Field, writing: Writing): string {
  const type = typeOf(field.schema, `${owner}${upperCamel(field.name)}`, writing);
  return field.isRequired ? type : `NotRequired[${type}]`;
}

/** Returns the type of a schema. An object inside of it becomes a type with the name `name`. */
function typeOf(schema: Schema, name: string, writing: Writing): string {
  if (nameOf(schema) !== "") return nameOf(schema);
  if (schema["const"] !== undefined) return `Literal[${literal(schema["const"])}]`;
  if (Array.isArray(schema["enum"])) return `Literal[${schema["enum"].map(literal).join(", ")}]`;
  const choices = [...schemasOf(schema["oneOf"]), ...schemasOf(schema["anyOf"])];
  if (choices.length > 0) return choices.map((one) => typeOf(one, name, writing)).join(" | ");
  const types = Array.isArray(schema["type"]) ? schema["type"] : [schema["type"]];
  return types.map((type) => plainType(String(type), schema, [name, writing])).join(" | ");
}

function literal(value: unknown): string {
  if (value === null) return "None";
  return typeof value === "boolean" ? upperCamel(String(value)) : JSON.stringify(value);
}

const PLAIN: Readonly<Record<string, string>> = {
  boolean: "bool",
  integer: "int",
  null: "None",
  number: "float",
  string: "str",
};

function plainType(type: string, schema: Schema, [name, writing]: [string, Writing]): string {
  if (type === "array") return `list[${typeOf(at(schema, "items"), name, writing)}]`;
  if (type !== "object") return PLAIN[type] ?? "Any";
  if (propertiesOf(schema).length > 0) {
    writeType(name, schema, writing);
    return name;
  }
  const isTyped = typeof schema["additionalProperties"] === "object";
  return `dict[str, ${isTyped ? typeOf(at(schema, "additionalProperties"), name, writing) : "Any"}]`;
}

function methodOf(one: Operation): string {
  const { name, method, path, inPath, inQuery, body, isKeyed, row, answer } = one;
  const writing: Writing = { written: new Map(), schemas: new Map() };
  const typed = (schema: Schema) => typeOf(schema, upperCamel(name), writing);
  const named = [
    ...inQuery.map((each) => {
      const type = typed(each.schema);
      return each.isRequired ? `${each.name}: ${type}` : `${each.name}: ${type} | None = None`;
    }),
    ...(isKeyed ? ["idempotency_key: str | None = None"] : []),
  ];
  const parameters = [
    "self",
    ...inPath.map((each) => `${snake(each)}: str | int`),
    ...(body ? [`body: ${typed(body.schema)}${body.isRequired ? "" : " | None = None"}`] : []),
    ...(named.length > 0 ? ["*", ...named] : []),
  ];
  const address = path.replaceAll(/\{(\w+)\}/g, (_, each) => `{segment(${snake(each)})}`);
  const query = `{${inQuery.map((each) => `"${each.name}": ${each.name}`).join(", ")}}`;
  const given = [
    ...(row === undefined ? [`"${method}"`] : []),
    `${address === path ? "" : "f"}"${address}"`,
    ...(body ? [`body=body${body.isRequired ? "" : " or {}"}`] : []),
    ...(inQuery.length > 0 ? [`query=${query}`] : []),
    ...(isKeyed ? ["key=idempotency_key or new_key()"] : []),
  ];
  const result = answer === undefined ? "None" : typed(answer);
  const returned = row === undefined ? result : `Pages[${typed(row)}]`;
  return `    def ${snake(name)}(${parameters.join(", ")}) -> ${returned}:
${docstring(`${one.summary}. ${aboutOf({ description: one.description })}`, 8)}        return self.${row === undefined ? "_send" : "_pages"}(${given.join(", ")})
`;
}

function docstring(text: string, indent: number): string {
  return `${" ".repeat(indent)}"""${text.replaceAll("\\", "\\\\").replace(/"$/, '" ')}"""\n`;
}

function upperCamel(name: string): string {
  return name.replaceAll(/(?:^|_)([a-z])/g, (_, letter) => letter.toUpperCase());
}

/** Converts the name of an operation or a parameter to snake case: `listOAuthClients` becomes `list_oauth_clients`. */
function snake(name: string): string {
  return name
    .replace("OAuth", "Oauth")
    .replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
