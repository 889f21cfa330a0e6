import type { Tx } from "../../db/client.ts";
import { isoInstant } from "../../src/lib/clock.ts";
import { ATTEMPTS } from "../actor/decide.ts";
import type { Failure } from "./queries.ts";
import { lastFailures } from "./queries.ts";

/** What was known when an alert was raised; a row of `alerts` keeps it, mail and POST say it. */
export interface Cause {
  readonly consecutive_failure_count?: number;
  readonly first_failure?: ToldFailure | null;
  readonly last_failure?: ToldFailure | null;
  readonly oldest_waiting_since?: string | null;
}

interface ToldFailure {
  readonly at: string;
  readonly event_id: string;
  readonly event: string;
  readonly status_code: number | null;
  readonly error_code: string | null;
}

/** Of the present run of permanent failures, or of the retries where there is none. */
export async function causeOf(
  tx: Tx,
  subscription: { readonly id: string; readonly failures: number; readonly oldestAt: Date | null },
): Promise<Cause> {
  const { id, failures, oldestAt } = subscription;
  const retries = await lastFailures(tx, id, { outcome: "retry", limit: ATTEMPTS });
  const [retry] = retries;
  const run =
    failures === 0 ? [] : await lastFailures(tx, id, { outcome: "failed", limit: failures });
  const last = [retry, run[0]].filter((one) => one !== undefined).toSorted(newestFirst)[0];
  return {
    consecutive_failure_count: failures,
    first_failure: told(
      run.at(-1) ?? retries.findLast(({ eventId }) => eventId === retry?.eventId),
    ),
    last_failure: told(last),
    oldest_waiting_since: oldestAt === null ? null : isoInstant(oldestAt),
  };
}

const newestFirst = (a: Failure, b: Failure) => b.at.getTime() - a.at.getTime();

function told(failure: Failure | undefined): ToldFailure | null {
  if (failure === undefined) return null;
  const { at, eventId, event, statusCode, errorCode } = failure;
  return {
    at: isoInstant(at),
    event_id: eventId,
    event,
    status_code: statusCode,
    error_code: errorCode,
  };
}
