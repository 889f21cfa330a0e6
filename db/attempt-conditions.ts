import { sql, type SQL, type SQLWrapper } from "drizzle-orm";

import { deliveryAttempts, eventPrefix } from "./schema/attempts.ts";

// What is asked of attempts, in the forms that their indexes know.

/** Attempts of an event. */
export function isAttemptOf(eventId: SQLWrapper, wanted: SQLWrapper): SQL {
  return sql`${eventId} = ${wanted} and ${eventPrefix(eventId)} = ${eventPrefix(wanted)}`;
}

/** What finds a subscription's attempts of an event value on a day that has ended, beside the two themselves. */
export function hashOfValue(subscriptionId: string, event: SQL): SQL {
  const { subscriptionId: ownId, event: ownEvent } = deliveryAttempts;
  const wanted = sql`hashtext(${subscriptionId}::text || ${event})`;
  return sql`hashtext(${ownId} || ${ownEvent}) = ${wanted}`;
}
