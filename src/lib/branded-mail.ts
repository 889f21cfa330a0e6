import { channelsOf, hexColor, inkOn } from "./color.ts";

/** Name and colour in the mails of tenants without a brand of their own. */
export const OWN_BRAND = "ReviewRelay";
const OWN_COLOR = "#1f6feb";

/** The branding of a tenant's mails. */
export interface MailBrand {
  /** The brand name of the tenant; null if the tenant does not use white label. */
  readonly brand: string | null;
  readonly primaryColor: string;
  readonly logoUrl: string | null;
}

/** The columns of a company that decide on the branding of its mails. */
interface BrandedCompany {
  readonly whiteLabelEnabled: boolean;
  readonly brandName: string | null;
  readonly primaryColor: string;
  readonly logoUrl: string | null;
}

/** Returns the branding of the mails of a company, with its own name only if white label is on. */
export function mailBrandOf(company: BrandedCompany): MailBrand {
  const { whiteLabelEnabled, brandName, primaryColor, logoUrl } = company;
  return { brand: whiteLabelEnabled ? brandName : null, primaryColor, logoUrl };
}

/** The branding of mails to people of no known company. */
export const NO_BRAND: MailBrand = { brand: null, primaryColor: OWN_COLOR, logoUrl: null };

interface MailContent {
  /** Subject of the mail, and the heading of its HTML. */
  readonly subject: string;
  /** Name of the recipient; null for an address that does not belong to a person whom we know. */
  readonly name: string | null;
  readonly paragraphs: readonly string[];
  /** Text that another person wrote. It is shown as a quotation, so that readers do not take it for ours. */
  readonly quote?: string | null;
  /** Names and values, shown as a table after the first paragraph. */
  readonly facts?: readonly (readonly [name: string, value: string])[];
  /** The code that the mail brings. It is the only run of six digits in the text and the HTML. */
  readonly code?: string;
  /** The link that the mail asks its reader to open. */
  readonly link?: { readonly words: string; readonly href: string };
  /** Paragraphs after the code or the link. */
  readonly after?: readonly string[];
  /** Names and values, shown as a table at the end. */
  readonly details?: MailContent["facts"];
  /** Why the recipient gets the mail, in small print at its end. */
  readonly reason: string;
}

/**
 * Renders a mail in the tenant's brand: the name of its sender, its subject, and the same content as plain text and as
 * HTML. All texts are escaped, so they may contain any characters. The HTML has no image but the tenant's logo, and
 * reads the same without it.
 */
export function brandedMail(content: MailContent, branding: MailBrand) {
  const name = branding.brand ?? OWN_BRAND;
  return {
    ...(branding.brand !== null && { sender: branding.brand }),
    subject: content.subject,
    text: textOf(content, name),
    html: htmlOf(content, { ...branding, name }),
  };
}

/** Maximum number of characters of a text that another person wrote, within a line of a mail. */
const INERT_CHARS = 200;

/**
 * Makes a text that another person wrote safe to show within a mail: one line, limited length, and no `://`, so that
 * mail programs do not turn it into a link.
 */
export function inert(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Z}]+|:\/\//gu, " ").slice(0, INERT_CHARS);
}

const greetingOf = (name: string | null) => (name === null ? "Hello," : `Hello ${inert(name)},`);

function textOf(content: MailContent, name: string): string {
  const { quote, facts = [], code, link, after = [], details = [], reason } = content;
  const [first = "", ...rest] = content.paragraphs;
  const parts = [
    greetingOf(content.name),
    first,
    quote ? quote.replaceAll(/^/gm, "> ") : "",
    lines(facts),
    ...rest,
    code === undefined ? "" : `    ${code}`,
    link === undefined ? "" : `${link.words}:\n    ${link.href}`,
    ...after,
    lines(details),
    reason,
    name,
  ];
  return `${parts.filter((part) => part !== "").join("\n\n")}\n`;
}

const lines = (facts: NonNullable<MailContent["facts"]>) =>
  facts.map(([fact, value]) => `    ${fact}: ${value}`).join("\n");

/** A border that is visible in light and dark mode. */
const LINE = "1px solid rgba(128,128,128,.4)";
const FONT = "-apple-system,BlinkMacSystemFont,'Segoe UI',Roboto,Helvetica,Arial,sans-serif";
const PALE = "font-size:14px;opacity:.75";

/**
 * Renders the HTML. Texts and backgrounds keep the colours of the mail program, so that they suit its light or dark
 * mode. The tenant's colour is only on borders and below the button's text, because its contrast as a text colour may be
 * too low.
 */
function htmlOf(content: MailContent, branding: MailBrand & { readonly name: string }): string {
  const { subject, quote, facts = [], code, link, after = [], details = [], reason } = content;
  const [first = "", ...rest] = content.paragraphs;
  const color = hexColor(branding.primaryColor, OWN_COLOR);
  return [
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><meta name="color-scheme" content="light dark"><meta name="supported-color-schemes" content="light dark"><title>${escapeHtml(subject)}</title><style>:root{color-scheme:light dark}</style></head>`,
    `<body style="margin:0;padding:24px 12px;font:16px/1.5 ${FONT}"><main style="max-width:560px;margin:0 auto">`,
    // Lists of mails show the first words of a mail, which would otherwise be the name of the sender again.
    `<div style="display:none">${escapeHtml(first)}</div>`,
    header(branding),
    `<div style="padding:24px;border:${LINE};border-top:4px solid ${rgb(color)};border-radius:8px">`,
    `<h1 style="margin:0 0 16px;font-size:22px;line-height:1.3;overflow-wrap:anywhere">${escapeHtml(subject)}</h1>`,
    ...[greetingOf(content.name), first].map((text) => paragraph(text)),
    ...(quote ? [quoted(quote, color)] : []),
    table(facts),
    ...rest.map((text) => paragraph(text)),
    ...(code === undefined ? [] : [bigCode(code)]),
    ...(link === undefined ? [] : [button(link, color)]),
    ...after.map((text) => paragraph(text)),
    table(details),
    `</div>`,
    `<div style="padding:16px 24px">${paragraph(reason, PALE)}`,
    ...(link === undefined
      ? []
      : [
          `<p style="${PALE};margin:0;overflow-wrap:anywhere">If the button does not work, open this address in your browser:<br>${escapeHtml(link.href)}</p>`,
        ]),
    `</div></main></body></html>`,
  ].join("\n");
}

const paragraph = (text: string, style = "") =>
  `<p style="margin:0 0 16px;overflow-wrap:anywhere${style && `;${style}`}">${escapeHtml(text)}</p>`;

/** The brand of the sender. The logo lies on white, because it may be dark, and the name is beside it in any case. */
function header({ name, logoUrl }: { readonly name: string; readonly logoUrl: string | null }) {
  const logo =
    logoUrl?.startsWith("https://") !== true
      ? ""
      : `<img src="${escapeHtml(logoUrl)}" alt="" height="32" style="height:32px;max-width:160px;padding:4px;margin-right:10px;border-radius:6px;background:#fff;vertical-align:middle">`;
  return `<p style="margin:0;padding:0 24px 16px;font-size:18px;font-weight:600">${logo}<span style="vertical-align:middle">${escapeHtml(name)}</span></p>`;
}

function table(facts: NonNullable<MailContent["facts"]>): string {
  if (facts.length === 0) return "";
  const rows = facts.map(
    ([fact, value]) =>
      `<tr><th scope="row" style="width:32%;text-align:left;vertical-align:top;padding:8px 12px 8px 0;border-top:${LINE};font-weight:600">${escapeHtml(fact)}</th><td style="vertical-align:top;padding:8px 0;border-top:${LINE};overflow-wrap:anywhere">${unbroken(escapeHtml(value))}</td></tr>`,
  );
  return `<table style="width:100%;margin:0 0 16px;border-collapse:collapse;border-bottom:${LINE};font-size:15px">${rows.join("")}</table>`;
}

/** Keeps ids on one line, also of a narrow screen, so that a click selects all of one. */
const unbroken = (html: string) =>
  html.replaceAll(ULIDS, '<span style="white-space:nowrap;font-size:12px">$&</span>');
const ULIDS = /\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b/g;

const bigCode = (code: string) =>
  `<p style="margin:0 0 16px;padding:16px;border:${LINE};border-radius:8px;text-align:center;font:600 32px/1.2 ui-monospace,Menlo,Consolas,monospace;letter-spacing:6px">${escapeHtml(code)}</p>`;

/** The button is a cell of a table, because Outlook ignores the padding of a link. */
function button({ words, href }: NonNullable<MailContent["link"]>, color: string): string {
  return `<table role="presentation" cellpadding="0" cellspacing="0" style="margin:8px 0 20px"><tr><td style="padding:12px 20px;border:${LINE};border-radius:8px;background:${rgb(color)}"><a href="${escapeHtml(href)}" style="color:${inkOn(color)};font-weight:600;text-decoration:none">${escapeHtml(words)}</a></td></tr></table>`;
}

function quoted(text: string, color: string): string {
  return `<blockquote style="margin:0 0 16px;padding:4px 16px;border-left:4px solid ${rgb(color)};overflow-wrap:anywhere">${escapeHtml(text).replaceAll("\n", "<br>")}</blockquote>`;
}

/** Writes a hex colour without its six digits, which a mail program might take for the code of the mail. */
const rgb = (color: string) => `rgb(${channelsOf(color).join(",")})`;

const ENTITIES: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Escapes text for use between tags and in quoted attributes. */
function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => ENTITIES[sign] ?? sign);
}
