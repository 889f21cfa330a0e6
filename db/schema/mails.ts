import { sql } from "drizzle-orm";
import { index, pgTable, smallint, text } from "drizzle-orm/pg-core";

import { bytewise, instant } from "./columns.ts";

/** Mails, written in the transaction of what they tell of and sent by the dispatcher that claims them. */
export const mails = pgTable(
  "mails",
  {
    id: bytewise("id").primaryKey(),
    kind: text("kind").notNull(),
    /**
     * Recipient, subject and bodies, sealed with `mail:<id>` as context. Erased with the last state: a sent code is
     * nobody's business any more, and a dead one neither.
     */
    sealedMessage: text("sealed_message"),
    /**
     * queued: to be sent at due_at, under `attempt`, the number of its next try; a claim puts due_at off. The mailer
     * moves it on, to sent when an SMTP server has taken it, to dead when that refused it for good, or its attempts or its time are used up.
     */
    state: text("state", { enum: ["queued", "sent", "dead"] })
      .notNull()
      .default("queued"),
    attempt: smallint("attempt").notNull().default(1),
    dueAt: instant("due_at"),
    /** From then on it is of no use to its reader, as with a code that has run out. */
    expiresAt: instant("expires_at"),
    createdAt: instant("created_at").notNull(),
    settledAt: instant("settled_at"),
    /** Of the last failed attempt, in our own words: what a server answers may quote the recipient. */
    errorCode: text("error_code"),
    lastError: text("last_error"),
  },
  (t) => [
    index("mails_due")
      .on(t.dueAt, t.id)
      .where(sql`state = 'queued'`),
    index("mails_settled")
      .on(t.settledAt)
      .where(sql`state <> 'queued'`),
  ],
);
