import { sql } from "drizzle-orm";

import type { DbOrTx } from "./client.ts";
import { onlyRow } from "./only-row.ts";
import { instant, statement } from "./statement.ts";

const clockOfServer = statement({
  name: "serverTime",
  reason: "It is of no table.",
  params: {},
  columns: { now: instant },
  text: () => sql`select clock_timestamp() as now`,
});

/** What time it is for Postgres, whose clock decides about data. */
export async function serverTime(db: DbOrTx): Promise<Date> {
  return onlyRow(await db.run(clockOfServer, {})).now;
}
