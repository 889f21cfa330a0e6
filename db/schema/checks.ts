import { sql } from "drizzle-orm";
import { integer, json, pgTable, text } from "drizzle-orm/pg-core";

import { bytewise, instant, state, uniqueWhere } from "./columns.ts";
import { webhookSubscriptions } from "./webhooks.ts";

/** Matches checks that have not ended. It is the condition of an index, so its text has no parameters. */
export const isOpenCheck = sql`state in ('pending', 'running')`;

/** A check of the endpoint of a subscription (contract 6.23), and its report. The row is also its place in the queue. */
export const endpointChecks = pgTable(
  "endpoint_checks",
  {
    id: bytewise("id").primaryKey(),
    subscriptionId: bytewise("subscription_id")
      .notNull()
      .references(() => webhookSubscriptions.id, { onDelete: "cascade" }),
    partnerId: integer("partner_id").notNull(),
    /**
     * State of the check:
     * - pending → running: a dispatcher has begun it.
     * - running → done: its findings are stored.
     * - pending, running, done → interrupted: it ended without findings, or the subscription was deleted.
     */
    state: state("pending", "running", "done", "interrupted"),
    /** The reason why it was interrupted. */
    reason: text("reason", {
      enum: ["process_ended", "subscription_changed", "secret_unreadable", "own_failure"],
    }),
    createdAt: instant("created_at").notNull(),
    startedAt: instant("started_at"),
    finishedAt: instant("finished_at"),
    /** The list of `Finding` of `src/outbox/check-findings.ts`. */
    findings: json("findings"),
  },
  (t) => [
    // A subscription has one check at a time.
    uniqueWhere("endpoint_checks_open", isOpenCheck, t.subscriptionId),
  ],
);
