import { brandedMail, inert, NO_BRAND, OWN_BRAND } from "../../lib/branded-mail.ts";
import { utcTime } from "../../lib/clock.ts";
import type { NewMail } from "../../outbox/mail.ts";
import { SECURITY_REASON } from "../sign-in/security-mails.ts";
import type { Inviter, MailRecipient } from "../user-queries.ts";
import type { CodeType } from "./model.ts";

const CODES: Record<CodeType, { readonly purpose: string; readonly reason: string }> = {
  forgot_password: {
    purpose: "choose a new password",
    reason: "You get this email because a new password was requested for this address.",
  },
  change_password: {
    purpose: "change your password",
    reason: "You get this email because a change of your password was requested.",
  },
  signup: {
    purpose: "confirm your email address",
    reason: "You get this email because this address was entered at a sign-up.",
  },
};

/**
 * Builds the mail that contains a code (contract 4.14). The subject does not contain the code, because lock screens
 * show subjects. `recipient` is undefined if the address belongs to no user.
 */
export function codeMail(
  code: { to: string; type: CodeType; code: string; expiresAt: Date; ttlS: number },
  recipient: Pick<MailRecipient, "name" | "branding"> | undefined,
): NewMail {
  const { purpose, reason } = CODES[code.type];
  const minutes = Math.max(1, Math.round(code.ttlS / 60));
  const content = {
    subject: `Your code to ${purpose}`,
    name: recipient?.name ?? null,
    paragraphs: [
      `Enter this code to ${purpose}. It works once and expires in ${minutes} ${minutes === 1 ? "minute" : "minutes"}.`,
    ],
    code: code.code,
    after: [
      "If you did not request this code, ignore this email. Do not share the code with anyone: our support never asks for it.",
    ],
    reason,
  };
  const { to, expiresAt } = code;
  return { to, ...brandedMail(content, recipient?.branding ?? NO_BRAND), kind: "otp", expiresAt };
}

interface Invitation {
  readonly to: string;
  /** The person who invites; undefined for an operator, whom customers do not see. */
  readonly inviter: Inviter | undefined;
  readonly link: string;
  /** The end of the link, which sets a password; absent if the link leads to the sign-in of an identity provider. */
  readonly expiresAt?: Date;
}

/**
 * Builds the mail with an invitation (contract 4.22): who invites the recipient to which company, and a button that
 * accepts the invitation.
 */
export function invitationMail(
  { to, inviter, link, expiresAt }: Invitation,
  { name, role, company: ofCompany, branding }: Omit<MailRecipient, "userId" | "takesPassword">,
): NewMail {
  const company = inert(ofCompany);
  const brand = branding.brand ?? OWN_BRAND;
  const place = brand === ofCompany ? company : `${company} on ${brand}`;
  const who = inviter && inert(inviter.name);
  const invited =
    inviter === undefined ? "You have been invited" : `${who} (${inviter.email}) invited you`;
  const hasLink = expiresAt !== undefined;
  const content = {
    subject:
      who === undefined ? `You are invited to ${company}` : `${who} invited you to ${company}`,
    name,
    paragraphs: [
      `${invited} to join ${place}${ROLE_WORDS[role] ?? ""}.`,
      hasLink
        ? "Accept the invitation to choose your password and sign in."
        : "Sign in with this email address through your company's identity provider. You do not need a password.",
    ],
    link: { words: hasLink ? "Accept the invitation" : "Sign in", href: link },
    after: [
      ...(hasLink
        ? ["The link works once, within seven days. After that, ask for another invitation."]
        : []),
      "If you did not expect this invitation, ignore this email.",
    ],
    reason: `You get this email because ${who ?? "an administrator"} entered your address.`,
  };
  const ends = hasLink && { expiresAt };
  return { to, ...brandedMail(content, branding), kind: "invitation", ...ends };
}

/** What a person of a role is in the company. */
const ROLE_WORDS: Readonly<Partial<Record<MailRecipient["role"], string>>> = {
  partner_owner: " as an owner",
  account_owner: " as an owner",
  partner_admin: " as an admin",
};

/** Builds the mail that notifies the user of a changed password (contract 4.15). */
export function passwordChangedMail(
  to: string,
  { name, branding }: Pick<MailRecipient, "name" | "branding">,
  now: Date,
): NewMail {
  const content = {
    subject: "Your password was changed",
    name,
    paragraphs: [
      "This ended all your sessions and access tokens. Sign in again with the new password.",
      "If you did not change it, reset your password on the sign-in page immediately, and tell your administrator.",
    ],
    facts: [["Time", utcTime(now)]] as const,
    reason: SECURITY_REASON,
  };
  return { to, ...brandedMail(content, branding), kind: "password_changed" };
}
