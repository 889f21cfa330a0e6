import { TAGS } from "../../http/openapi/description.ts";
import { exampleOf } from "../../http/openapi/examples.ts";
import { escape, fieldRow, fieldRows, inline, objectsIn, typeOf } from "./fields.ts";
import {
  type Answer,
  at,
  listOf,
  nameOf,
  type Operation,
  readOperations,
  type Schema,
} from "./operations.ts";
import { LANGUAGES, samplesOf } from "./samples.ts";

/** A page of the reference: the first one, or the operations of a tag. */
export interface ReferencePage {
  readonly title: string;
  readonly path: string;
  /** Renders the content, when it is first asked for. */
  readonly html: () => string;
  /** Operations by group, for the navigation and the search; the only group of a short page has no title. */
  readonly groups: ReadonlyMap<string, readonly Operation[]>;
}

/** Path of the first page; the page of a tag is below it. */
export const REFERENCE = "/docs/reference";

const pathOf = (tag: string): string => `${REFERENCE}/${tag.toLowerCase().replaceAll(" ", "-")}`;

/** Paths of all pages. They are known before the document is made. */
export const REFERENCE_PATHS: readonly string[] = [
  REFERENCE,
  ...TAGS.map(({ name }) => pathOf(name)),
];

/** A page with more operations than this groups them by the resource in their path. */
const UNGROUPED = 30;

/** Renders the reference: a page for each tag of the OpenAPI document, behind one with the rules of all operations. */
export function referencePages(document: Schema): ReferencePage[] {
  const byTag = Map.groupBy(readOperations(document), ({ tag }) => tag);
  const tags = listOf(document["tags"]).map((one) => ({
    name: String(Object(one)["name"]),
    description: String(Object(one)["description"]),
  }));
  const [server] = listOf(document["servers"]).map((one) => String(Object(one)["url"]));
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
  if (operations.length <= UNGROUPED) return new Map([["", [...operations]]]);
  return Map.groupBy(operations, ({ path }) => titleOf(path.split("/")[4] ?? ""));
}

/** Makes a title of a part of a path, such as “SSO connections” of `sso-connections`. */
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

/** Returns the schemas of the fields of a body, because the body itself is shown in place. */
function fieldSchemas(schema: Schema | undefined, schemas: Schema): unknown {
  const name = nameOf(schema);
  return name === "" ? schema : at(schemas, name);
}

/** Renders the choice of a language, which CSS applies to every sample of the page. */
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
  const choices = [...listOf(schema["oneOf"]), ...listOf(schema["anyOf"])];
  if (choices.length === 0) return fieldRows(schema, schemas);
  return `<p>One of: ${choices.map((one) => typeOf(Object(one), schemas)).join(", ")}.</p>`;
}

function codeBlock(language: string, text: string): string {
  return `<div class="code" data-language="${language}"><pre tabindex="0"><code>${escape(text)}\n</code></pre></div>`;
}

function exampleIn(
  content: { readonly schema: Schema; readonly example: unknown },
  name: string,
  schemas: Schema,
): unknown {
  if (content.example !== undefined) return content.example;
  const all: Parameters<typeof exampleOf>[1]["schemas"] = Object(schemas);
  return exampleOf(Object(content.schema), { name, ...(all && { schemas: all }) });
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

/** Lists the errors of this operation; those of all requests are on the first page. */
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
${definitions(Object.entries(schemes).map(([name, one]) => [name, Object(one)["description"]]))}
<h2 id="scopes">Scopes${anchor("scopes")}</h2>
${definitions(Object.entries(scopes))}
<h2 id="errors">Errors of all operations${anchor("errors")}</h2>
${definitions(checks.map(([status, one]) => [status, Object(one)["description"]]))}
<div class="operations">${lists.join("\n")}</div>`;
}

function definitions(entries: readonly (readonly [string, unknown])[]): string {
  const rows = entries.map(
    ([name, text]) => `<dt><code>${name}</code></dt><dd>${inline(String(text))}</dd>`,
  );
  return `<dl>${rows.join("")}</dl>`;
}
