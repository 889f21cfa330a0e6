import { expect, test } from "bun:test";

import { measureAttemptBytes } from "../../scripts/bench/attempt-bytes.ts";
import { createDatabase } from "../support/postgres.ts";

/** Of a day that has ended, beside what the receiver answered. What pays for disks is this, times the days of retention. */
const MOST = 450;
/** Where subscriptions write to the day, each to its own part of the primary key. */
const MOST_TODAY = 490;

test(`a delivered event leaves at most ${MOST} bytes in attempts and their indexes`, async () => {
  const database = await createDatabase();
  try {
    const { table, indexes, endedIndexes } = await measureAttemptBytes(database.db, {
      rows: 20_000,
      subscriptions: 50,
    });
    expect(table + indexes).toBeLessThan(MOST_TODAY);
    expect(table + endedIndexes).toBeLessThan(MOST);
  } finally {
    await database.drop();
  }
});
