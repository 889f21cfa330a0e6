import { sql } from "drizzle-orm";

import { liveBearers } from "../../auth/access/queries.ts";
import type { DbOrTx } from "../../../db/client.ts";
import {
  onlyRow,
  asTable,
  instant,
  list,
  nullable,
  selected,
  statement,
  table,
  value,
  type ValuesOf,
} from "../../../db/statement.ts";
import { deliveryAttempts, statsProgress } from "../../../db/schema/attempts.ts";
import { tokens } from "../../../db/schema/tokens.ts";
import { webhookSubscriptions } from "../../../db/schema/webhooks.ts";
import { SUMMARY } from "./attempts.ts";
import { SHOWN } from "./subscriptions.ts";

/**
 * The most attempts of a subscription, the newest first, that one poll returns. The number is a literal: with a
 * parameter the planner would assume thousands of rows, and would plan each execution again.
 */
const ATTEMPTS_PER_POLL = sql.raw("100");

const ATTEMPT_COLUMNS = { subscriptionId: deliveryAttempts.subscriptionId, ...SUMMARY };

const pollStatement = statement({
  name: "webhooks.watch",
  // Raw SQL, because the statement reads four results in one round trip: each process polls with it every 1.3 s.
  params: {
    ids: list(webhookSubscriptions.id),
    firstId: deliveryAttempts.id,
    jtis: list(tokens.jti),
    now: instant,
    maxHours: nullable(value("integer")),
    idleMinutes: nullable(value("integer")),
  },
  columns: {
    countedUntil: nullable(statsProgress.countedUntil),
    subscriptions: table(SHOWN),
    attempts: table(ATTEMPT_COLUMNS),
    bearers: table({ jti: tokens.jti, state: value("text") }),
  },
  text: ({ ids, firstId, jtis, now, ...limits }) => {
    const given = sql`unnest((select ${ids}::text[])) as given(id)`;
    return sql`
    select (select counted_until from stats_progress) as "countedUntil",
           ${asTable(sql`
             select ${selected(SHOWN)} from ${given}
               join webhook_subscriptions on webhook_subscriptions.id = given.id and state <> 'deleted'`)} as subscriptions,
           ${asTable(sql`
             select a.* from ${given} cross join lateral (
                    select ${selected(ATTEMPT_COLUMNS)} from delivery_attempts
                     where subscription_id = given.id and delivery_attempts.id >= (select ${firstId}::text)
                     order by delivery_attempts.id desc limit ${ATTEMPTS_PER_POLL}) a`)} as attempts,
           ${asTable(sql`
             select b.jti, md5((to_jsonb(b) - array['lastUsedAt', 'sessionEndsAt'])::text) as state
               from (${liveBearers(jtis, limits)}) b
              where coalesce(least(b."expiresAt", b."sessionEndsAt") > ${now}, true)`)} as bearers`;
  },
});

/**
 * Reads all rows that the live streams of a process need: subscriptions, their attempts from `firstId` on, and tokens.
 */
export async function pollStreams(db: DbOrTx, given: ValuesOf<typeof pollStatement.params>) {
  const row = onlyRow(await db.run(pollStatement, given));
  return {
    countedUntil: row.countedUntil,
    /** Subscriptions that are not deleted, by id. */
    subscriptions: new Map(
      row.subscriptions.map((one) => [
        one.id,
        { ...one, events: one.events && [...one.events], headerNames: [...one.headerNames] },
      ]),
    ),
    /** Attempts by subscription, the newest first. */
    attempts: Map.groupBy(row.attempts, (one) => one.subscriptionId),
    /** A hash for each live token, by jti. The hash changes whenever a row changes that the bearer check depends on. */
    bearers: new Map(row.bearers.map((one) => [one.jti, one.state])),
  };
}

export type PolledRows = Awaited<ReturnType<typeof pollStreams>>;
