import { CHAPTERS } from "./contents.ts";

interface Page {
  readonly title: string;
  readonly path: string;
  readonly head: string;
  readonly body: string;
}

/** As the dashboard draws it (app/shell/brand.tsx). */
const MARK = `<svg width="24" height="24" viewBox="0 0 24 24" aria-hidden="true"><rect width="24" height="24" rx="7"/><path d="M6 8h5m-5 8h5m0-8 6 4-6 4"/></svg>`;
const ICON = encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><rect width="24" height="24" rx="7" fill="#1f6feb"/><path d="M6 8h5m-5 8h5m0-8 6 4-6 4" fill="none" stroke="#fff" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"/></svg>',
);

/** A page with the way to all others and back to the dashboard. It is read without a script. */
export function layOut({ title, path, head, body }: Page): string {
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
