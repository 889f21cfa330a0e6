import type { Tx } from "../../../db/client.ts";
import type { Principal, Role } from "../../http/principal.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { brandedMail, inert } from "../../lib/branded-mail.ts";
import { utcTime } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import { deviceOf } from "../../lib/device.ts";
import type { SecretBox } from "../../lib/secrets.ts";
import { queueMails } from "../../outbox/mail.ts";
import { isNewDevice } from "./session-queries.ts";
import { findMailed, findMailedOwners, type Mailed } from "../user-queries.ts";

/*
 * Mails about changes of a user's access (contract 4.26). Each mail is queued in the transaction of its change. The
 * mailer is not woken, because it finds the mail when it next reads the queue. No mail contains a secret or a token, and
 * its link, if it has one, leads to the page Security.
 */

export interface SecurityMailDeps {
  readonly box: SecretBox;
  readonly config: Pick<Config, "securityMails">;
}

interface Notice {
  readonly now: Date;
  readonly subject: string;
  /** A sentence that describes the event. */
  readonly event: string;
  readonly facts: readonly (readonly [name: string, value: string])[];
  /** The link of the mail; absent if nothing can be done on a page of the user. */
  readonly link?: { readonly words: string; readonly href: string };
}

/** The browser and the address of a request, for a mail about it. */
export function whereOf({ ip, userAgent }: RequestContext): Notice["facts"] {
  return [
    // A stranger chooses the text.
    ["Browser", inert(deviceOf(userAgent))],
    ["IP address", ip],
  ];
}

/** Why a person gets a mail about their own access. */
export const SECURITY_REASON =
  "You get this email because it is about the security of your account.";
const ADVICE = "If you did not expect this, tell your administrator immediately.";

/**
 * Mails a user about a sign-in from a new device. Call it before the sign-in is recorded, because its device is known
 * afterwards.
 */
export async function mailAboutSignIn(
  tx: Tx,
  deps: SecurityMailDeps,
  { userId, requestContext, now }: { userId: number; requestContext: RequestContext; now: Date },
): Promise<void> {
  if (!deps.config.securityMails || !(await isNewDevice(tx, userId, requestContext))) return;
  await queue(tx, deps, await findMailed(tx, userId), {
    now,
    subject: "A sign-in from a new device",
    event:
      "Your account was used to sign in from a browser and an IP address that you have not used before.",
    facts: whereOf(requestContext),
  });
}

/** Mails a user about a new token that acts for the user. */
export async function mailAboutToken(
  tx: Tx,
  deps: SecurityMailDeps,
  { userId, name, now }: { userId: number; name: string; now: Date },
): Promise<void> {
  if (!deps.config.securityMails) return;
  await queue(tx, deps, await findMailed(tx, userId), {
    now,
    subject: "A new access token",
    event: "An access token for your account was created.",
    facts: [["Token", name]],
  });
}

interface NewIntegrationToken {
  readonly integration: { readonly name: string; readonly companyId: number };
  readonly actor: Principal;
  readonly now: Date;
}

/** Mails the owners of a partner about a new token of an integration, which outlives the person who made it. */
export async function mailAboutIntegration(
  tx: Tx,
  deps: SecurityMailDeps,
  { integration: { name, companyId }, actor, now }: NewIntegrationToken,
): Promise<void> {
  if (!deps.config.securityMails) return;
  await queue(tx, deps, await findMailedOwners(tx, companyId), {
    now,
    subject: "A new token of an integration",
    event: "An access token for an integration of your company was created.",
    facts: [
      ["Integration", name],
      ["Created by", actorName(actor)],
    ],
  });
}

const FACTOR_CHANGES = {
  added: {
    subject: "A second factor was added to your account",
    event: "A second factor was added to your account.",
  },
  removed: {
    subject: "A second factor was removed from your account",
    event: "A second factor was removed from your account.",
  },
  codeUsed: {
    subject: "A recovery code of your account was used",
    event:
      "One of your recovery codes was used to sign in or to confirm an action instead of a second factor.",
  },
  codesMade: {
    subject: "New recovery codes were created for your account",
    event: "New recovery codes were created for your account. The previous codes no longer work.",
  },
} as const;

interface FactorMailDeps {
  readonly box: SecretBox;
  readonly config: Pick<Config, "serverRoot">;
}

const securityPage = ({ config }: FactorMailDeps) => ({
  words: "Check your second factors",
  href: `${config.serverRoot}/dashboard/security`,
});

interface FactorChange extends Pick<Notice, "facts" | "now"> {
  readonly userId: number;
  readonly requestContext: RequestContext;
  readonly change: keyof typeof FACTOR_CHANGES;
}

/**
 * Mails a user about a change of the user's second factors or recovery codes. The mail is sent even if the setting
 * `securityMails` is off, because somebody who took over an account may make such a change to keep it.
 */
export async function mailAboutFactor(
  tx: Tx,
  deps: FactorMailDeps,
  { userId, change, facts, requestContext, now }: FactorChange,
): Promise<void> {
  await queue(tx, deps, await findMailed(tx, userId), {
    now,
    ...FACTOR_CHANGES[change],
    facts: [...facts, ...whereOf(requestContext)],
    link: securityPage(deps),
  });
}

/**
 * Mails a user that the account gets another email address. Call it before the change, because the mail goes to the
 * address until now. It is sent even if the setting `securityMails` is off, and does not name the new address.
 */
export async function mailAboutAddress(
  tx: Tx,
  deps: Pick<SecurityMailDeps, "box">,
  { userId, actor, now }: { userId: number; actor: Principal; now: Date },
): Promise<void> {
  await queue(tx, deps, await findMailed(tx, userId), {
    now,
    subject: "The email address of your account was changed",
    event:
      "Your account has another email address now. All your sessions and access tokens were ended, and this address no longer signs in.",
    facts: [["Changed by", actorName(actor)]],
  });
}

/**
 * Mails a user that an operator has removed all second factors of the user. The mail is sent even if the setting
 * `securityMails` is off.
 */
export async function mailAboutLostFactors(
  tx: Tx,
  deps: FactorMailDeps,
  { userId, now }: { userId: number; now: Date },
): Promise<void> {
  await queue(tx, deps, await findMailed(tx, userId), {
    now,
    subject: "Your second factors were removed",
    event:
      "An operator of the platform removed all second factors of your account and ended your sessions and tokens.",
    facts: [],
    link: securityPage(deps),
  });
}

interface NewOwner {
  readonly owner: { readonly id: number; readonly name: string; readonly companyId: number };
  readonly role: Role;
  /** The user who appoints the owner; null if the owner was created by single sign-on. */
  readonly actor: Principal | null;
  readonly now: Date;
}

/** Mails the other owners of a company about a new owner. Does nothing if `role` is not that of an owner. */
export async function mailAboutOwner(
  tx: Tx,
  deps: SecurityMailDeps,
  { owner: { id, name, companyId }, role, actor, now }: NewOwner,
): Promise<void> {
  if (!deps.config.securityMails || (role !== "partner_owner" && role !== "account_owner")) return;
  await queue(tx, deps, await findMailedOwners(tx, companyId, id), {
    now,
    subject: "A new owner",
    event:
      "Your company has a new owner. Owners can change users, roles and all settings of the company.",
    facts: [
      ["New owner", name],
      ["Added by", actor === null ? "single sign-on, at the first sign-in" : actorName(actor)],
    ],
  });
}

const WEBHOOK_CHANGES = {
  url: { subject: "A webhook URL was changed", event: "The URL of a webhook was changed." },
  secret: {
    subject: "A webhook secret was rotated",
    event: "The signing secret of a webhook was rotated.",
  },
} as const;

interface ChangedWebhook {
  readonly webhook: {
    readonly partnerId: number;
    readonly label: string;
    readonly webhookUrl: string;
  };
  readonly change: keyof typeof WEBHOOK_CHANGES;
  readonly actor: Principal;
  readonly now: Date;
}

/**
 * Mails the owners of a partner about a changed webhook. The mail contains only the host of the URL, because its path
 * and query may contain a secret.
 */
export async function mailAboutWebhook(
  tx: Tx,
  deps: SecurityMailDeps,
  { webhook, change, actor, now }: ChangedWebhook,
): Promise<void> {
  if (!deps.config.securityMails) return;
  await queue(tx, deps, await findMailedOwners(tx, webhook.partnerId), {
    now,
    ...WEBHOOK_CHANGES[change],
    facts: [
      ["Webhook", webhook.label],
      ["Host", new URL(webhook.webhookUrl).host],
      ["Changed by", actorName(actor)],
    ],
  });
}

/** Returns the name of the acting user for a mail. Customers do not see the names of operators. */
function actorName({ companyType, userName }: Principal): string {
  return companyType === "platform" ? "an operator of the platform" : userName;
}

async function queue(
  tx: Tx,
  deps: Pick<SecurityMailDeps, "box">,
  people: readonly Mailed[],
  { now, subject, event, facts, link }: Notice,
): Promise<void> {
  const mails = people.map(({ email: to, name, ...brand }) => ({
    kind: "security_notice" as const,
    to,
    ...brandedMail(
      {
        subject,
        name,
        paragraphs: [event, ADVICE],
        facts: [
          ...facts.map(([fact, value]) => [fact, inert(value)] as const),
          ["Time", utcTime(now)],
        ],
        ...(link && { link }),
        reason: SECURITY_REASON,
      },
      brand,
    ),
  }));
  await queueMails(tx, deps, mails, now);
}
