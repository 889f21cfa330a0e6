import { escapeHtml } from "../lib/html.ts";
import type { NewMail } from "../outbox/mail.ts";
import type { Owner, Subject } from "./model.ts";

/** The sender's name and colour where the partner has no brand of its own. */
const OWN_BRAND = "ReviewRelay";
const OWN_COLOR = "#1f6feb";

interface MailContent {
  readonly subject: string;
  readonly greeting: string;
  readonly paragraphs: readonly string[];
  /** Text of somebody else, which the mail sets apart from ours. */
  readonly quote?: string | null;
}

/** Contract 9.5: tells the reviewer that the business has answered on the review site. */
export function homeownerNotice(to: string, about: Subject): NewMail {
  const { storeName, accountName, siteName, reviewer, responseBody } = about;
  const content = {
    subject: `${storeName} responded to your review`,
    greeting: reviewer === null ? "Hello," : `Hello ${reviewer},`,
    paragraphs: [
      `${storeName} (${accountName}) has responded to the review that you wrote on ${siteName}.`,
      ...(responseBody === null ? [`You can read the response on ${siteName}.`] : []),
    ],
    quote: responseBody,
  };
  return { ...mailOf(to, content, about), kind: "homeowner_notice" };
}

const FLAG_TEXT: Readonly<Record<string, string>> = {
  under_review: "is under review",
  accepted: "was accepted",
  rejected: "was rejected",
  withdrawn: "was withdrawn",
};

/** Contract 9.5: a change of a flag's status, to the account owner. */
export function flagStatusMail(owner: Owner, about: Subject, to: string): NewMail {
  const { storeName, siteName, rate, reviewer } = about;
  const what = FLAG_TEXT[to] ?? `is now ${to}`;
  const content = {
    subject: `The flag on a review of ${storeName} ${what}`,
    greeting: `Hello ${owner.name},`,
    paragraphs: [
      `The flag on the review by ${reviewer ?? "an anonymous reviewer"} (${rate} of 5 on ${siteName}) of ${storeName} ${what}.`,
      `The number of the review is ${about.reviewId}.`,
    ],
  };
  return { ...mailOf(owner.email, content, about), kind: "flag_status_changed" };
}

function mailOf(to: string, content: MailContent, { brand, primaryColor }: Subject) {
  const name = brand ?? OWN_BRAND;
  const { greeting, paragraphs, quote } = content;
  const subject = `${name}: ${content.subject}`;
  const quoted = quote ? [quote.replaceAll(/^/gm, "> ")] : [];
  const text = [greeting, ...paragraphs, ...quoted, name].join("\n\n");
  return {
    to,
    subject,
    text: `${text}\n`,
    html: htmlOf({ ...content, subject }, name, primaryColor),
  };
}

function htmlOf(content: MailContent, name: string, primaryColor: string): string {
  const { subject, greeting, paragraphs, quote } = content;
  // The column holds any text; a style attribute must hold a colour and nothing else.
  const color = /^#[0-9a-f]{6}$/i.test(primaryColor) ? primaryColor : OWN_COLOR;
  const quoted = (text: string) =>
    `<blockquote style="margin:1em 0;padding:0.5em 1em;border-left:4px solid ${color}">${escapeHtml(text).replaceAll("\n", "<br>")}</blockquote>`;
  return [
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${escapeHtml(subject)}</title></head>`,
    `<body style="font-family:sans-serif;max-width:36em">`,
    `<p style="font-size:20px;font-weight:bold;color:${color}">${escapeHtml(name)}</p>`,
    ...[greeting, ...paragraphs].map((one) => `<p>${escapeHtml(one)}</p>`),
    ...(quote ? [quoted(quote)] : []),
    `</body></html>`,
  ].join("\n");
}
