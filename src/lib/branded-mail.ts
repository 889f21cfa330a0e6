/** The sender's name and colour where the tenant has no brand of its own. */
const OWN_BRAND = "ReviewRelay";
const OWN_COLOR = "#1f6feb";

/** How a tenant's mails look. */
export interface MailBrand {
  /** Null without a white label. */
  readonly brand: string | null;
  readonly primaryColor: string;
}

interface MailContent {
  readonly subject: string;
  readonly greeting: string;
  readonly paragraphs: readonly string[];
  /** What is at stake, by name; shown after the first paragraph. */
  readonly facts?: readonly (readonly [name: string, value: string])[];
  /** Where to go on. */
  readonly link?: { readonly words: string; readonly href: string };
  /** Text of somebody else, which the mail sets apart from ours. */
  readonly quote?: string | null;
}

/** Subject, plain text and HTML of a mail in the tenant's brand; every text may hold anything. */
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
  // The column holds any text; a style attribute must hold a colour and nothing else.
  const color = /^#[0-9a-f]{6}$/i.test(primaryColor) ? primaryColor : OWN_COLOR;
  const rows = facts.map(
    ([fact, value]) =>
      `<tr><th style="text-align:left;vertical-align:top;padding:0.2em 1em 0.2em 0">${escapeHtml(fact)}</th><td style="vertical-align:top;padding:0.2em 0;overflow-wrap:anywhere">${escapeHtml(value)}</td></tr>`,
  );
  return [
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark"><title>${escapeHtml(subject)}</title></head>`,
    `<body style="font-family:sans-serif;max-width:36em">`,
    // No text has the tenant's colour: it may be faint, or the reader's mails dark.
    `<p style="font-size:20px;font-weight:bold;padding-bottom:8px;border-bottom:4px solid;border-color:${color}">${escapeHtml(name)}</p>`,
    ...[greeting, first].map(paragraph),
    ...(rows.length === 0 ? [] : [`<table role="presentation">${rows.join("")}</table>`]),
    ...rest.map(paragraph),
    ...(link === undefined
      ? []
      : [
          `<p><a href="${escapeHtml(link.href)}" style="color:inherit;font-weight:bold;text-decoration:underline 2px;text-decoration-color:${color}">${escapeHtml(link.words)}</a></p>`,
        ]),
    ...(quote ? [quoted(quote, color)] : []),
    `</body></html>`,
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

/** Text as it may stand between tags and in quoted attributes. */
function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => ENTITIES[sign] ?? sign);
}
