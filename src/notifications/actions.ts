import type { Tx } from "../../db/client.ts";
import type { SecretBox } from "../lib/secret-box.ts";
import { isMailAddress, queueMails } from "../outbox/mail.ts";
import { flagStatusMail, homeownerNotice } from "./mails.ts";
import type { NativeEmail, Owner } from "./model.ts";
import * as queries from "./queries.ts";

interface SealingDeps {
  readonly box: SecretBox;
}

/** Those of the partners whose whole tree gets none of our own mails (contract 9.5). */
export async function suppressingPartners(
  tx: Tx,
  partnerIds: readonly number[],
): Promise<ReadonlySet<number>> {
  return partnerIds.length === 0 ? new Set() : queries.suppressingPartners(tx, partnerIds);
}

/** Queues one mail per posted response. Wake `MAIL_WAKE` after the commit. */
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

/** Who gets a mail about a moved flag, or why nobody does. */
type FlagNotice =
  | { readonly nativeEmail: "queued"; readonly owner: Owner }
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

/** Queues the mail to the owner whom `planFlagNotice` has found. Wake `MAIL_WAKE` after the commit. */
export async function queueFlagNotice(
  tx: Tx,
  deps: SealingDeps,
  moved: { readonly owner: Owner; readonly reviewId: number; readonly to: string },
  now: Date,
): Promise<void> {
  const [subject] = await queries.subjectsOf(tx, [moved.reviewId]);
  if (subject === undefined) return;
  await queueMails(tx, deps, [flagStatusMail(moved.owner, subject, moved.to)], now);
}
