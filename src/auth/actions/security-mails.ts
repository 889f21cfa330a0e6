import type { Tx } from "../../../db/client.ts";
import type { Principal, Role } from "../../http/principal.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { brandedMail } from "../../lib/branded-mail.ts";
import { isoInstant } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import type { SecretBox } from "../../lib/secret-box.ts";
import { queueMails } from "../../outbox/mail.ts";
import { isNewDevice } from "../queries/sessions.ts";
import { findMailed, findMailedOwners, type Mailed } from "../queries/users.ts";

/*
 * Mails about changes of access (contract 4.26). Each is queued in the transaction of its change. The mailer finds it in its
 * next sweep, so no wake is sent. No mail has a link, a secret or a token.
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
}

const ADVICE = "If you did not expect this, tell your administrator at once.";

/** Tells a user about a sign-in from a new device. Must be called before the sign-in is recorded. */
export async function tellOfSignIn(
  tx: Tx,
  deps: SecurityMailDeps,
  { userId, requestContext, now }: { userId: number; requestContext: RequestContext; now: Date },
): Promise<void> {
  if (!deps.config.securityMails || !(await isNewDevice(tx, userId, requestContext))) return;
  const { ip, userAgent } = requestContext;
  await queue(tx, deps, await findMailed(tx, userId), {
    now,
    subject: "A sign-in from a new device",
    event:
      "Somebody signed in as you, from a browser and an address that you have not used before.",
    facts: [
      ["Browser", userAgent ?? "unknown"],
      ["Address", ip],
    ],
  });
}

/** Tells a user about a new token of the user. */
export async function tellOfToken(
  tx: Tx,
  deps: SecurityMailDeps,
  { userId, name, now }: { userId: number; name: string; now: Date },
): Promise<void> {
  if (!deps.config.securityMails) return;
  await queue(tx, deps, await findMailed(tx, userId), {
    now,
    subject: "A new access token",
    event: "An access token was made that acts as you.",
    facts: [["Token", name]],
  });
}

const FACTOR_CHANGES = {
  added: { subject: "A new second factor", event: "A second factor was added to your sign-in." },
  removed: {
    subject: "A second factor was removed",
    event: "A second factor was removed from your sign-in.",
  },
  codeUsed: {
    subject: "A recovery code was used",
    event: "Somebody used one of your recovery codes instead of your second factor.",
  },
  codesMade: {
    subject: "New recovery codes",
    event: "New recovery codes were made for your sign-in. The earlier ones no longer work.",
  },
} as const;

interface FactorChange extends Pick<Notice, "facts" | "now"> {
  readonly userId: number;
  readonly change: keyof typeof FACTOR_CHANGES;
}

/** Tells a user about a second factor or the recovery codes of the user. */
export async function tellOfFactor(
  tx: Tx,
  deps: SecurityMailDeps,
  { userId, change, facts, now }: FactorChange,
): Promise<void> {
  if (!deps.config.securityMails) return;
  await queue(tx, deps, await findMailed(tx, userId), { now, ...FACTOR_CHANGES[change], facts });
}

/** Tells a user, whatever the setting is, that an operator removed all second factors of the user. */
export async function tellOfLostFactors(
  tx: Tx,
  deps: Pick<SecurityMailDeps, "box">,
  { userId, now }: { userId: number; now: Date },
): Promise<void> {
  await queue(tx, deps, await findMailed(tx, userId), {
    now,
    subject: "Your second factors were removed",
    event:
      "An operator of the platform removed all second factors of your sign-in, and ended your sessions and tokens.",
    facts: [],
  });
}

interface NewOwner {
  readonly owner: { readonly id: number; readonly name: string; readonly companyId: number };
  readonly role: Role;
  /** The user who makes the owner; null if a single sign-on does. */
  readonly actor: Principal | null;
  readonly now: Date;
}

/** Tells the other owners of a company about a new owner; does nothing for another role. */
export async function tellOfOwner(
  tx: Tx,
  deps: SecurityMailDeps,
  { owner: { id, name, companyId }, role, actor, now }: NewOwner,
): Promise<void> {
  if (!deps.config.securityMails || (role !== "partner_owner" && role !== "account_owner")) return;
  await queue(tx, deps, await findMailedOwners(tx, companyId, id), {
    now,
    subject: "A new owner",
    event: "Your company has a new owner, who may change its people and everything else of it.",
    facts: [
      ["New owner", name],
      ["Made by", actor === null ? "the first single sign-on" : actorName(actor)],
    ],
  });
}

const WEBHOOK_CHANGES = {
  url: { subject: "A webhook has another URL", event: "The URL of a webhook was changed." },
  secret: {
    subject: "A webhook has another secret",
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

/** Tells the owners of a partner about a webhook. Of the URL only the host is named, because the rest may be a secret. */
export async function tellOfWebhook(
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

/** Returns the name of the user of a request; operators of the platform are not named to its customers. */
function actorName({ companyType, userName }: Principal): string {
  return companyType === "platform" ? "an operator of the platform" : userName;
}

/** The most characters of a value in a mail. */
const VALUE_CHARS = 200;

/** Makes a text of another person safe to show: in one line, of limited length and without addresses that turn into links. */
function inert([fact, value]: Notice["facts"][number]): Notice["facts"][number] {
  return [fact, value.replaceAll(/[\p{Cc}\p{Z}]+|:\/\//gu, " ").slice(0, VALUE_CHARS)];
}

async function queue(
  tx: Tx,
  deps: Pick<SecurityMailDeps, "box">,
  people: readonly Mailed[],
  { now, subject, event, facts }: Notice,
): Promise<void> {
  const mails = people.map(({ email: to, name, ...brand }) => ({
    kind: "security_notice" as const,
    to,
    ...brandedMail(
      {
        subject,
        greeting: `Hello ${name},`,
        paragraphs: [event, ADVICE],
        facts: [...facts.map(inert), ["Time", isoInstant(now)]],
      },
      brand,
    ),
  }));
  await queueMails(tx, deps, mails, now);
}
