import type { DbOrTx } from "../../../db/client.ts";
import { ulidFloor } from "../../../db/partitions.ts";
import type { Page } from "../../http/list.ts";
import { addMs } from "../../lib/clock.ts";
import type { Attempt, AttemptFilter, AttemptSummary } from "../delivery-model.ts";

const columns = (db: DbOrTx) => db.sql`
  id, event_id as "eventId", event, attempt, round, sequence, started_at as "startedAt",
  duration_ms as "durationMs", outcome, status_code as "statusCode", error_code as "errorCode",
  request_headers as "requestHeaders", request_body as "requestBody", response_headers as "responseHeaders",
  response_excerpt as "responseExcerpt", response_truncated as "responseTruncated",
  next_attempt_at as "nextAttemptAt"`;

/**
 * Newest first by id. The ids are ULIDs of the start, so a time is a bound on them, and only the partitions between
 * the bounds are read.
 */
export async function attemptsOf(
  db: DbOrTx,
  subscriptionId: string,
  filter: AttemptFilter,
  page: Page,
): Promise<Attempt[]> {
  const { sql } = db;
  const conditions = [
    filter.event === undefined ? sql`` : sql`and event = ${filter.event}`,
    filter.eventId === undefined ? sql`` : sql`and event_id = ${filter.eventId}`,
    filter.outcome === undefined ? sql`` : sql`and outcome = ${filter.outcome}`,
    filter.since === undefined ? sql`` : sql`and id >= ${idAt(filter.since)}`,
    filter.until === undefined ? sql`` : sql`and id < ${idAt(filter.until)}`,
    page.after === undefined ? sql`` : sql`and id < ${page.after}`,
  ];
  return sql<Attempt[]>`
    select ${columns(db)} from delivery_attempts
     where subscription_id = ${subscriptionId} ${conditions}
     order by id desc limit ${page.limit + 1}`;
}

/** The smallest id of an attempt that started at `at`. ULIDs know no time before 1970. */
function idAt(at: Date): string {
  return ulidFloor(addMs(at, Math.max(0, -at.getTime())));
}

/** The newest attempts of one event, the oldest of them first. */
export async function attemptsOfEvent(
  db: DbOrTx,
  subscriptionId: string,
  eventId: string,
  limit: number,
): Promise<Attempt[]> {
  const rows = await db.sql<Attempt[]>`
    select ${columns(db)} from delivery_attempts
     where event_id = ${eventId} and subscription_id = ${subscriptionId}
     order by id desc limit ${limit}`;
  return rows.toReversed();
}

/** Without what was sent and answered, which may be long. */
export async function attemptsSince(
  db: DbOrTx,
  subscriptionId: string,
  since: Date,
  limit: number,
): Promise<AttemptSummary[]> {
  return db.sql<AttemptSummary[]>`
    select id, event_id as "eventId", event, attempt, round, sequence, started_at as "startedAt",
           duration_ms as "durationMs", outcome, status_code as "statusCode", error_code as "errorCode",
           next_attempt_at as "nextAttemptAt"
      from delivery_attempts
     where subscription_id = ${subscriptionId} and id >= ${idAt(since)}
     order by id desc limit ${limit}`;
}
