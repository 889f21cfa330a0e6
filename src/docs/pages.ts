import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import type { ServedFile } from "../http/files.ts";
import { renderGuide } from "./guide.ts";

interface Guide {
  /** The last part of its path, and of its file. */
  readonly name: string;
  readonly title: string;
}

const GUIDES: readonly Guide[] = [
  { name: "quick-start", title: "Quick start" },
  { name: "verifying", title: "Verifying" },
  { name: "ordering-and-retries", title: "Ordering and retries" },
  { name: "batch", title: "Batch" },
  { name: "events", title: "Events" },
  { name: "going-live", title: "Going live" },
];

const HERE = import.meta.dirname;
const SWAGGER_UI = {
  style: import.meta.resolve("swagger-ui-dist/swagger-ui.css"),
  script: import.meta.resolve("swagger-ui-dist/swagger-ui-bundle.js"),
};
const HTML = "text/html; charset=utf-8";
const CSS = "text/css; charset=utf-8";
const SCRIPT = "text/javascript; charset=utf-8";

/** `/docs`: the reference; below it the guides. All of it from this server, so that it works offline. */
export function docPages(): ServedFile[] {
  return [
    { path: "/docs", contentType: HTML, body: kept(referencePage) },
    ...GUIDES.map((guide) => ({
      path: `/docs/${guide.name}`,
      contentType: HTML,
      body: kept(() => guidePage(guide)),
    })),
    file("/docs/docs.css", CSS, join(HERE, "docs.css")),
    file("/docs/reference.js", SCRIPT, join(HERE, "reference.js")),
    file("/docs/swagger-ui.css", CSS, fileURLToPath(SWAGGER_UI.style)),
    file("/docs/swagger-ui-bundle.js", SCRIPT, fileURLToPath(SWAGGER_UI.script)),
  ];
}

function referencePage(): string {
  return layOut({
    title: "API reference",
    path: "/docs",
    head: `<link rel="stylesheet" href="/docs/swagger-ui.css">
<script defer src="/docs/swagger-ui-bundle.js"></script>
<script defer src="/docs/reference.js"></script>`,
    body: `<div id="reference"><noscript><p>The reference needs JavaScript; the same is in <a href="/openapi.json">openapi.json</a>.</p></noscript></div>`,
  });
}

function guidePage({ name, title }: Guide): string {
  const markdown = readFileSync(join(HERE, "guides", `${name}.md`), "utf8");
  const body = `<main class="guide">\n${renderGuide(markdown)}</main>`;
  return layOut({ title, path: `/docs/${name}`, head: "", body });
}

function layOut(page: { title: string; path: string; head: string; body: string }): string {
  const links = [
    { path: "/docs", title: "API reference" },
    ...GUIDES.map(({ name, title }) => ({ path: `/docs/${name}`, title })),
  ].map(({ path, title }) => {
    const here = path === page.path ? ' aria-current="page"' : "";
    return `<a href="${path}"${here}>${title}</a>`;
  });
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${page.title} · ReviewRelay</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/docs.css">
${page.head}
</head>
<body>
<nav aria-label="Documentation">${links.join("\n")}</nav>
${page.body}
</body>
</html>
`;
}

function file(path: string, contentType: string, from: string): ServedFile {
  return { path, contentType, body: kept(() => new Uint8Array(readFileSync(from))) };
}

function kept<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}
