import { domainToASCII } from "node:url";

/** Maximum length of a mail address in bytes (RFC 5321, 4.5.3.1.3, without the angle brackets). */
export const ADDRESS_BYTES = 254;
const DOMAIN_CHARS = 253;

/**
 * Matches an address without blanks, control characters and invisible characters. It also excludes the characters with
 * which a mail program would read the text as a list, a group, a comment, a display name or a quoted form.
 */
const ADDRESS =
  /^[^\s\p{C}\p{Z}\p{DI}\u2800\ufffd<>()[\]\\,;:@"]+@[^\s\p{C}\p{Z}\p{DI}\u2800\ufffd<>()[\]\\,;:@"]+$/u;
const LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
/**
 * Matches a host name. Its last label must not be a number, because the name would then be an IPv4 address (WHATWG
 * URL).
 */
const HOST = new RegExp(`^(?:${LABEL}\\.)*(?!(?:\\d+|0x[0-9a-f]*)$)${LABEL}$`);
const ASCII = /^[\0-\x7f]*$/;
/**
 * Matches characters that `domainToASCII` must not receive. It parses the host of a URL, so it would decode `%41`, and
 * end the domain at a `/`.
 */
const NO_DOMAIN = /[^a-z0-9.\-\u0080-\u{10ffff}]/u;

/**
 * Returns the spelling of an email that is stored and returned in responses: trimmed and in lower case. NUL is
 * replaced, because PostgreSQL does not accept it in text, and no real address contains one.
 */
export function spellingOf(typed: string): string {
  return typed.trim().toLowerCase().replaceAll("\0", "\uFFFD");
}

/**
 * Returns the normal form of an email, which all spellings of one mailbox share: NFC and lower case, with the domain in
 * ASCII form (UTS 46). Users, locks, limits and recipients are compared and counted by this form. For an address in
 * ASCII it equals the spelling.
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

/** Returns whether a list contains the email in any spelling. */
export function hasMailbox(emails: readonly string[] | null, email: string): boolean {
  return emails?.some((one) => normalEmail(one) === normalEmail(email)) ?? false;
}

/** Removes emails whose mailbox already occurs earlier in the list. */
export function eachMailbox(emails: readonly string[]): string[] {
  return emails.filter((one, i) => !hasMailbox(emails.slice(0, i), one));
}

/** Returns the domain of an email in ASCII form, as the table `sso_domains` stores it; empty if there is none. */
export function emailDomain(email: string): string {
  const at = email.lastIndexOf("@");
  return at === -1 ? "" : domainToASCII(email.slice(at + 1)).replace(/\.$/, "");
}

/**
 * Returns whether the text is a single address to which mail can be sent: no name, list, comment, line break, quoted or
 * bracketed form, and a domain that is a host name. All code that sets an email address calls this function.
 */
export function isMailAddress(text: string): boolean {
  const mailed = mailedAddress(text);
  if ([text, mailed].some((one) => Buffer.byteLength(one) > ADDRESS_BYTES)) return false;
  const domain = mailed.slice(mailed.lastIndexOf("@") + 1);
  // UTS 46 is asked only about a label in punycode (`xn--`), because it rejects no other host name in ASCII.
  const isInvalid = domain.includes("xn--") && domainToASCII(domain) === "";
  const isHost = HOST.test(domain) && domain.length <= DOMAIN_CHARS && !isInvalid;
  // The NFC form is checked, too, because NFC turns U+037E into `;`.
  const nfc = text.normalize("NFC");
  return isHost && ADDRESS.test(text) && (nfc === text || ADDRESS.test(nfc));
}

/** Returns the address to which a mail is sent: the stored address, with its domain in ASCII form. */
export function mailedAddress(email: string): string {
  const normal = normalEmail(email);
  return email.slice(0, email.lastIndexOf("@") + 1) + normal.slice(normal.lastIndexOf("@") + 1);
}
