/** Name and colour in the mails of tenants without a brand of their own. */
export const OWN_BRAND = "ReviewRelay";
const OWN_COLOR = "#1f6feb";

/** The branding of a tenant's mails. */
export interface MailBrand {
  /** The brand name of the tenant; null if the tenant does not use white label. */
  readonly brand: string | null;
  readonly primaryColor: string;
}

interface MailContent {
  readonly subject: string;
  readonly greeting: string;
  readonly paragraphs: readonly string[];
  /** Names and values, shown as a table after the first paragraph. */
  readonly facts?: readonly (readonly [name: string, value: string])[];
  /** The link that the mail asks its reader to open. */
  readonly link?: { readonly words: string; readonly href: string };
  /**
   * Text that another person wrote. It is shown as a quotation, so that readers do not take it for text of the service.
   */
  readonly quote?: string | null;
}

/**
 * Renders subject, plain text and HTML of a mail in the tenant's brand. All texts are escaped, so they may contain
 * any characters.
 */
export function brandedMail(content: MailContent, { brand, primaryColor }: MailBrand) {
  const name = brand ?? OWN_BRAND;
  const subject = `${name}: ${content.subject}`;
  return {
    subject,
    text: textOf(content, name),
    html: htmlOf({ ...content, subject }, name, primaryColor),
  };
}

function textOf(content: MailContent, name: string): string {
  const { greeting, facts = [], link, quote } = content;
  const [first = "", ...rest] = content.paragraphs;
  const parts = [
    greeting,
    first,
    facts.map(([fact, value]) => `    ${fact}: ${value}`).join("\n"),
    ...rest,
    link === undefined ? "" : `${link.words}: ${link.href}`,
    quote ? quote.replaceAll(/^/gm, "> ") : "",
    name,
  ];
  return `${parts.filter((part) => part !== "").join("\n\n")}\n`;
}

function htmlOf(content: MailContent, name: string, primaryColor: string): string {
  const { subject, greeting, facts = [], link, quote } = content;
  const [first = "", ...rest] = content.paragraphs;
  // Only a colour may get into the style attribute, although the database column accepts any text.
  const color = /^#[0-9a-f]{6}$/i.test(primaryColor) ? primaryColor : OWN_COLOR;
  const rows = facts.map(
    ([fact, value]) =>
      `<tr><th style="text-align:left;vertical-align:top;padding:0.2em 1em 0.2em 0">${escapeHtml(fact)}</th><td style="vertical-align:top;padding:0.2em 0;overflow-wrap:anywhere">${escapeHtml(value)}</td></tr>`,
  );
  return [
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark"><title>${escapeHtml(subject)}</title></head>`,
    `<body style="font-family:sans-serif;max-width:36em"><main>`,
    // Text never has the tenant's colour, because its contrast may be too low, especially in dark mode.
    `<h1 style="font-size:20px;padding-bottom:8px;border-bottom:4px solid;border-color:${color}">${escapeHtml(name)}</h1>`,
    ...[greeting, first].map(paragraph),
    ...(rows.length === 0 ? [] : [`<table role="presentation">${rows.join("")}</table>`]),
    ...rest.map(paragraph),
    ...(link === undefined
      ? []
      : [
          `<p><a href="${escapeHtml(link.href)}" style="color:inherit;font-weight:bold;text-decoration:underline 2px;text-decoration-color:${color}">${escapeHtml(link.words)}</a></p>`,
        ]),
    ...(quote ? [quoted(quote, color)] : []),
    `</main></body></html>`,
  ].join("\n");
}

const paragraph = (text: string) => `<p>${escapeHtml(text)}</p>`;

function quoted(text: string, color: string): string {
  return `<blockquote style="margin:1em 0;padding:0.5em 1em;border-left:4px solid ${color}">${escapeHtml(text).replaceAll("\n", "<br>")}</blockquote>`;
}

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
