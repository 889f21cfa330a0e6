import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { bundleForNode } from "../lib/bun.ts";
import { IS_EXECUTABLE, ROOT } from "../../db/executable.ts";
import type { ServedFile } from "../http/files.ts";
import { type RenderedGuide, renderGuide } from "./guide.ts";
import {
  REFERENCE,
  REFERENCE_PATHS,
  type ReferencePage,
  referencePages,
} from "./reference/page.ts";

const HERE = join(ROOT, "src/docs");
/**
 * Path of the command line program for partners. It is a separate program, so it is bundled from this path and not
 * imported.
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

/**
 * Serves the guides and the reference below `/docs`. All assets come from this server, so that the pages work offline.
 * The first request of the reference renders it from the OpenAPI document, which `describe` returns.
 */
export function docPages(
  serverRoot: string,
  describe: () => Readonly<Record<string, unknown>>,
): ServedFile[] {
  let made: readonly ReferencePage[] | undefined;
  const reference = () => (made ??= referencePages(describe()));
  const rendered = new Map<string, RenderedGuide>();
  const render = ({ name }: Guide): RenderedGuide => {
    const known = rendered.get(name);
    if (known !== undefined) return known;
    const markdown = readFileSync(join(HERE, "guides", `${name}.md`), "utf8");
    const guide = renderGuide(markdown, serverRoot);
    rendered.set(name, guide);
    return guide;
  };
  return [
    ...GUIDES.map((guide) => ({
      path: guide.path,
      contentType: HTML,
      body: () => guidePage(guide, render(guide)),
    })),
    ...REFERENCE_PATHS.map((path) => ({
      path,
      contentType: HTML,
      body: () => referencePage(reference(), path),
    })),
    {
      path: "/docs/search.json",
      contentType: JSON_TYPE,
      body: () => JSON.stringify([...guideSections(render), ...operationSections(reference())]),
    },
    IS_EXECUTABLE
      ? file("/docs/reviewrelay.mjs", SCRIPT, BUNDLED_COMMAND)
      : { path: "/docs/reviewrelay.mjs", contentType: SCRIPT, body: () => bundleForNode(COMMAND) },
    ...readdirSync(SAMPLES).map((name) => file(`/docs/samples/${name}`, TEXT, join(SAMPLES, name))),
    file("/docs/docs.css", CSS, join(HERE, "docs.css")),
    file("/docs/docs.js", SCRIPT, join(HERE, "docs.js")),
  ];
}

function referencePage(pages: readonly ReferencePage[], path: string): string {
  const page = pages.find((one) => one.path === path);
  if (page === undefined) throw new Error(`The reference has no page ${path}.`);
  const title = path === REFERENCE ? "API reference" : `${page.title} · API reference`;
  const body = `<main class="guide reference">\n${page.html()}</main>`;
  return layOut({ title, path, reference: pages, body });
}

function guidePage({ title, path }: Guide, { html, sections }: RenderedGuide): string {
  const parts = sections.filter(({ depth }) => depth === 2);
  const links = parts.map(({ id, title: part }) => `<li><a href="#${id}">${part}</a></li>`);
  const within =
    links.length < 3
      ? ""
      : `<nav class="within" aria-label="On this page"><ul>${links.join("")}</ul></nav>`;
  return layOut({ title, path, body: `<main class="guide">\n${html}</main>\n${within}` });
}

/** A section in the search index; the search itself runs in the browser. */
interface Section {
  readonly path: string;
  readonly guide: string;
  readonly title: string;
  readonly text: string;
}

function guideSections(render: (guide: Guide) => RenderedGuide): Section[] {
  return GUIDES.flatMap((guide) =>
    render(guide).sections.map(({ id, title, depth, text }) => ({
      path: depth === 1 ? guide.path : `${guide.path}#${id}`,
      guide: guide.title,
      title,
      text,
    })),
  );
}

function operationSections(pages: readonly ReferencePage[]): Section[] {
  return pages.flatMap(({ path, title, groups }) =>
    [...groups.values()].flat().map((one) => ({
      path: `${path}#${one.name}`,
      guide: `API, ${title}`,
      title: one.summary,
      text: `${one.method} ${one.path} ${one.name}`,
    })),
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
  readonly body: string;
  /** The pages of the reference that the navigation lists; absent for other pages. */
  readonly reference?: readonly ReferencePage[];
}

/**
 * The logo, the same drawing as in the dashboard (app/shell/brand.tsx). The pages do not name the service, because
 * partners know it under different names.
 */
const MARK = `<svg width="24" height="24" viewBox="0 0 24 24" aria-hidden="true"><rect width="24" height="24" rx="7"/><path d="M6 8h5m-5 8h5m0-8 6 4-6 4"/></svg>`;
const FAVICON = encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><rect width="24" height="24" rx="7" fill="#1f6feb"/><path d="M6 8h5m-5 8h5m0-8 6 4-6 4" fill="none" stroke="#fff" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"/></svg>',
);

/** Renders a page with the navigation to all guides and the dashboard. The page is readable without JavaScript. */
function layOut({ title, path, body, reference = [] }: Page): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · Developer docs</title>
<link rel="icon" href="data:image/svg+xml,${FAVICON}">
<link rel="stylesheet" href="/docs/docs.css">
<script defer src="/docs/docs.js"></script>
</head>
<body>
<a class="skip" href="#content">To the content</a>
<header>
<a class="brand" href="/docs">${MARK} Developer docs</a>
<button class="menu" type="button" popovertarget="contents">Menu</button>
<div id="search" role="search"></div>
<a class="back" href="/dashboard">Dashboard</a>
</header>
<div class="page">
<nav class="contents" id="contents" popover aria-label="Documentation">
${reference.length === 0 ? "" : referenceLinks(reference, path)}
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
  const reference = { title: "API reference", path: REFERENCE };
  const isShown = title === "The API" && !here.startsWith(REFERENCE);
  const all = isShown ? [...guides, reference] : guides;
  return `<p>${title}</p>\n<ul>${all.map((one) => linkTo(one, here)).join("\n")}</ul>`;
}

/** Renders the navigation of the reference: its pages, and the operations of the current one. */
function referenceLinks(pages: readonly ReferencePage[], here: string): string {
  const links = pages.map((one) => linkTo(one, here, one.path === here ? operationLinks(one) : ""));
  return `<p>API reference</p>\n<ul>${links.join("\n")}</ul>`;
}

function operationLinks({ groups }: ReferencePage): string {
  const lists = [...groups].map(([title, operations]) => {
    const links = operations.map((one) => `<li><a href="#${one.name}">${one.summary}</a></li>`);
    return `${title === "" ? "" : `<li class="group">${title}</li>`}${links.join("\n")}`;
  });
  return lists.length === 0 ? "" : `<ul>${lists.join("\n")}</ul>`;
}

function linkTo(one: { title: string; path: string }, here: string, inside = ""): string {
  const current = one.path === here ? ' aria-current="page"' : "";
  return `<li><a href="${one.path}"${current}>${one.title}</a>${inside}</li>`;
}
