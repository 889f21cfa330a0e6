import type { Db, Tx } from "../../../db/client.ts";
import { countConfirmation } from "../../auth/passwords/mail-limits.ts";
import type { CodeMac } from "../../auth/passwords/codes.ts";
import { brandedMail, inert, mailBrandOf } from "../../lib/branded-mail.ts";
import { addMs, type Clock } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import { Problem } from "../../lib/problem.ts";
import type { SecretBox } from "../../lib/secrets.ts";
import { type NewMail, queueMails } from "../../outbox/mail.ts";
import * as queries from "../queries/alerts.ts";
import { isActivePartner } from "../queries/subscriptions.ts";

export interface RecipientDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly box: SecretBox;
  readonly codes: CodeMac;
  readonly config: Pick<Config, "serverRoot">;
}

/** Time in ms for which the link in a confirmation mail is valid (contract 6.21). */
const LINK_TTL_MS = 7 * 86_400_000;

/** The content of a confirmation link. A MAC protects all of it, so nothing is stored before the recipient confirms. */
interface Confirmation {
  readonly partnerId: number;
  readonly email: string;
  /** The time at which the link expires, in Unix milliseconds. */
  readonly endsAt: number;
}

/**
 * Mails each address a link that confirms it as a recipient of alerts. Throws `rate_limited` after too many such
 * mails. The caller wakes the mailer after the commit.
 */
export async function askRecipients(
  tx: Tx,
  deps: Pick<RecipientDeps, "box" | "codes" | "config">,
  { partnerId, asked, now }: { partnerId: number; asked: readonly string[]; now: Date },
): Promise<void> {
  // The addresses are sorted, so that concurrent requests with the same addresses cannot deadlock.
  const addresses = asked.toSorted();
  for (const address of addresses) await countConfirmation(tx, { partnerId, address, now });
  const partner = await queries.brandOf(tx, partnerId);
  const expiresAt = addMs(now, LINK_TTL_MS);
  const mails = addresses.map((email) => {
    const code = codeOf(deps.codes, { partnerId, email, endsAt: expiresAt.getTime() });
    return { ...recipientMail(email, linkOf(deps.config, code), partner), expiresAt, partnerId };
  });
  await queueMails(tx, deps, mails, now);
}

/**
 * Handles `POST /alert-recipients/confirm`, after which the address receives alerts. A code is invalid if it is forged
 * or expired, if its address is no longer a recipient, or if its partner is suspended. Every invalid code gives the
 * same 400.
 */
export async function confirmRecipient(
  { db, clock, codes }: Pick<RecipientDeps, "db" | "clock" | "codes">,
  code: string,
): Promise<{ email: string }> {
  const given = readCode(codes, code);
  if (given === undefined || given.endsAt <= clock.now().getTime())
    throw new Problem("invalid_code");
  const { partnerId, email } = given;
  const isRecipient = await db.transaction(
    async (tx) =>
      (await isActivePartner(tx, partnerId)) && queries.addConfirmed(tx, partnerId, email),
  );
  if (!isRecipient) throw new Problem("invalid_code");
  return { email };
}

function codeOf(codes: CodeMac, { partnerId, email, endsAt }: Confirmation): string {
  const mac = codes.sign(String(endsAt), contextOf(partnerId, email));
  return Buffer.from(JSON.stringify([partnerId, email, endsAt, mac])).toString("base64url");
}

function readCode(codes: CodeMac, code: string): Confirmation | undefined {
  const [partnerId, email, endsAt, mac] = partsOf(code);
  if (typeof partnerId !== "number" || typeof email !== "string") return undefined;
  if (typeof endsAt !== "number" || typeof mac !== "string") return undefined;
  const isOurs = codes.matches(mac, String(endsAt), contextOf(partnerId, email));
  return isOurs ? { partnerId, email, endsAt } : undefined;
}

function partsOf(code: string): readonly unknown[] {
  try {
    const given: unknown = JSON.parse(Buffer.from(code, "base64url").toString());
    return Array.isArray(given) ? given : [];
  } catch {
    return [];
  }
}

/** The associated data of the MAC. Codes of other mails have different data, so they are not accepted here. */
const contextOf = (partnerId: number, email: string) => `alert-recipient:${partnerId}:${email}`;

/** The code is in the URL fragment, which browsers do not send, so no server and no log sees it. */
function linkOf({ serverRoot }: Pick<Config, "serverRoot">, code: string): string {
  return `${serverRoot}/dashboard/alert-recipient#code=${code}`;
}

function recipientMail(to: string, href: string, partner: queries.PartnerBrand): NewMail {
  const name = inert(partner.name);
  const content = {
    subject: `Confirm that you want webhook alerts of ${name}`,
    name: null,
    paragraphs: [
      `${name} wants to send an email to this address when its webhooks have a problem. No alerts are sent until you confirm.`,
    ],
    link: { words: "Confirm this address", href },
    after: ["The link works for seven days. If you did not expect this email, ignore it."],
    reason: `You get this email because ${name} entered your address as a recipient of alerts.`,
  };
  return { to, ...brandedMail(content, mailBrandOf(partner)), kind: "alert_recipient" };
}
