import { randomBytes } from "node:crypto";
import { join } from "node:path";

import { Elysia } from "elysia";

import { bundleForBrowser, type BundledFile } from "../lib/bundle.ts";
import { codingFor, encode, type Encodings } from "../lib/encodings.ts";
import { Problem } from "../lib/problem.ts";

const PATH = "/dashboard";
const ASSETS = `${PATH}/assets/`;
const PROGRAM = join(import.meta.dirname, "app/main.tsx");
const STYLES = join(import.meta.dirname, "app/main.css");
const FOR_EVER = "public, max-age=31536000, immutable";

interface Asset extends BundledFile {
  readonly encodings: Encodings;
}
type Assets = ReadonlyMap<string, Asset>;
type Bundle = () => Promise<BundledFile[]>;

/** As `app/ui/brand-mark.tsx` draws it. */
const ICON = encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><rect width="24" height="24" rx="7" fill="#1f6feb"/><path d="M6 8h5m-5 8h5m0-8 6 4-6 4" fill="none" stroke="#fff" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"/></svg>',
);

/**
 * The pages at `/dashboard`, to which `/` leads: one document for every path below it, and the files that it loads. They are built from
 * `app/` when they are first asked for: an API without people pays nothing for them.
 */
export function dashboardSite(bundle: Bundle = () => bundleForBrowser(PROGRAM, STYLES)) {
  let building: Promise<Assets> | undefined;
  // Those who come meanwhile wait for the same; after a failure the next one tries again.
  const built = () =>
    (building ??= build(bundle).catch((error: unknown) => {
      building = undefined;
      throw error;
    }));
  const respond = async ({ request, path }: { request: Request; path: string }) => {
    const assets = await built();
    if (!path.startsWith(ASSETS)) return page(assets);
    const asset = assets.get(path.slice(ASSETS.length));
    if (asset === undefined) throw new Problem("not_found");
    return file(asset, request);
  };
  return new Elysia({ name: "dashboard", detail: { hide: true } })
    .get("/", () => new Response(null, { status: 302, headers: { Location: PATH } }))
    .get(PATH, respond)
    .get(`${PATH}/*`, respond);
}

async function build(bundle: Bundle): Promise<Assets> {
  const files = await bundle();
  return new Map(files.map((one) => [one.name, { ...one, encodings: encode(one.bytes) }]));
}

/** Never kept: the address of a single sign-on carries its one-time code, and the nonce is for one answer. */
function page(assets: Assets): Response {
  const nonce = randomBytes(16).toString("base64");
  const entries = [...assets.values()].filter((one) => one.isEntry);
  const links = entries.map(({ name }) =>
    name.endsWith(".css")
      ? `<link rel="stylesheet" href="${ASSETS}${name}">`
      : `<script type="module" nonce="${nonce}" src="${ASSETS}${name}"></script>`,
  );
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>ReviewRelay</title>
<link rel="icon" href="data:image/svg+xml,${ICON}">
${links.join("\n")}
</head>
<body>
<div id="root"><noscript>The dashboard needs JavaScript.</noscript></div>
</body>
</html>
`;
  return new Response(html, {
    headers: {
      ...HEADERS,
      "Content-Type": "text/html; charset=utf-8",
      "Content-Security-Policy": contentSecurityPolicy(nonce),
      "Cache-Control": "no-store",
      "Cross-Origin-Opener-Policy": "same-origin",
    },
  });
}

/** Only what this server has. The components write a few style elements of their own, hence the nonce; logos are anywhere. */
function contentSecurityPolicy(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data: https:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

function file(asset: Asset, request: Request): Response {
  const coding = codingFor(request.headers.get("Accept-Encoding"));
  return new Response(asset.encodings[coding], {
    headers: {
      ...HEADERS,
      "Content-Type": asset.contentType,
      "Cache-Control": FOR_EVER,
      Vary: "Accept-Encoding",
      ...(coding !== "identity" && { "Content-Encoding": coding }),
    },
  });
}

const HEADERS = {
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Resource-Policy": "same-origin",
};
