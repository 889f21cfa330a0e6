import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import type { ServedFile } from "../http/files.ts";
import { bundleForNode } from "../lib/bundle.ts";
import { IS_EXECUTABLE, ROOT } from "../../db/executable.ts";
import { type RenderedGuide, renderGuide } from "./guide.ts";

const HERE = join(ROOT, "src/docs");
const SWAGGER_UI = join(ROOT, "node_modules/swagger-ui-dist");
/**
 * Path of the command line program for partners. The program is bundled from this path and not imported, because it
 * is a separate program.
 */
const COMMAND = join(ROOT, "src/cli/main.ts");
/** The bundled program inside the executable. */
const BUNDLED_COMMAND = join(ROOT, "dist/reviewrelay.mjs");
const SAMPLES = join(HERE, "verify");
const TEXT = "text/plain; charset=utf-8";
const HTML = "text/html; charset=utf-8";
const CSS = "text/css; charset=utf-8";
const SCRIPT = "text/javascript; charset=utf-8";
const JSON_TYPE = "application/json";

/** Serves the guides and the reference below `/docs`. All assets come from this server, so that they work offline. */
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
    IS_EXECUTABLE
      ? file("/docs/reviewrelay.mjs", SCRIPT, BUNDLED_COMMAND)
      : { path: "/docs/reviewrelay.mjs", contentType: SCRIPT, body: () => bundleForNode(COMMAND) },
    ...readdirSync(SAMPLES).map((name) => file(`/docs/samples/${name}`, TEXT, join(SAMPLES, name))),
    file("/docs/docs.css", CSS, join(HERE, "docs.css")),
    file("/docs/docs.js", SCRIPT, join(HERE, "docs.js")),
    file("/docs/reference.js", SCRIPT, join(HERE, "reference.js")),
    file("/docs/swagger-ui.css", CSS, join(SWAGGER_UI, "swagger-ui.css")),
    file("/docs/swagger-ui-bundle.js", SCRIPT, join(SWAGGER_UI, "swagger-ui-bundle.js")),
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

/** Returns every section of every guide as JSON; the search runs in the browser. */
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

interface Guide {
  /** The name of the guide's file in ./guides. */
  readonly name: string;
  readonly title: string;
  readonly path: string;
}

interface Chapter {
  readonly title: string;
  readonly guides: readonly Guide[];
}

const guide = (name: string, title: string): Guide => ({ name, title, path: `/docs/${name}` });

/** Chapters of the guides, in reading order. */
const CHAPTERS: readonly Chapter[] = [
  {
    title: "Start",
    guides: [
      { name: "index", title: "Overview", path: "/docs" },
      guide("getting-started", "Getting started"),
      guide("command", "The command"),
    ],
  },
  {
    title: "Sign-in",
    guides: [
      guide("sign-in", "Sign-in and tokens"),
      guide("oauth", "OAuth for apps"),
      guide("single-sign-on", "Single sign-on"),
    ],
  },
  {
    title: "Webhooks",
    guides: [
      guide("receiving", "Receiving"),
      guide("verifying", "Verifying and replay"),
      guide("events", "Events"),
      guide("ordering-and-retries", "Ordering and retries"),
      guide("batch", "Batch"),
      guide("recovery", "Recovery"),
      guide("going-live", "Going live"),
      guide("embedding", "The dashboard in your pages"),
    ],
  },
  { title: "Review sites", guides: [guide("review-sites", "Reporting reviews")] },
  {
    title: "The API",
    guides: [
      guide("sdks", "SDKs"),
      guide("errors-and-limits", "Errors and limits"),
      guide("versioning", "Versioning"),
    ],
  },
];

export const GUIDES = CHAPTERS.flatMap(({ guides }) => guides);

interface Page {
  readonly title: string;
  readonly path: string;
  readonly head: string;
  readonly body: string;
}

/** The ReviewRelay logo, the same drawing as in the dashboard (app/shell/brand.tsx). */
const MARK = `<svg width="24" height="24" viewBox="0 0 24 24" aria-hidden="true"><rect width="24" height="24" rx="7"/><path d="M6 8h5m-5 8h5m0-8 6 4-6 4"/></svg>`;
const ICON = encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><rect width="24" height="24" rx="7" fill="#1f6feb"/><path d="M6 8h5m-5 8h5m0-8 6 4-6 4" fill="none" stroke="#fff" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"/></svg>',
);

/** Renders a page with the navigation to all guides and the dashboard. It is readable without JavaScript. */
function layOut({ title, path, head, body }: Page): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · ReviewRelay</title>
<link rel="icon" href="data:image/svg+xml,${ICON}">
<link rel="stylesheet" href="/docs/docs.css">
<script defer src="/docs/docs.js"></script>
${head}
</head>
<body>
<a class="skip" href="#content">To the content</a>
<header>
<a class="brand" href="/docs">${MARK} ReviewRelay <span>Docs</span></a>
<div id="search" role="search"></div>
<a class="back" href="/dashboard">Dashboard</a>
</header>
<div class="page">
<nav class="contents" aria-label="Documentation">
${CHAPTERS.map((chapter) => chapterLinks(chapter, path)).join("\n")}
</nav>
<div id="content" class="content" tabindex="-1">
${body}
</div>
</div>
</body>
</html>
`;
}

function chapterLinks({ title, guides }: (typeof CHAPTERS)[number], here: string): string {
  const reference = { title: "Reference", path: "/docs/reference" };
  const all = title === "The API" ? [...guides, reference] : guides;
  const links = all.map((one) => {
    const current = one.path === here ? ' aria-current="page"' : "";
    return `<li><a href="${one.path}"${current}>${one.title}</a></li>`;
  });
  return `<p>${title}</p>\n<ul>${links.join("\n")}</ul>`;
}
