import { and, asc, eq, lte, or, sql } from "drizzle-orm";
import { unionAll } from "drizzle-orm/pg-core";

import type { Db } from "../../db/client.ts";
import { anyOfQuery } from "../../db/conditions.ts";
import { neverNull } from "../../db/statement.ts";
import { mails } from "../../db/schema/alerts.ts";
import { companies, users } from "../../db/schema/companies.ts";
import { reviews } from "../../db/schema/reviews.ts";
import { addMs } from "../../src/lib/clock.ts";
import type { MailKind, MailMessage } from "../../src/outbox/mail.ts";
import {
  isPartnerOfCompany,
  isTenantActive,
  isUserActive,
  partners,
} from "../../src/auth/access/queries.ts";
import type { MailDecision } from "./decide.ts";

type MailRow = typeof mails.$inferInsert;

/** The state is a literal, because PostgreSQL uses a partial index only if it can see that the condition holds. */
const isQueued = sql`${mails.state} = 'queued'`;

/**
 * The time in milliseconds for which a claimed mail belongs to its process: longer than a send takes
 * (`MAIL_TIMEOUT_MS`).
 */
const CLAIM_MS = 40_000;
/**
 * The time in milliseconds by which the clock of the process that queues a mail may be ahead without delaying the
 * first attempt.
 */
const AHEAD_MS = 5_000;

/** The queries of the mailer. */
export type MailStore = ReturnType<typeof createMailStore>;
/** A claimed mail. At `dueAt` other processes may claim it again. */
export type ClaimedMail = Awaited<ReturnType<typeof claimMails>>[number];

export function createMailStore(db: Db) {
  return {
    claim: (at: Date, limit: number) => claimMails(db, at, limit),
    nextAt: () => nextMailAt(db),
    isHeld: (mail: AddressedMail) => isHeld(db, mail),
    /** Writes the decision about a mail, unless the mail was claimed again since. */
    async commit({ id, attempt, dueAt }: ClaimedMail, decision: MailDecision, at: Date) {
      const isClaimed = and(eq(mails.id, id), eq(mails.attempt, attempt), eq(mails.dueAt, dueAt));
      const changes = changesBy(decision, attempt, at);
      await db.update(mails).set(changes).where(and(isClaimed, isQueued));
    },
  };
}

type AddressedMail = Pick<typeof mails.$inferSelect, "kind" | "reviewId"> &
  Pick<MailMessage, "to" | "partnerId">;

/** Kinds of mails that are addressed to an address and not to a user, even if a user has the same address. */
const KINDS_TO_ADDRESSES: readonly string[] = [
  "webhook_alert",
  "alert_recipient",
  "homeowner_notice",
] satisfies MailKind[];

/**
 * Whether a mail has to wait (contract 10.1): its recipient is an inactive user or a user of an inactive company, or
 * the review or the alerts that the mail is about belong to a suspended company.
 */
async function isHeld(db: Db, { kind, to, reviewId, partnerId }: AddressedMail): Promise<boolean> {
  const ofUsers = db
    .select({ isActive: isUserActive })
    .from(users)
    .innerJoin(companies, eq(companies.id, users.companyId))
    .leftJoin(partners, isPartnerOfCompany)
    .where(eq(users.email, KINDS_TO_ADDRESSES.includes(kind) ? "" : to));
  const ofReview = db
    .select({ isActive: isTenantActive })
    .from(reviews)
    .innerJoin(companies, eq(companies.id, reviews.accountId))
    .leftJoin(partners, isPartnerOfCompany)
    .where(eq(reviews.id, reviewId ?? 0));
  const ofPartner = db
    .select({ isActive: companies.isActive })
    .from(companies)
    .where(eq(companies.id, partnerId ?? 0));
  return (await unionAll(ofUsers, ofReview, ofPartner)).some(({ isActive }) => !isActive);
}

/** Claims the queued mails that are due, the earliest first. */
async function claimMails(db: Db, at: Date, limit: number) {
  const { id, kind, sealedMessage, reviewId, attempt, dueAt, expiresAt, createdAt } = mails;
  const isDue = or(lte(dueAt, at), and(eq(attempt, 1), lte(dueAt, addMs(at, AHEAD_MS))));
  const due = db
    .select({ id })
    .from(mails)
    .where(and(isQueued, isDue))
    .orderBy(asc(dueAt), asc(id))
    .limit(limit)
    .for("update", { skipLocked: true });
  const claimed = await db
    .update(mails)
    .set({ dueAt: addMs(at, CLAIM_MS) })
    .where(anyOfQuery(id, due))
    .returning({ id, kind, sealedMessage, reviewId, attempt, dueAt, expiresAt, createdAt });
  return claimed.map((row) => ({
    ...row,
    sealedMessage: neverNull(row.sealedMessage),
    dueAt: neverNull(row.dueAt),
  }));
}

/**
 * Returns the changes of a mail for a decision. A mail that stays queued gets a new due time. A sent or dead mail gets
 * the time of its end, and its message is erased.
 */
function changesBy(decision: MailDecision, attempt: number, at: Date): Partial<MailRow> {
  const { kind, ...decided } = decision;
  if (kind === "sent" || kind === "dead") {
    const erased = { dueAt: null, sealedMessage: null, reviewId: null };
    return { ...decided, state: kind, settledAt: at, ...erased };
  }
  return { dueAt: at, ...decided, attempt: kind === "retry" ? attempt + 1 : attempt };
}

/** Returns the due time of the first queued mail; undefined if none is queued. */
export async function nextMailAt(db: Db): Promise<Date | undefined> {
  const { dueAt } = mails;
  const [row] = await db.select({ dueAt }).from(mails).where(isQueued).orderBy(asc(dueAt)).limit(1);
  return row && neverNull(row.dueAt);
}
