import type { Db } from "../../db/client.ts";
import type { SecretBox } from "../../src/lib/secret-box.ts";
import { openMail, type MailMessage } from "../../src/outbox/mail.ts";
import type { MailDecision } from "./decide.ts";
import * as queries from "./queries.ts";
import type { MailMove, QueuedMailRow } from "./queries.ts";

export interface QueuedMail {
  readonly id: string;
  readonly kind: string;
  readonly attempt: number;
  readonly dueAt: Date;
  readonly expiresAt: Date | null;
  readonly createdAt: Date;
  /** Undefined if no key opens it. */
  readonly message: MailMessage | undefined;
}

/** A decision that is written; an interrupted mail stays as it is. */
export type MailCommit = Exclude<MailDecision, { kind: "interrupted" }>;

/** What the mailer needs of Postgres. */
export interface MailStore {
  /** The queued mails that are due first, now or later, without those named. */
  next(limit: number, except: readonly string[]): Promise<QueuedMail[]>;
  /** False if the lease of this dispatcher is gone, and nothing was written. */
  commit(dispatcherId: string, mail: QueuedMail, decision: MailCommit, now: Date): Promise<boolean>;
}

export function createMailStore({ db, box }: { db: Db; box: SecretBox }): MailStore {
  return {
    async next(limit, except) {
      const rows = await queries.nextMails(db, limit, except);
      return rows.map(({ sealedMessage, ...row }) => ({
        ...row,
        message: openOrNothing(box, { id: row.id, sealedMessage }),
      }));
    },
    commit: (dispatcherId, mail, decision, now) =>
      queries.commitMail(db, dispatcherId, toMove(mail, decision), now),
  };
}

function openOrNothing(
  box: SecretBox,
  row: Pick<QueuedMailRow, "id" | "sealedMessage">,
): MailMessage | undefined {
  try {
    return openMail(box, row.id, row.sealedMessage);
  } catch {
    // The error could quote the message; the mailer reports that it is unreadable.
    return undefined;
  }
}

function toMove({ id, attempt }: QueuedMail, decision: MailCommit): MailMove {
  const queued = decision.kind === "retry" || decision.kind === "postponed";
  return {
    id,
    fromAttempt: attempt,
    state: queued ? "queued" : decision.kind,
    attempt: decision.kind === "retry" ? attempt + 1 : attempt,
    dueAt: queued ? decision.dueAt : null,
    errorCode: decision.kind === "sent" ? null : decision.errorCode,
    error: decision.kind === "sent" ? null : decision.error,
  };
}
