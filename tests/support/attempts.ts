import { ulid } from "ulid";

import type { RawDb } from "../../db/client.ts";

interface AttemptRow {
  readonly id: string;
  readonly sequence: number;
  readonly event_id: string;
  readonly event: string;
  readonly round: number;
  readonly attempt: number;
  readonly started_at: Date;
  readonly duration_ms: number;
  readonly outcome: string;
  readonly status_code: number | null;
  readonly error_code: string | null;
  readonly request_headers: string;
  readonly request_body: string;
  readonly response_headers: string;
  readonly response_excerpt: string | null;
  readonly next_attempt_at: Date | null;
  readonly possibly_repeated: boolean;
  readonly payload_mode: "full" | null;
  readonly recorded_at: Date | null;
}

/** Inserts an attempt that delivered a `review_received` in 5 ms, unless `fields` say something else. Returns its id. */
export async function addAttempt(
  { sql }: Pick<RawDb, "sql">,
  subscriptionId: string,
  fields: Partial<AttemptRow> = {},
): Promise<string> {
  const { started_at = new Date(), id = ulid(started_at.getTime()) } = fields;
  const row = {
    sequence: 1,
    event_id: ulid(),
    event: "review_received",
    round: 1,
    attempt: 1,
    duration_ms: 5,
    outcome: "delivered",
    status_code: 200,
    request_headers: "{}",
    request_body: "{}",
    response_truncated: false,
    ...fields,
  };
  await sql`
    insert into delivery_attempts ${sql({ ...row, id, started_at, subscription_id: subscriptionId })}`;
  return id;
}
