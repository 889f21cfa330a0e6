import { expect, test } from "bun:test";

import { measureAttemptBytes } from "../../support/attempt-bytes.ts";
import { createDatabase } from "../../support/postgres.ts";

/** Bytes per attempt without the response. Multiplied by the days of retention, this is the disk space of an event. */
const MOST = 450;

test(`a delivered event leaves at most ${MOST} bytes in attempts and their indexes`, async () => {
  const database = await createDatabase();
  try {
    // Measures the partition of today and that of a past day.
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

/** The same for a partition of a past day, which also has an index by event value. */
const MOST_OF_ENDED = 500;
