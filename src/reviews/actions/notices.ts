import type { Tx } from "../../../db/client.ts";
import { brandedMail } from "../../lib/branded-mail.ts";
import type { SecretBox } from "../../lib/secret-box.ts";
import { isMailAddress } from "../../lib/email.ts";
import { type NewMail, queueMails } from "../../outbox/mail.ts";
import type { NativeEmail } from "../events.ts";
import * as queries from "../queries/notices.ts";

interface SealingDeps {
  readonly box: SecretBox;
}

/** Returns the partners for whose companies we send no mails of our own (contract 9.5). */
export async function suppressingPartners(
  tx: Tx,
  partnerIds: readonly number[],
): Promise<ReadonlySet<number>> {
  return partnerIds.length === 0 ? new Set() : queries.suppressingPartners(tx, partnerIds);
}

/** Queues a mail about each posted response. The caller wakes the mailer after the commit. */
export async function queueHomeownerNotices(
  tx: Tx,
  deps: SealingDeps,
  notices: readonly { readonly reviewId: number; readonly to: string }[],
  now: Date,
): Promise<void> {
  if (notices.length === 0) return;
  const found = await queries.subjectsOf(tx, [...new Set(notices.map((one) => one.reviewId))]);
  const subjects = new Map(found.map((one) => [one.reviewId, one]));
  const mails = notices.flatMap(({ reviewId, to }) => {
    const subject = subjects.get(reviewId);
    return subject === undefined ? [] : [homeownerNotice(to, subject)];
  });
  await queueMails(tx, deps, mails, now);
}

/** The addressee of the mail about a moved flag, or the reason why no mail is sent. */
type FlagNotice =
  | { readonly nativeEmail: "queued"; readonly owner: queries.Owner }
  | { readonly nativeEmail: Exclude<NativeEmail, "queued"> };

export async function planFlagNotice(
  tx: Tx,
  { partnerId, accountId }: { readonly partnerId: number; readonly accountId: number },
): Promise<FlagNotice> {
  const suppressing = await queries.suppressingPartners(tx, [partnerId]);
  if (suppressing.has(partnerId)) return { nativeEmail: "suppressed" };
  const owner = await queries.ownerOf(tx, accountId);
  if (owner === undefined || !isMailAddress(owner.email)) return { nativeEmail: "no_address" };
  return { nativeEmail: "queued", owner };
}

/**
 * Queues the mail about a moved flag to the owner that `planFlagNotice` returned. The caller wakes the
 * mailer after the commit.
 */
export async function queueFlagNotice(
  tx: Tx,
  deps: SealingDeps,
  moved: { readonly owner: queries.Owner; readonly reviewId: number; readonly to: string },
  now: Date,
): Promise<void> {
  const [subject] = await queries.subjectsOf(tx, [moved.reviewId]);
  if (subject === undefined) return;
  await queueMails(tx, deps, [flagStatusMail(moved.owner, subject, moved.to)], now);
}

/** Composes the mail that informs the reviewer that the business has responded on the review site (contract 9.5). */
export function homeownerNotice(to: string, about: queries.Subject): NewMail {
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
  const { reviewId } = about;
  return { to, ...brandedMail(content, about), kind: "homeowner_notice", reviewId };
}

const FLAG_TEXT: Readonly<Record<string, string>> = {
  under_review: "is under review",
  accepted: "was accepted",
  rejected: "was rejected",
  withdrawn: "was withdrawn",
};

/** Composes the mail that informs the account owner that a flag has a new status (contract 9.5). */
export function flagStatusMail(owner: queries.Owner, about: queries.Subject, to: string): NewMail {
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
  const { reviewId } = about;
  return { to: owner.email, ...brandedMail(content, about), kind: "flag_status_changed", reviewId };
}
