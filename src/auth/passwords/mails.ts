import { brandedMail, inert, NO_BRAND, OWN_BRAND } from "../../lib/branded-mail.ts";
import { utcTime } from "../../lib/clock.ts";
import { invitationWords } from "../../lib/invitation-words.ts";
import type { NewMail } from "../../outbox/mail.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { SECURITY_REASON, whereOf } from "../sign-in/security-mails.ts";
import type { Inviter, MailRecipient } from "../user-queries.ts";
import type { CodeType } from "./model.ts";

/** The dashboard page that asks for a new password. */
const RESET_PAGE = "/dashboard/reset-password";

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

interface MailedCode {
  readonly to: string;
  readonly type: CodeType;
  readonly code: string;
  readonly expiresAt: Date;
  readonly ttlS: number;
  /** Whether an operator sends the code, and not the user. */
  readonly isByOperator: boolean;
  readonly serverRoot: string;
}

/**
 * Builds the mail that contains a code (contract 4.14). The subject does not contain the code, because lock screens
 * show subjects. The button for a new password brings the code in the fragment, which browsers do not send.
 * `recipient` is undefined if the address belongs to no user.
 */
export function codeMail(
  { to, type, code, expiresAt, ttlS, isByOperator, serverRoot }: MailedCode,
  recipient: Pick<MailRecipient, "name" | "branding"> | undefined,
): NewMail {
  const { purpose, reason } = CODES[type];
  const minutes = Math.max(1, Math.round(ttlS / 60));
  const ends = `expires in ${minutes} ${minutes === 1 ? "minute" : "minutes"}`;
  const fragment = new URLSearchParams({ email: to, code }).toString();
  const link = { words: "Choose a new password", href: `${serverRoot}${RESET_PAGE}#${fragment}` };
  const branding = recipient?.branding ?? NO_BRAND;
  const support = `${branding.brand ?? OWN_BRAND} support`;
  const isReset = type === "forgot_password";
  const byOperator = {
    subject: `${support} sent you a password reset`,
    paragraphs: [
      `${support} sent you this email so that you can choose a new password. Your current password works until you do.`,
      `Use the button below, or enter this code on the page “Choose a new password”. It works once and ${ends}.`,
    ],
    after: [
      "If the code has expired, request another one with “Forgot your password?” on the sign-in page. Choosing a new password ends all your sessions and access tokens.",
      `If you did not ask ${support} for this, ignore this email. Do not share the code with anyone: our support never asks for it.`,
    ],
    reason: `You get this email because ${support} started a password reset for this address.`,
  };
  const byUser = {
    subject: `Your code to ${purpose}`,
    paragraphs: [
      `Enter this code to ${purpose}${isReset ? ", or press the button below" : ""}. It works once and ${ends}.`,
    ],
    after: [
      ...(type === "change_password"
        ? ["The page Security, where you started the change, asks for the code."]
        : []),
      "If you did not request this code, ignore this email. Do not share the code with anyone: our support never asks for it.",
    ],
    reason,
  };
  const content = {
    ...(isByOperator ? byOperator : byUser),
    name: recipient?.name ?? null,
    code,
    ...(isReset && { link }),
  };
  return { to, ...brandedMail(content, branding), kind: "otp", expiresAt };
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
  const { who, place, sentence } = invitationWords({
    by: inviter === undefined ? null : { ...inviter, name: inert(inviter.name) },
    company,
    brand: brand === ofCompany ? company : brand,
    role,
  });
  const content = {
    subject:
      who === undefined
        ? `You are invited to ${company}`
        : `${who} invited you to ${inviter === undefined ? company : place}`,
    name,
    paragraphs: [
      sentence,
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
      "If this was you, there is nothing to do. If not, reset your password now, which ends every session again, and tell your administrator.",
    ],
    facts: [...whereOf(requestContext), ["Time", utcTime(now)]] as const,
    link: {
      words: "This wasn't me: reset the password",
      href: `${serverRoot}${RESET_PAGE}#${fragment}`,
    },
    reason: SECURITY_REASON,
  };
  return { to, ...brandedMail(content, branding), kind: "password_changed" };
}
