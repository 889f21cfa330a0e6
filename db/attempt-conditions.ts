import { sql, type SQL, type SQLWrapper } from "drizzle-orm";

import { deliveryAttempts } from "./schema/attempts.ts";

// What is asked of attempts, in the forms that their indexes know.

/** Attempts of an event. Their index knows the beginning of an event's id: its time and 25 random bits. */
export function isAttemptOf(eventId: SQLWrapper, wanted: SQLWrapper): SQL {
  return sql`${eventId} = ${wanted} and left(${eventId}, 15) = left(${wanted}, 15)`;
}

/** What finds a subscription's attempts of an event value on a day that has ended, beside the two themselves. */
export function hashOfValue(subscriptionId: string, event: SQL): SQL {
  const { subscriptionId: ownId, event: ownEvent } = deliveryAttempts;
  const wanted = sql`hashtext(${subscriptionId}::text || ${event})`;
  return sql`hashtext(${ownId} || ${ownEvent}) = ${wanted}`;
}
