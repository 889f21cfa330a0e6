import type { Tx } from "../../db/client.ts";
import { brandedMail } from "../lib/branded-mail.ts";
import type { Config } from "../lib/config.ts";
import type { SecretBox } from "../lib/secrets.ts";
import { isMailAddress } from "../lib/email.ts";
import { type NewMail, queueMails } from "../outbox/mail.ts";
import type { NativeEmail } from "../reviews/events.ts";
import * as queries from "./queries/notices.ts";

/** A mail that is queued in the transaction of the event that causes it. */
export type Notice = HomeownerNotice | FlagNotice;

/** The mail to the reviewer about a posted response. */
interface HomeownerNotice {
  readonly kind: "homeowner";
  readonly reviewId: number;
  readonly to: string;
}

/** The mail to the account owner about a new status of a flag. */
export interface FlagNotice {
  readonly kind: "flag";
  readonly reviewId: number;
  readonly owner: queries.Owner;
  readonly status: string;
}

/** Returns the partners to whose companies the service sends no mails of its own (contract 9.5). */
export async function suppressingPartners(
  tx: Tx,
  partnerIds: readonly number[],
): Promise<ReadonlySet<number>> {
  return partnerIds.length === 0 ? new Set() : queries.suppressingPartners(tx, partnerIds);
}

export interface NoticeDeps {
  readonly box: SecretBox;
  readonly config: Pick<Config, "serverRoot">;
}

/** Queues mails about reviews. The caller wakes the mailer after the commit. */
export async function queueNotices(
  tx: Tx,
  deps: NoticeDeps,
  notices: readonly Notice[],
  now: Date,
): Promise<void> {
  if (notices.length === 0) return;
  const found = await queries.subjectsOf(tx, [...new Set(notices.map((one) => one.reviewId))]);
  const subjects = new Map(found.map((one) => [one.reviewId, one]));
  const mails = notices.flatMap((one) => {
    const subject = subjects.get(one.reviewId);
    if (subject === undefined) return [];
    return one.kind === "flag"
      ? [flagStatusMail(one, subject, deps.config)]
      : [homeownerNotice(one.to, subject)];
  });
  await queueMails(tx, deps, mails, now);
}

/** The recipient of the mail about a new status of a flag, or the reason why no mail is sent. */
type FlagPlan =
  | { readonly nativeEmail: "queued"; readonly owner: queries.Owner }
  | { readonly nativeEmail: Exclude<NativeEmail, "queued"> };

/** Decides whether a new status of a flag causes a mail, and to whom. */
export async function planFlagNotice(
  tx: Tx,
  { partnerId, accountId }: { readonly partnerId: number; readonly accountId: number },
): Promise<FlagPlan> {
  const [suppressing, owner] = await Promise.all([
    queries.suppressingPartners(tx, [partnerId]),
    queries.ownerOf(tx, accountId),
  ]);
  if (suppressing.has(partnerId)) return { nativeEmail: "suppressed" };
  if (owner === undefined || !isMailAddress(owner.email)) return { nativeEmail: "no_address" };
  return { nativeEmail: "queued", owner };
}

/** Composes the mail that informs the reviewer that the business has responded on the review site (contract 9.5). */
export function homeownerNotice(to: string, about: queries.Subject): NewMail {
  const { storeName, accountName, siteName, reviewer, responseBody } = about;
  const content = {
    subject: `${storeName} responded to your review`,
    name: reviewer,
    paragraphs: [
      `${storeName} (${accountName}) responded to the review that you wrote on ${siteName}.`,
      ...(responseBody === null ? [`You can read the response on ${siteName}.`] : []),
    ],
    quote: responseBody,
    reason: `You get this email because you reviewed ${storeName} on ${siteName}.`,
  };
  const { reviewId } = about;
  return { to, ...brandedMail(content, about), kind: "homeowner_notice", reviewId };
}

const FLAG_TEXT: Readonly<Record<string, string>> = {
  under_review: "is under review",
  accepted: "was accepted",
  rejected: "was rejected",
  withdrawn: "was withdrawn",
};

/** Composes the mail that tells the account owner the new status of the flag on a review (contract 9.5). */
export function flagStatusMail(
  { owner, status: to }: Pick<FlagNotice, "owner" | "status">,
  about: queries.Subject,
  { serverRoot }: NoticeDeps["config"],
): NewMail {
  const { reviewId, storeName, accountName, siteName, rate, reviewer } = about;
  const what = FLAG_TEXT[to] ?? `is now ${to}`;
  const content = {
    subject: `The flag on a review of ${storeName} ${what}`,
    name: owner.name,
    paragraphs: [
      `The flag on the review by ${reviewer ?? "an anonymous reviewer"} (${rate} of 5 on ${siteName}) of ${storeName} ${what}.`,
    ],
    link: { words: "View the review", href: `${serverRoot}/dashboard/reviews/${reviewId}` },
    reason: `You get this email because you are an owner of ${accountName}.`,
  };
  return { to: owner.email, ...brandedMail(content, about), kind: "flag_status_changed", reviewId };
}
