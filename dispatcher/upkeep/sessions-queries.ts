import { sql } from "drizzle-orm";

import type { Db } from "../../db/client.ts";
import { statement, value } from "../../db/statement.ts";

const ending = statement({
  name: "upkeep.endLostSessions",
  reason: "A view of the server, and a function that ends what it finds there.",
  params: { seconds: value("double precision") },
  columns: { session: value("text"), isEnded: value("boolean") },
  text: ({ seconds }) => sql`
    select format('%s %s', application_name, pid) as session, pg_terminate_backend(pid) as "isEnded"
      from pg_stat_activity
     where datname = current_database() and usename = current_user and application_name like 'reviewrelay%'
       and state = 'active' and wait_event_type = 'Client'
       and state_change < clock_timestamp() - make_interval(secs => ${seconds})`,
});

/**
 * Ends the sessions of our pools that have waited for their client for so long in the midst of a request. Postgres never
 * does: between two messages of a request neither the limit of a statement nor that of an idle transaction holds, so where
 * a proxy between keeps the connection open, a client that is lost there would keep its locks for ever.
 */
export function endLostSessions(
  db: Db,
  seconds: number,
): Promise<{ readonly session: string; readonly isEnded: boolean }[]> {
  return db.run(ending, { seconds });
}
