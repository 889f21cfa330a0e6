import { randomBytes } from "node:crypto";

import type { Branding } from "../queries/clients.ts";
import { formTargetsOf } from "../redirect-uri.ts";
import { html, type Html } from "./html.ts";
import { logoOf, styleSheet } from "./theme.ts";

interface PageContent {
  readonly branding: Branding;
  readonly title: string;
  readonly body: Html;
  /** Where the answers to its form may lead; undefined for a page without a form. */
  readonly redirectUri?: string;
  /** Where the browser goes on to by itself. */
  readonly goesOnTo?: string;
}

export interface PageHead {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Renders a page of the service's own (contract 5.4): no script, only the logo is foreign. */
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

function document({ branding, title, body, goesOnTo }: PageContent, nonce: string): Html {
  const logo = logoOf(branding);
  // Within the document `same-origin` takes the place of the header's policy: under `no-referrer` browsers send the
  // form with `Origin: null`, and the check of the origin could not tell it from a stranger's.
  return html`<html lang="en">
    <head>
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <meta name="referrer" content="same-origin" />
      <meta name="robots" content="noindex" />
      ${goesOnTo && html`<meta http-equiv="refresh" content="0;url=${goesOnTo}" />`}
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
        ${body}
      </main>
    </body>
  </html> `;
}

/** Browsers hold a form to its policy through the redirects that answer it, so the client's own place is in it. */
function contentSecurityPolicy({ branding, redirectUri }: PageContent, nonce: string): string {
  const logo = logoOf(branding);
  const targets = redirectUri === undefined ? "'none'" : `'self' ${formTargetsOf(redirectUri)}`;
  return [
    "default-src 'none'",
    `style-src 'nonce-${nonce}'`,
    `img-src ${logo?.origin ?? "'none'"}`,
    `form-action ${targets}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}
