import { brandedMail, inert, NO_BRAND, OWN_BRAND } from "../../lib/branded-mail.ts";
import { utcTime } from "../../lib/clock.ts";
import type { NewMail } from "../../outbox/mail.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { SECURITY_REASON, whereOf } from "../sign-in/security-mails.ts";
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
      ...(code.type === "forgot_password"
        ? [
            "If the page for the code is not open, choose “Forgot your password?” at the sign-in, and there “I already have a code”.",
          ]
        : []),
      "If neither you nor our support requested this code, ignore this email. Do not share the code with anyone: our support never asks for it.",
    ],
    reason,
  };
  const { to, expiresAt } = code;
  return { to, ...brandedMail(content, recipient?.branding ?? NO_BRAND), kind: "otp", expiresAt };
}

interface Invitation {
  readonly to: string;
  /** The person who invites; undefined for an operator, whose name customers do not see. */
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
  // Customers know an operator as the support of the brand, which is named once.
  const support = brand === ofCompany ? undefined : `${brand} support`;
  const who = inviter === undefined ? support : inert(inviter.name);
  const email = inviter === undefined ? "" : ` (${inviter.email})`;
  const invited = who === undefined ? "You have been invited" : `${who}${email} invited you`;
  const content = {
    subject:
      who === undefined
        ? `You are invited to ${company}`
        : `${who} invited you to ${inviter === undefined ? company : place}`,
    name,
    paragraphs: [
      `${invited} to join ${place}${ROLE_WORDS[role] ?? ""}.`,
      expiresAt
        ? "Accept the invitation to choose your password and sign in."
        : "Sign in with this email address through your company's identity provider. You do not need a password.",
    ],
    link: { words: expiresAt ? "Accept the invitation" : "Sign in", href: link },
    after: [
      ...(expiresAt
        ? [
            `The link works once, until ${utcTime(expiresAt)}. After that, ask for another invitation.`,
          ]
        : []),
      "If you did not expect this invitation, ignore this email.",
    ],
    reason: `You get this email because ${who ?? "an administrator"} entered your address.`,
  };
  const ends = expiresAt && { expiresAt };
  return { to, ...brandedMail(content, branding), kind: "invitation", ...ends };
}

/** What a person of a role is in the company. */
const ROLE_WORDS: Readonly<Partial<Record<MailRecipient["role"], string>>> = {
  partner_owner: " as an owner",
  account_owner: " as an owner",
  partner_admin: " as an admin",
};

interface PasswordChange {
  readonly to: string;
  /** Whether the new password has signed in the browser that set it, without a second factor. */
  readonly isSignedIn: boolean;
  readonly requestContext: RequestContext;
  readonly serverRoot: string;
  readonly now: Date;
}

/**
 * Builds the mail that notifies the user of a changed password (contract 4.15). Its button begins another reset, which
 * signs out whoever changed the password.
 */
export function passwordChangedMail(
  { to, isSignedIn, requestContext, serverRoot, now }: PasswordChange,
  { name, branding }: Pick<MailRecipient, "name" | "branding">,
): NewMail {
  const fragment = new URLSearchParams({ email: to }).toString();
  const content = {
    subject: "Your password was changed",
    name,
    paragraphs: [
      isSignedIn
        ? "Your password was changed in the browser below, which is now signed in. All other sessions and access tokens were ended."
        : "Your password was changed in the browser below. All your sessions and access tokens were ended.",
      "If this was you, you need not do anything. If not, reset your password now, which ends every session again, and tell your administrator.",
    ],
    facts: [...whereOf(requestContext), ["Time", utcTime(now)]] as const,
    link: {
      words: "This wasn't me: reset the password",
      href: `${serverRoot}/dashboard/reset-password#${fragment}`,
    },
    reason: SECURITY_REASON,
  };
  return { to, ...brandedMail(content, branding), kind: "password_changed" };
}
