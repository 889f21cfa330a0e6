import { domainToASCII } from "node:url";

/** The most bytes of a mail address (RFC 5321, 4.5.3.1.3, without the angle brackets). */
export const ADDRESS_BYTES = 254;
const DOMAIN_CHARS = 253;

/**
 * Excludes blanks, control characters, characters that show nothing, and those that let a mail program read the text as
 * a list, a group, a comment, a display name or a quoted form.
 */
const ADDRESS =
  /^[^\s\p{C}\p{Z}\p{DI}\u2800\ufffd<>()[\]\\,;:@"]+@[^\s\p{C}\p{Z}\p{DI}\u2800\ufffd<>()[\]\\,;:@"]+$/u;
const LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
/** A host name whose last label is no number, because the name would be an IPv4 address (WHATWG URL). */
const HOST = new RegExp(`^(?:${LABEL}\\.)*(?!(?:\\d+|0x[0-9a-f]*)$)${LABEL}$`);
const ASCII = /^[\0-\x7f]*$/;
/** `domainToASCII` parses a URL's host: it would decode `%41`, and end the domain at a `/`. */
const NO_DOMAIN = /[^a-z0-9.\-\u0080-\u{10ffff}]/u;

/**
 * Returns the spelling under which an email is stored and answered: trimmed and in lower case. A NUL is replaced,
 * because PostgreSQL accepts no NUL in a text, and no real address contains one.
 */
export function spellingOf(typed: string): string {
  return typed.trim().toLowerCase().replaceAll("\0", "\uFFFD");
}

/**
 * Returns the normal form of an email, which all spellings of one mailbox share: NFC and lower case, with the domain in
 * ASCII form (UTS 46). It is what users, locks, limits and recipients are compared and counted by. The normal form of an
 * address in ASCII is its spelling.
 */
export function normalEmail(typed: string): string {
  const spelling = spellingOf(typed);
  if (ASCII.test(spelling)) return spelling;
  const text = spelling.normalize("NFC").toLowerCase().normalize("NFC");
  const at = text.lastIndexOf("@");
  const domain = text.slice(at + 1);
  if (at === -1 || ASCII.test(domain) || NO_DOMAIN.test(domain)) return text;
  const ascii = domainToASCII(domain);
  return ascii === "" ? text : `${text.slice(0, at)}@${ascii}`;
}

/** Whether a list has an email, in any spelling. */
export function hasMailbox(emails: readonly string[] | null, email: string): boolean {
  return emails?.some((one) => normalEmail(one) === normalEmail(email)) ?? false;
}

/** Returns the emails without those whose mailbox an earlier one has. */
export function eachMailbox(emails: readonly string[]): string[] {
  return emails.filter((one, i) => !hasMailbox(emails.slice(0, i), one));
}

/** Returns the domain of an email in ASCII form, as the table `sso_domains` stores it; empty if there is none. */
export function emailDomain(email: string): string {
  const at = email.lastIndexOf("@");
  return at === -1 ? "" : domainToASCII(email.slice(at + 1)).replace(/\.$/, "");
}

/**
 * Whether the text is a single address that can be mailed: no name, no list, no comment, no line break, no quoted or
 * bracketed form, and a domain that is a host name. Every path that sets an address asks this function.
 */
export function isMailAddress(text: string): boolean {
  const mailed = mailedAddress(text);
  if ([text, mailed].some((one) => Buffer.byteLength(one) > ADDRESS_BYTES)) return false;
  const domain = mailed.slice(mailed.lastIndexOf("@") + 1);
  // Only a label in punycode can make a host name in ASCII invalid (UTS 46).
  const isInvalid = domain.includes("xn--") && domainToASCII(domain) === "";
  const isHost = HOST.test(domain) && domain.length <= DOMAIN_CHARS && !isInvalid;
  // NFC makes a `;` of U+037E, so that the spellings would be judged differently.
  const nfc = text.normalize("NFC");
  return isHost && ADDRESS.test(text) && (nfc === text || ADDRESS.test(nfc));
}

/** Returns the address to which a mail is sent: as it is stored, with the domain in ASCII form. */
export function mailedAddress(email: string): string {
  const normal = normalEmail(email);
  return email.slice(0, email.lastIndexOf("@") + 1) + normal.slice(normal.lastIndexOf("@") + 1);
}
