import { TAGS } from "../../http/openapi/description.ts";
import { exampleOf, isSchema } from "../../http/openapi/examples.ts";
import { fieldsOf } from "../../lib/fields.ts";
import { escape, fieldRow, fieldRows, inline, objectsIn, typeOf } from "./fields.ts";
import {
  type Answer,
  at,
  nameOf,
  type Operation,
  readOperations,
  type Schema,
  schemasOf,
} from "./operations.ts";
import { LANGUAGES, samplesOf } from "./samples.ts";

/** A page of the reference: the first page, or the page with the operations of a tag. */
export interface ReferencePage {
  readonly title: string;
  readonly path: string;
  /** Renders the content. It is called at the first request of the page. */
  readonly html: () => string;
  /** Operations by group, for the navigation and the search. A short page has only one group, without a title. */
  readonly groups: ReadonlyMap<string, readonly Operation[]>;
}

/** Path of the first page. The pages of tags are below it. */
export const REFERENCE = "/docs/reference";

const pathOf = (tag: string): string => `${REFERENCE}/${tag.toLowerCase().replaceAll(" ", "-")}`;

/** Paths of all pages. They do not depend on the document, which is built later. */
export const REFERENCE_PATHS: readonly string[] = [
  REFERENCE,
  ...TAGS.map(({ name }) => pathOf(name)),
];

/**
 * Maximum number of operations on a page without groups. A page with more operations groups them by the resource in
 * their path.
 */
const MAX_UNGROUPED = 30;

/**
 * Renders the reference: a first page with the rules of all operations, then a page for each tag of the OpenAPI
 * document.
 */
export function referencePages(document: Schema): ReferencePage[] {
  const byTag = Map.groupBy(readOperations(document), ({ tag }) => tag);
  const tags = schemasOf(document["tags"]).map((one) => ({
    name: String(one["name"]),
    description: String(one["description"]),
  }));
  const [server] = schemasOf(document["servers"]).map((one) => String(one["url"]));
  const context = { schemas: at(document, "components", "schemas"), server: server ?? "" };
  const pages = tags.map(({ name, description }) => {
    const groups = groupsOf(byTag.get(name) ?? []);
    const html = () => tagPage({ name, description, groups }, context);
    return { title: name, path: pathOf(name), groups, html, description };
  });
  const html = () => firstPage(document, pages);
  return [{ title: "Overview", path: REFERENCE, groups: new Map(), html }, ...pages];
}

function groupsOf(operations: readonly Operation[]): Map<string, Operation[]> {
  if (operations.length <= MAX_UNGROUPED) return new Map([["", [...operations]]]);
  return Map.groupBy(operations, ({ path }) => titleOf(path.split("/")[4] ?? ""));
}

/** Converts a segment of a path to a title: `sso-connections` becomes “SSO connections”. */
function titleOf(part: string): string {
  const words = part.replaceAll("-", " ").replace("oauth", "OAuth").replace("sso", "SSO");
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`;
}

interface Context {
  readonly schemas: Schema;
  readonly server: string;
}

interface Tag {
  readonly name: string;
  readonly description: string;
  readonly groups: ReadonlyMap<string, readonly Operation[]>;
}

function tagPage({ name, description, groups }: Tag, context: Context): string {
  const { schemas } = context;
  const all = [...groups.values()].flat();
  const sections = [...groups].map(([title, operations]) => {
    const level = title === "" ? 2 : 3;
    const heading = title === "" ? "" : `<h2>${title}</h2>`;
    return heading + operations.map((one) => operationSection(one, level, context)).join("\n");
  });
  const shown = all.map((one) => [
    one.parameters.map(({ schema }) => schema),
    fieldSchemas(one.body?.schema, schemas),
    one.responses.filter(isSuccess).map(({ schema }) => one.row ?? schema),
  ]);
  const objects = objectsIn(shown, schemas).toSorted();
  const details = objects.map(
    (one) => `<section><h3 id="object-${one}">${one}${anchor(`object-${one}`)}</h3>
${described(at(schemas, one))}${objectBody(at(schemas, one), schemas)}</section>`,
  );
  return `<h1>${name}</h1>
<p>${inline(description)}</p>
${languages()}
${sections.join("\n")}
${details.length === 0 ? "" : `<h2 id="objects">Objects${anchor("objects")}</h2>\n<div class="objects">${details.join("\n")}</div>`}`;
}

/** Resolves the reference of a body's schema: the objects in its fields get sections, but not the body itself. */
function fieldSchemas(schema: Schema | undefined, schemas: Schema): unknown {
  const name = nameOf(schema);
  return name === "" ? schema : at(schemas, name);
}

/** Renders the selection of a language. CSS applies it to every sample of the page. */
function languages(): string {
  const choices = LANGUAGES.map(({ id, label }, place) => {
    const checked = place === 0 ? " checked" : "";
    return `<label><input type="radio" name="language" value="${id}"${checked}>${label}</label>`;
  });
  return `<fieldset class="languages"><legend>Language of the samples</legend>${choices.join("")}</fieldset>`;
}

function operationSection(one: Operation, level: number, context: Context): string {
  const { schemas, server } = context;
  const example = one.body && exampleIn(one.body, one.name, schemas);
  const samples = Object.entries(samplesOf(one, example, server)).map(([language, text]) =>
    codeBlock(language, text.trimEnd()),
  );
  const success = one.responses.filter(isSuccess);
  const answers = success.flatMap((answer) => {
    if (answer.example === undefined && answer.type !== "application/json") return [];
    const value = exampleIn(answer, one.name, schemas);
    const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
    return [`<p class="part">Response ${answer.status}</p>${codeBlock("json", text)}`];
  });
  return `<section class="operation">
<div>
<h${level} id="${one.name}">${inline(one.summary)}${anchor(one.name)}</h${level}>
<p class="route"><b class="${one.method.toLowerCase()}">${one.method}</b> <code>${escape(one.path).replaceAll("/", "/<wbr>")}</code></p>
<p>${inline(one.description)}</p>
<p class="access">${accessOf(one)}</p>
${parametersOf(one, schemas)}
${success.map((answer) => returned(answer, one, schemas)).join("")}
${errorsOf(one)}
</div>
<div class="samples">
${[...samples, ...answers].join("\n")}
</div>
</section>`;
}

function anchor(id: string): string {
  return ` <a class="anchor" href="#${id}" aria-label="Link to ${id.replace("object-", "")}">#</a>`;
}

function described({ description }: Schema): string {
  return typeof description === "string" ? `<p>${inline(description)}</p>` : "";
}

function objectBody(schema: Schema, schemas: Schema): string {
  const choices = [...schemasOf(schema["oneOf"]), ...schemasOf(schema["anyOf"])];
  if (choices.length === 0) return fieldRows(schema, schemas);
  return `<p>One of: ${choices.map((one) => typeOf(one, schemas)).join(", ")}.</p>`;
}

function codeBlock(language: string, text: string): string {
  return `<div class="code" data-language="${language}"><pre tabindex="0"><code>${escape(text)}\n</code></pre></div>`;
}

function exampleIn(
  content: { readonly schema: Schema; readonly example: unknown },
  name: string,
  schemas: Schema,
): unknown {
  const { schema, example } = content;
  const isMade = example === undefined && isSchema(schema) && isSchema(schemas);
  return isMade ? exampleOf(schema, { name, schemas }) : example;
}

function accessOf({ scopes, asksForProof }: Operation): string {
  const proof = asksForProof
    ? ` It may ask for a proof of the second factor (403 <code>step_up_required</code>).`
    : "";
  if (scopes === undefined) return `No bearer token.${proof}`;
  const names = scopes.map((one) => `<code>${one}</code>`).join(", ");
  return `Bearer token${names === "" ? "" : ` with the scope ${names}`}.${proof}`;
}

const PLACES = [
  ["path", "Path"],
  ["query", "Query"],
  ["header", "Headers"],
] as const;

function parametersOf({ parameters, body }: Operation, schemas: Schema): string {
  const parts = PLACES.map(([place, title]): [string, string] => {
    const rows = parameters.filter((one) => one.place === place);
    return [title, rows.map((one) => fieldRow(one, schemas)).join("")];
  });
  const shown = parts
    .filter(([, rows]) => rows !== "")
    .map(([title, rows]) => `<p class="part">${title}</p><dl>${rows}</dl>`);
  if (body === undefined) return shown.join("");
  const rows = fieldRows(body.schema, schemas);
  const fields = rows === "" ? `<p>${typeOf(body.schema, schemas)}</p>` : rows;
  const isOptional = body.isRequired ? "" : ", optional";
  return `${shown.join("")}<p class="part">Body <span>${escape(body.type)}${isOptional}</span></p>${fields}`;
}

const isSuccess = ({ status }: Answer): boolean => status < "400";

function returned(answer: Answer, { row }: Operation, schemas: Schema): string {
  const isEmpty = answer.type === undefined;
  const type =
    row === undefined ? typeOf(answer.schema, schemas) : `page of ${typeOf(row, schemas)}`;
  const what = isEmpty
    ? inline(answer.description)
    : `${type} <span>${escape(answer.type ?? "")}</span>`;
  return `<p class="part">Response ${answer.status}</p><p>${what}</p>`;
}

/** Renders the errors of this operation; errors of all requests are on the first page. */
function errorsOf({ responses }: Operation): string {
  const own = responses.filter(
    (one) => !isSuccess(one) && !one.isOfChecks && one.status !== "default",
  );
  if (own.length === 0) return "";
  const rows = own.map(
    ({ status, description }) => `<dt><code>${status}</code></dt><dd>${inline(description)}</dd>`,
  );
  return `<p class="part">Errors</p><dl class="errors">${rows.join("")}</dl>`;
}

function firstPage(
  document: Schema,
  pages: readonly (ReferencePage & { readonly description: string })[],
): string {
  const info = at(document, "info");
  const schemes = at(document, "components", "securitySchemes");
  const scopes = at(schemes, "oauth", "flows", "authorizationCode", "scopes");
  const checks = Object.entries(at(document, "components", "responses")).filter(([name]) =>
    /^\d+$/.test(name),
  );
  const lists = pages.map(({ title, path, description, groups }) => {
    const items = [...groups.values()]
      .flat()
      .map(
        (one) =>
          `<li><a href="${path}#${one.name}">${inline(one.summary)}</a> <span><b class="${one.method.toLowerCase()}">${one.method}</b> <code>${escape(one.path)}</code></span></li>`,
      );
    return `<h2><a href="${path}">${title}</a></h2>\n<p>${inline(description)}</p>\n<ul>${items.join("\n")}</ul>`;
  });
  return `<h1>API reference</h1>
<p>Version ${String(info["version"])}. The same as OpenAPI 3.1: <a href="/openapi.json">JSON</a>, <a href="/openapi.yaml">YAML</a>. The <a href="/docs/events">events</a> show what your endpoint receives.</p>
<h2 id="requests">Requests${anchor("requests")}</h2>
<ul class="rules">${String(info["description"])
    .split("\n")
    .map((one) => `<li>${inline(one)}</li>`)
    .join("")}</ul>
<h2 id="authentication">Authentication${anchor("authentication")}</h2>
${definitions(Object.entries(schemes).map(([name, one]) => [name, fieldsOf(one)["description"]]))}
<h2 id="scopes">Scopes${anchor("scopes")}</h2>
${definitions(Object.entries(scopes))}
<h2 id="errors">Errors of all operations${anchor("errors")}</h2>
${definitions(checks.map(([status, one]) => [status, fieldsOf(one)["description"]]))}
<div class="operations">${lists.join("\n")}</div>`;
}

function definitions(entries: readonly (readonly [string, unknown])[]): string {
  const rows = entries.map(
    ([name, text]) => `<dt><code>${name}</code></dt><dd>${inline(String(text))}</dd>`,
  );
  return `<dl>${rows.join("")}</dl>`;
}
