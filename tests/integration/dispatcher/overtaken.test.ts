import { beforeAll, expect, test } from "bun:test";

import { passLogged } from "../../../db/log.ts";
import { commitAttempts } from "../../../dispatcher/store/committer.ts";
import type { AttemptRecord } from "../../../dispatcher/store/attempt-queries.ts";
import { failureOf } from "../../../dispatcher/store/group-runner.ts";
import { untilSomebodyWaits } from "../../support/auth-races.ts";
import { createTestBox } from "../../support/dispatch.ts";
import {
  attemptRecord,
  insertSubscription,
  insertTenant,
  record,
  reviewAction,
} from "../../support/outbox.ts";
import { createDatabase } from "../../support/postgres.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);

test("a commit that waits for the offset settles entries that the offset passed meanwhile", async () => {
  const { subscriptionId, recordOf } = await queued(3);
  let committing: Promise<unknown> = Promise.resolve();
  await database.db.transaction(async (tx) => {
    await passLogged(tx, subscriptionId, PASSED);
    committing = commit([recordOf(1), recordOf(3)]);
    await untilBlocked();
  });
  await committing;
  expect(await stateOf(subscriptionId)).toEqual({ queued: [2], settled: [1, 3] });
});

test("a commit of consecutive successes that waits for the offset settles entries that it passed meanwhile", async () => {
  const { subscriptionId, recordOf } = await queued(3);
  let committing: Promise<unknown> = Promise.resolve();
  await database.db.transaction(async (tx) => {
    await passLogged(tx, subscriptionId, PASSED);
    committing = commit([recordOf(1), recordOf(2)]);
    await untilBlocked();
  });
  await committing;
  expect(await stateOf(subscriptionId)).toEqual({ queued: [3], settled: [1, 2] });
});

test("a commit that is repeated while it still runs settles only the record that was added", async () => {
  const { subscriptionId, recordOf } = await queued(4);
  const retried = { ...recordOf(3), decision: { kind: "retry", delayMs: 60_000 } } as const;
  const records = [recordOf(2), retried];
  let repeated: Promise<unknown> = Promise.resolve();
  await database.db.transaction(async (tx) => {
    await commitAttempts(tx, DISPATCHER, { records, now: new Date(), monotonicMs: 0 });
    // The repetition also has the record of the entry before, which was in flight at first.
    repeated = commit([...records, recordOf(1)]);
    await untilBlocked();
  });
  await repeated;
  expect(await stateOf(subscriptionId)).toEqual({ queued: [3, 4], settled: [1, 2] });
});

const DISPATCHER = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

const PASSED = { limit: 10, lockMs: 1_000 };

beforeAll(async () => {
  await database.db
    .sql`insert into dispatchers (id, started_at, renewed_at) values (${DISPATCHER}, now(), now())`;
});

/** Adds a subscription with `events` events in its log. */
async function queued(events: number) {
  const { db } = database;
  const tenant = await insertTenant(db);
  const { partnerId } = tenant;
  const box = createTestBox();
  const url = "https://partner.example";
  const { subscriptionId, shard } = await insertSubscription({ db, box }, { partnerId, url });
  const actions = Array.from({ length: events }, () => reviewAction(tenant));
  await record(db, actions);
  const recordOf = (sequence: number): AttemptRecord =>
    attemptRecord({
      id: DISPATCHER.slice(0, -2) + String(sequence).padStart(2, "0"),
      shard,
      subscriptionId,
      sequence,
      eventId: actions[sequence - 1]?.eventId ?? "",
      statusCode: 200,
      errorCode: null,
      decision: { kind: "delivered" },
    });
  return { subscriptionId, recordOf };
}

/** Commits, and retries after a lock timeout as the dispatcher does: on a loaded machine the wait may exceed 100 ms. */
async function commit(records: readonly AttemptRecord[]) {
  const db = database.connect();
  for (;;)
    try {
      return await commitAttempts(db, DISPATCHER, { records, now: new Date(), monotonicMs: 0 });
    } catch (error) {
      if (failureOf(error) !== "waits") throw error;
    }
}

const untilBlocked = () => untilSomebodyWaits(database.db);

async function stateOf(subscriptionId: string) {
  const { sql } = database.db;
  const left = await sql<{ sequence: number }[]>`
    select sequence from queued_entries where subscription_id = ${subscriptionId} order by sequence`;
  const settled = await sql<{ sequence: number }[]>`
    select sequence from delivery_attempts
     where subscription_id = ${subscriptionId} and recorded_at is not null order by sequence`;
  const sequences = (rows: readonly { sequence: number }[]) => rows.map(({ sequence }) => sequence);
  return { queued: sequences(left), settled: sequences(settled) };
}
