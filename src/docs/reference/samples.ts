import { BASE_PATH } from "../../http/access.ts";
import { fieldsOf } from "../../lib/fields.ts";
import type { Operation } from "./operations.ts";

/** The languages of samples, in the order of the selection. */
export const LANGUAGES = [
  { id: "shell", label: "cURL" },
  { id: "typescript", label: "TypeScript" },
  { id: "python", label: "Python" },
  { id: "php", label: "PHP" },
  { id: "go", label: "Go" },
] as const;

export type Language = (typeof LANGUAGES)[number]["id"];

/** A request with example values, from which the sample in every language is built. */
interface Call {
  readonly operation: Operation;
  readonly server: string;
  readonly url: string;
  /** The headers. If `env` is set, the value ends with that environment variable. */
  readonly headers: readonly {
    readonly name: string;
    readonly value: string;
    readonly env?: string;
  }[];
  /** The body as text. */
  readonly body: string | undefined;
  /** The options of the client packages. */
  readonly options: Readonly<Record<string, unknown>>;
}

/**
 * Returns a program in every language that sends the operation with example values and prints the response. TypeScript
 * and Python use the client package for JSON below `/api/v1`.
 */
export function samplesOf(
  operation: Operation,
  example: unknown,
  server: string,
): Record<Language, string> {
  const call = callOf(operation, example, server);
  const isPackaged = isForPackages(operation);
  return {
    shell: curl(call),
    typescript: isPackaged ? typescriptPackage(call) : typescript(call),
    python: isPackaged ? pythonPackage(call) : python(call),
    php: php(call),
    go: go(call),
  };
}

const JSON_TYPE = "application/json";

function isForPackages({ path, scopes, body, responses }: Operation): boolean {
  const answer = responses.find(({ status }) => status < "300");
  const isJson = [body?.type, answer?.type].every((one) => (one ?? JSON_TYPE) === JSON_TYPE);
  return path.startsWith(`${BASE_PATH}/`) && scopes !== undefined && isJson;
}

function callOf(operation: Operation, example: unknown, server: string): Call {
  const { parameters, body, scopes } = operation;
  const inPath = parameters.filter(({ place }) => place === "path");
  const query = parameters.filter(({ place, isRequired }) => place === "query" && isRequired);
  const path = inPath.reduce(
    (made, one) => made.replace(`{${one.name}}`, encodeURIComponent(String(one.example))),
    operation.path,
  );
  const search = new URLSearchParams(
    Object.fromEntries(query.map((one) => [one.name, String(one.example)])),
  );
  const examplesOf = (some: typeof parameters) =>
    some.length > 0 ? Object.fromEntries(some.map((one) => [one.name, one.example])) : undefined;
  const isForm = body !== undefined && body.type !== JSON_TYPE;
  const form = Object.entries(fieldsOf(example)).map(([name, value]): [string, string] => [
    name,
    String(value),
  ]);
  const text = isForm ? new URLSearchParams(form).toString() : JSON.stringify(example, null, 2);
  const signed = operation.name === "reportProviderEvents";
  return {
    operation,
    server,
    url: `${server}${path}${query.length > 0 ? `?${search.toString()}` : ""}`,
    headers: [
      ...(scopes === undefined ? [] : [{ name: "Authorization", value: "Bearer ", env: "TOKEN" }]),
      ...(signed ? [{ name: "X-Provider-Signature", value: "sha256=", env: "SIGNATURE" }] : []),
      ...(body === undefined ? [] : [{ name: "Content-Type", value: body.type }]),
    ],
    body: body === undefined ? undefined : text,
    options: { path: examplesOf(inPath), query: examplesOf(query), body: body && example },
  };
}

function curl({ operation, url, headers, body }: Call): string {
  return [
    `curl ${operation.method === "GET" ? "" : `-X ${operation.method} `}'${url}'`,
    ...headers.map(({ name, value, env }) =>
      env === undefined ? `-H '${name}: ${value}'` : `-H "${name}: ${value}$${env}"`,
    ),
    ...(body === undefined ? [] : [`-d '${body.replaceAll("'", String.raw`'\''`)}'`]),
  ].join(" \\\n  ");
}

function typescriptPackage({ operation, server, options }: Call): string {
  const given = JSON.stringify(options, null, 2).replaceAll(/^( *)"(\w+)":/gm, "$1$2:");
  const called = calledBy(operation, given === "{}" ? [] : [given]);
  const printed =
    operation.row === undefined
      ? `console.log(await ${called});`
      : `for await (const row of ${called}) console.log(row);`;
  return `import { ReviewRelay } from "@reviewrelay/sdk";

const relay = new ReviewRelay({ server: "${server}", token: process.env["TOKEN"] ?? "" });
${printed}
`;
}

/** Returns the call of a client package; both have the same methods. */
function calledBy({ method, path, row }: Operation, args: readonly string[]): string {
  const name = row === undefined ? "request" : "pages";
  const operation = `"${method} ${path.slice(BASE_PATH.length)}"`;
  return `relay.${name}(${[operation, ...args].join(", ")})`;
}

function typescript({ operation, url, headers, body }: Call): string {
  const lines = headers.map(({ name, value, env }) =>
    env === undefined
      ? `    "${name}": "${value}",`
      : `    "${name}": \`${value}\${process.env["${env}"]}\`,`,
  );
  const text = operation.body?.type === JSON_TYPE ? `JSON.stringify(${body})` : `"${body}"`;
  return [
    `const response = await fetch("${url}", {`,
    `  method: "${operation.method}",`,
    ...(lines.length > 0 ? ["  headers: {", ...lines, "  },"] : []),
    ...(body === undefined ? [] : [`  body: ${text.replaceAll("\n", "\n  ")},`]),
    "});",
    "console.log(response.status, await response.text());",
    "",
  ].join("\n");
}

function pythonPackage({ operation, server, options }: Call): string {
  const args = Object.entries(options).filter(([, value]) => value !== undefined);
  const called = calledBy(
    operation,
    args.map(([name, value]) => `${name}=${pythonLiteral(value)}`),
  );
  const printed =
    operation.row === undefined ? `print(${called})` : `for row in ${called}:\n    print(row)`;
  return `import os

from reviewrelay import ReviewRelay

relay = ReviewRelay("${server}", os.environ["TOKEN"])
${printed}
`;
}

function python({ operation, url, headers, body }: Call): string {
  const lines = headers.map(({ name, value, env }) =>
    env === undefined
      ? `        "${name}": "${value}",`
      : `        "${name}": ${value === "" ? "" : `"${value}" + `}os.environ["${env}"],`,
  );
  const data =
    operation.body?.type === JSON_TYPE
      ? `json.dumps(${pythonLiteral(JSON.parse(body ?? "null"), "    ")}).encode()`
      : `b"${body}"`;
  const modules = [
    ...(data.startsWith("json") && body !== undefined ? ["import json"] : []),
    ...(headers.some(({ env }) => env !== undefined) ? ["import os"] : []),
    "import urllib.request",
  ];
  return [
    ...modules,
    "",
    "request = urllib.request.Request(",
    `    "${url}",`,
    `    method="${operation.method}",`,
    ...(lines.length > 0 ? ["    headers={", ...lines, "    },"] : []),
    ...(body === undefined ? [] : [`    data=${data},`]),
    ")",
    "with urllib.request.urlopen(request) as response:",
    "    print(response.status, response.read().decode())",
    "",
  ].join("\n");
}

function php({ operation, url, headers, body }: Call): string {
  const lines = headers.map(({ name, value, env }) =>
    env === undefined
      ? `        '${name}: ${value}',`
      : `        '${name}: ${value}' . getenv('${env}'),`,
  );
  return [
    "<?php",
    "",
    `$request = curl_init('${url}');`,
    "curl_setopt_array($request, [",
    `    CURLOPT_CUSTOMREQUEST => '${operation.method}',`,
    "    CURLOPT_RETURNTRANSFER => true,",
    ...(lines.length > 0 ? ["    CURLOPT_HTTPHEADER => [", ...lines, "    ],"] : []),
    ...(body === undefined
      ? []
      : [
          `    CURLOPT_POSTFIELDS => <<<'BODY'\n        ${body.replaceAll("\n", "\n        ")}\n        BODY,`,
        ]),
    "]);",
    "echo curl_exec($request);",
    "",
  ].join("\n");
}

function go({ operation, url, headers, body }: Call): string {
  const modules = ["io", "log", "net/http", "os", ...(body === undefined ? [] : ["strings"])];
  const literal = body?.includes("`") ? JSON.stringify(body) : `\`${body}\``;
  const sent = body === undefined ? "nil" : "body";
  const lines = headers.map(({ name, value, env }) =>
    env === undefined
      ? `\trequest.Header.Set("${name}", "${value}")`
      : `\trequest.Header.Set("${name}", "${value}"+os.Getenv("${env}"))`,
  );
  return [
    "package main",
    "",
    "import (",
    ...modules.map((one) => `\t"${one}"`),
    ")",
    "",
    "func main() {",
    ...(body === undefined ? [] : [`\tbody := strings.NewReader(${literal})`]),
    `\trequest, err := http.NewRequest("${operation.method}", "${url}", ${sent})`,
    "\tif err != nil {",
    "\t\tlog.Fatal(err)",
    "\t}",
    ...lines,
    "\tresponse, err := http.DefaultClient.Do(request)",
    "\tif err != nil {",
    "\t\tlog.Fatal(err)",
    "\t}",
    "\tdefer response.Body.Close()",
    "\tio.Copy(os.Stdout, response.Body)",
    "}",
    "",
  ].join("\n");
}

/** Formats a JSON value as a Python literal. */
function pythonLiteral(value: unknown, indent = ""): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const deeper = `${indent}    `;
  const isList = Array.isArray(value);
  const items = Object.entries(value).map(
    ([name, one]) =>
      `${deeper}${isList ? "" : `${JSON.stringify(name)}: `}${pythonLiteral(one, deeper)},\n`,
  );
  const [open, close] = isList ? "[]" : "{}";
  return items.length === 0 ? `${open}${close}` : `${open}\n${items.join("")}${indent}${close}`;
}
