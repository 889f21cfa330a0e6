import type { DbOrTx, RawDb } from "../../db/client.ts";
import type { AttemptRecord } from "../../dispatcher/store/attempt-queries.ts";
import { isDeadlock, isLockTimeout } from "../../db/errors.ts";
import { commitAttempts, type CommitResult } from "../../dispatcher/store/attempt-queries.ts";
import { createTestBox } from "./dispatch.ts";
import { attemptRecord, insertSubscription, insertTenant, record, reviewAction } from "./outbox.ts";
import { createDatabase } from "./postgres.ts";

const DISPATCHER = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

/** A database with the lease of a dispatcher, for tests of single commits of attempts. */
export async function startCommits() {
  const database = await createDatabase();
  const { db } = database;
  await db.sql`insert into dispatchers (id, started_at, renewed_at) values (${DISPATCHER}, now(), now())`;
  const commitIn = (on: DbOrTx, records: readonly AttemptRecord[]) =>
    commitAttempts(on, DISPATCHER, { records, now: new Date(), monotonicMs: 0 });
  return {
    db,
    connect: (): RawDb => database.connect(),
    drop: () => database.drop(),
    queued: (events: number, reviews = 1) => queued(db, events, reviews),
    commitIn,
    /** Commits, and retries as the dispatcher does: on a loaded machine the wait for a lock may exceed 100 ms. */
    commit(records: readonly AttemptRecord[]): Promise<CommitResult> {
      const own = database.connect();
      return untilFree(() => commitIn(own, records));
    },
  };
}

/** Runs `work` again as long as it ends with a lock timeout or, where `deadlock_timeout` is shorter, with a deadlock. */
export async function untilFree<T>(work: () => Promise<T>): Promise<T> {
  for (;;)
    try {
      return await work();
    } catch (error) {
      if (!isLockTimeout(error) && !isDeadlock(error)) throw error;
    }
}

/** Adds a subscription with events in its log, in turn of each review. `recordOf` makes the record of a success. */
async function queued(db: RawDb, events: number, reviews: number) {
  const tenant = await insertTenant(db, reviews);
  const { partnerId } = tenant;
  const box = createTestBox();
  const url = "https://partner.example";
  const { subscriptionId, shard } = await insertSubscription({ db, box }, { partnerId, url });
  const actions = Array.from({ length: events }, (_, n) =>
    reviewAction(tenant, { reviewId: tenant.reviewIds[n % reviews] ?? 0 }),
  );
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
      responseHeaders: { server: "Ada" },
      responseExcerpt: "Ada",
      decision: { kind: "delivered" },
    });
  return { subscriptionId, shard, tenant, recordOf };
}
