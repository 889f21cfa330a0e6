import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import type { ServedFile } from "../http/files.ts";
import { bundleForNode } from "../lib/bundle.ts";
import { renderGuide, type RenderedGuide } from "./guide.ts";
import { layOut } from "./layout.ts";
import { GUIDES, type Guide } from "./contents.ts";

const HERE = import.meta.dirname;
const SWAGGER_UI = {
  style: import.meta.resolve("swagger-ui-dist/swagger-ui.css"),
  script: import.meta.resolve("swagger-ui-dist/swagger-ui-bundle.js"),
};
/** The command for partners: only its path, because it is a program of its own. */
const COMMAND = join(HERE, "../cli/main.ts");
const SAMPLES = join(HERE, "verify");
const TEXT = "text/plain; charset=utf-8";
const HTML = "text/html; charset=utf-8";
const CSS = "text/css; charset=utf-8";
const SCRIPT = "text/javascript; charset=utf-8";
const JSON_TYPE = "application/json";

/** `/docs`: the guides and the reference. All of it from this server, so that it works offline. */
export function docPages(serverRoot: string): ServedFile[] {
  const rendered = new Map<string, RenderedGuide>();
  const render = ({ name }: Guide): RenderedGuide => {
    const known = rendered.get(name);
    if (known !== undefined) return known;
    const markdown = readFileSync(join(HERE, "guides", `${name}.md`), "utf8");
    const made = renderGuide(markdown, serverRoot);
    rendered.set(name, made);
    return made;
  };
  return [
    ...GUIDES.map((guide) => ({
      path: guide.path,
      contentType: HTML,
      body: () => guidePage(guide, render(guide)),
    })),
    { path: "/docs/reference", contentType: HTML, body: referencePage },
    { path: "/docs/search.json", contentType: JSON_TYPE, body: () => searchIndex(render) },
    { path: "/docs/reviewrelay.mjs", contentType: SCRIPT, body: () => bundleForNode(COMMAND) },
    ...readdirSync(SAMPLES).map((name) => file(`/docs/samples/${name}`, TEXT, join(SAMPLES, name))),
    file("/docs/docs.css", CSS, join(HERE, "docs.css")),
    file("/docs/docs.js", SCRIPT, join(HERE, "docs.js")),
    file("/docs/reference.js", SCRIPT, join(HERE, "reference.js")),
    file("/docs/swagger-ui.css", CSS, fileURLToPath(SWAGGER_UI.style)),
    file("/docs/swagger-ui-bundle.js", SCRIPT, fileURLToPath(SWAGGER_UI.script)),
  ];
}

function referencePage(): string {
  return layOut({
    title: "API reference",
    path: "/docs/reference",
    head: `<link rel="stylesheet" href="/docs/swagger-ui.css">
<script defer src="/docs/swagger-ui-bundle.js"></script>
<script defer src="/docs/reference.js"></script>`,
    body: `<main id="reference"><noscript><p>The reference needs JavaScript; the same is in <a href="/openapi.json">openapi.json</a>.</p></noscript></main>`,
  });
}

function guidePage({ title, path }: Guide, { html, sections }: RenderedGuide): string {
  const parts = sections.filter(({ depth }) => depth === 2);
  const links = parts.map(({ id, title: part }) => `<li><a href="#${id}">${part}</a></li>`);
  const within =
    links.length < 3
      ? ""
      : `<nav class="within" aria-label="On this page"><ul>${links.join("")}</ul></nav>`;
  return layOut({ title, path, head: "", body: `<main class="guide">\n${html}</main>\n${within}` });
}

/** Every section of every guide; the browser looks through them. */
function searchIndex(render: (guide: Guide) => RenderedGuide): string {
  return JSON.stringify(
    GUIDES.flatMap((guide) =>
      render(guide).sections.map(({ id, title, depth, text }) => ({
        path: depth === 1 ? guide.path : `${guide.path}#${id}`,
        guide: guide.title,
        title,
        text,
      })),
    ),
  );
}

function file(path: string, contentType: string, from: string): ServedFile {
  return { path, contentType, body: () => new Uint8Array(readFileSync(from)) };
}
