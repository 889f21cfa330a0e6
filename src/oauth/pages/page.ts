import { randomBytes } from "node:crypto";

import { hexColor, inkOn } from "../../lib/color.ts";
import type { Branding } from "../queries.ts";
import { formTargetsOf, isHttpsOrigin } from "../redirect-uri.ts";

/** HTML markup that is escaped already. */
class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type HtmlPart = Html | string | number | undefined | readonly Html[];

/**
 * Builds HTML markup and escapes every inserted part that is not `Html` already. Attribute values must be in double
 * quotes.
 */
export function html(strings: TemplateStringsArray, ...parts: readonly HtmlPart[]): Html {
  const text = strings.map((one, i) => one + (i < parts.length ? render(parts[i]) : ""));
  return new Html(text.join(""));
}

function render(part: HtmlPart): string {
  if (part === undefined) return "";
  if (part instanceof Html) return part.text;
  if (typeof part === "object") return part.map((one) => one.text).join("");
  return escape(String(part));
}

const HTML_ESCAPES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escape(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => HTML_ESCAPES[character] ?? "");
}

interface PageContent {
  readonly branding: Branding;
  readonly title: string;
  readonly body: Html;
  /** The redirect URI to which the page's form may lead; undefined for a page without a form. */
  readonly redirectUri?: string;
  /** The text of the page's only script. */
  readonly script?: string;
  /** URL to which the browser continues without a click of the user. */
  readonly refreshTo?: string;
}

export interface PageHead {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Renders an HTML page of the service (contract 5.4). Only the page that asks for a passkey has a script, and only the
 * logo comes from another origin.
 */
export function pageResponse(content: PageContent, { status, headers = {} }: PageHead): Response {
  const nonce = randomBytes(16).toString("base64");
  return new Response(`<!doctype html>\n${document(content, nonce).text}`, {
    status,
    headers: {
      "Content-Type": "text/html; charset=utf-8",
      "Cache-Control": "no-store",
      "Content-Security-Policy": contentSecurityPolicy(content, nonce),
      "Referrer-Policy": "no-referrer",
      "X-Frame-Options": "DENY",
      ...headers,
    },
  });
}

function document({ branding, title, body, script, refreshTo }: PageContent, nonce: string): Html {
  const logo = logoOf(branding);
  // The nonce is not escaped, because base64 has no character that HTML escapes.
  const withScript =
    script === undefined
      ? body
      : new Html(`${body.text}\n<script nonce="${nonce}">${script}</script>`);
  // This meta element replaces the header's `no-referrer` within the document. Under `no-referrer`, browsers would
  // submit the form with `Origin: null`, and the origin check could not distinguish it from a form of another site.
  return html`<html lang="en">
    <head>
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <meta name="referrer" content="same-origin" />
      <meta name="robots" content="noindex" />
      ${refreshTo && html`<meta http-equiv="refresh" content="0;url=${refreshTo}" />`}
      <title>${title} – ${branding.name}</title>
      <style nonce="${nonce}">
        ${styleSheet(branding)}
      </style>
    </head>
    <body>
      <main>
        <header>
          ${logo && html`<img src="${logo.src}" alt="" />`}<span>${branding.name}</span>
        </header>
        <h1>${title}</h1>
        ${withScript}
      </main>
    </body>
  </html> `;
}

/**
 * Builds the content security policy of a page. Browsers also apply `form-action` to the redirects that answer a
 * form, so the policy must name the client's redirect target.
 */
function contentSecurityPolicy(
  { branding, redirectUri, script }: PageContent,
  nonce: string,
): string {
  const logo = logoOf(branding);
  const targets = redirectUri === undefined ? "'none'" : `'self' ${formTargetsOf(redirectUri)}`;
  return [
    "default-src 'none'",
    ...(script === undefined ? [] : [`script-src 'nonce-${nonce}'`]),
    `style-src 'nonce-${nonce}'`,
    `img-src ${logo?.origin ?? "'none'"}`,
    `form-action ${targets}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

const DEFAULT_COLOR = "#1f4fd8";

/** Returns the tenant's logo if its URL is https and has an origin that is safe in a content security policy. */
export function logoOf({ logoUrl }: Branding): { src: string; origin: string } | undefined {
  if (logoUrl === null || !URL.canParse(logoUrl)) return undefined;
  const { href, origin } = new URL(logoUrl);
  return isHttpsOrigin(origin) ? { src: href, origin } : undefined;
}

/**
 * Builds the style sheet of a page. The page follows the reader's light or dark setting; the tenant's colour appears
 * only on buttons and the top border.
 */
function styleSheet(branding: Branding): Html {
  const color = hexColor(branding.primaryColor, DEFAULT_COLOR);
  return new Html(`
:root { color-scheme: light dark; --brand: ${color}; --on-brand: ${inkOn(color)};
  --page: #f4f5f7; --card: #ffffff; --text: #1b1f27; --soft: #4a5261; --line: #767d8a; --bad: #a4161a; --bad-soft: #fdecec; }
@media (prefers-color-scheme: dark) { :root { --page: #14161b; --card: #1e2128; --text: #eef0f4; --soft: #b7bdc9;
  --line: #868e9c; --bad: #ffb3b3; --bad-soft: #3d2024; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 1rem; min-height: 100vh; display: flex; align-items: center; justify-content: center;
  background: var(--page); color: var(--text); font: 1rem/1.5 system-ui, sans-serif; }
main { width: 100%; max-width: 26rem; padding: 1.5rem; background: var(--card); border: 1px solid var(--line);
  border-top: 0.375rem solid var(--brand); border-radius: 0.5rem; }
header { display: flex; align-items: center; gap: 0.75rem; color: var(--soft); overflow-wrap: anywhere; }
header img { max-height: 2.5rem; max-width: 8rem; }
h1 { margin: 0.75rem 0; font-size: 1.375rem; line-height: 1.25; overflow-wrap: anywhere; }
p, li { overflow-wrap: anywhere; }
label { display: block; margin: 1rem 0 0.25rem; font-weight: 600; }
input { width: 100%; min-height: 2.75rem; padding: 0.5rem 0.75rem; font: inherit; color: inherit; background: transparent;
  border: 1px solid var(--line); border-radius: 0.375rem; }
button { width: 100%; min-height: 2.75rem; margin-top: 1rem; padding: 0.5rem 1rem; font: inherit; font-weight: 600;
  cursor: pointer; border: 1px solid var(--text); border-radius: 0.375rem; background: var(--brand); color: var(--on-brand); }
button.plain { background: transparent; color: var(--text); }
button.quiet { border-color: transparent; color: var(--soft); }
a { color: inherit; }
:focus-visible { outline: 3px solid var(--text); outline-offset: 2px; }
.problem { padding: 0.75rem; border: 1px solid var(--bad); border-radius: 0.375rem; background: var(--bad-soft); color: var(--bad); }
.soft { color: var(--soft); }
`);
}

/** Branding of a page when no client, and therefore no tenant, is known. */
const NO_TENANT_BRANDING: Branding = { name: "Sign-in", primaryColor: "", logoUrl: null };

/**
 * Renders an error page that ends the authorization flow, because there is no URL to which the user can safely be
 * redirected.
 */
export function failurePage(message: string, head: PageHead): Response {
  const body = html`<p class="problem" role="alert">${message}</p>
    <p>Go back to the app that you came from and start again.</p>`;
  return pageResponse({ branding: NO_TENANT_BRANDING, title: "The sign-in failed", body }, head);
}
