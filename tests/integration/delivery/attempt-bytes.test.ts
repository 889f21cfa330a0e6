import { expect, test } from "bun:test";

import { measureAttemptBytes } from "../../../scripts/bench/attempt-bytes.ts";
import { createDatabase } from "../../support/postgres.ts";

/** Beside what the receiver answered. What pays for disks is this, times the days of retention. */
const MOST = 450;
/** With the index by event value. */
const MOST_OF_ENDED = 500;

test(`a delivered event leaves at most ${MOST} bytes in attempts and their indexes`, async () => {
  const database = await createDatabase();
  try {
    // Today's, and of a day that has ended.
    const { table, indexes, endedIndexes } = await measureAttemptBytes(database.db, {
      rows: 20_000,
      subscriptions: 50,
    });
    expect(table + indexes).toBeLessThan(MOST);
    expect(table + endedIndexes).toBeLessThan(MOST_OF_ENDED);
  } finally {
    await database.drop();
  }
});
