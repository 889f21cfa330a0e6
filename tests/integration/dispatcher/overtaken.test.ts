import { expect, test } from "bun:test";

import type { Tx } from "../../../db/client.ts";
import { holdQueued, passLogged, releaseHeld } from "../../../db/log.ts";
import { bringDueTimesBack } from "../../../dispatcher/due-time-queries.ts";
import { skipTests } from "../../../src/webhooks/queries/entries.ts";
import { untilSomebodyWaits } from "../../support/auth-races.ts";
import { startCommits } from "../../support/commits.ts";
import { silentLog } from "../../support/dispatch.ts";
import { fixture } from "../../support/fixture.ts";

const commits = fixture(startCommits);

test("a commit that waits for the offset settles entries that the offset passed meanwhile", async () => {
  const { subscriptionId, recordOf } = await commits.queued(3);
  let committing: Promise<unknown> = Promise.resolve();
  await commits.db.transaction(async (tx) => {
    await passLogged(tx, subscriptionId, PASSED);
    committing = commits.commit([recordOf(1), recordOf(3)]);
    await untilBlocked();
  });
  await committing;
  expect(await stateOf(subscriptionId)).toEqual({ queued: [2], settled: [1, 3] });
});

test("a commit of consecutive successes that waits for the offset settles entries that it passed meanwhile", async () => {
  const { subscriptionId, recordOf } = await commits.queued(3);
  let committing: Promise<unknown> = Promise.resolve();
  await commits.db.transaction(async (tx) => {
    await passLogged(tx, subscriptionId, PASSED);
    committing = commits.commit([recordOf(1), recordOf(2)]);
    await untilBlocked();
  });
  await committing;
  expect(await stateOf(subscriptionId)).toEqual({ queued: [3], settled: [1, 2] });
});

test("a commit that is repeated while it still runs settles only the record that was added", async () => {
  const { subscriptionId, recordOf } = await commits.queued(4);
  const retried = { ...recordOf(3), decision: { kind: "retry", delayMs: 60_000 } } as const;
  const records = [recordOf(2), retried];
  let repeated: Promise<unknown> = Promise.resolve();
  await commits.db.transaction(async (tx) => {
    await commits.commitIn(tx, records);
    // The repetition also has the record of the entry before, which was in flight at first.
    repeated = commits.commit([...records, recordOf(1)]);
    await untilBlocked();
  });
  await repeated;
  expect(await stateOf(subscriptionId)).toEqual({ queued: [3, 4], settled: [1, 2] });
});

type Queued = Awaited<ReturnType<typeof commits.queued>>;

const WRITERS: readonly [
  string,
  { readonly sql?: string; readonly change: (tx: Tx, one: Queued) => Promise<unknown> },
][] = [
  [
    "a hold",
    {
      change: (tx, { subscriptionId: id }) =>
        holdQueued(tx, { id, after: 0, exceptReviews: [], heldAt: new Date() }),
    },
  ],
  ["a release", { sql: "skipped_at = now(), is_held = true", change: release("deliver") }],
  [
    "a drop of what is held",
    { sql: "skipped_at = now(), is_held = true", change: release("skip") },
  ],
  [
    "a skip of tests",
    {
      sql: "is_test = true, event = 'webhook.test', review_history_id = null",
      change: (tx, { subscriptionId: id, shard }) => skipTests(tx, { id, shard }, new Date()),
    },
  ],
  [
    "a correction of due times",
    {
      sql: "state = 'waiting', due_at = now() + interval '1 day'",
      change: (tx) => bringDueTimesBack({ db: tx, ...DUE_TIMES }, " 0"),
    },
  ],
];

test.each(WRITERS)("a success whose row %s changes meanwhile is settled", async (_, writer) => {
  const one = await commits.queued(2);
  const { subscriptionId, tenant, recordOf } = one;
  const { sql } = commits.db;
  await passLogged(commits.db, subscriptionId, PASSED);
  await sql.unsafe(`update outbox set ${writer.sql ?? "attempt = attempt"}
                     where subscription_id = '${subscriptionId}' and sequence = 1`);
  await sql`update companies set is_active = false where id = ${tenant.accountId}`;
  let committing: Promise<unknown> = Promise.resolve();
  await commits.db.transaction(async (tx) => {
    await writer.change(tx, one);
    committing = commits.commit([{ ...recordOf(1), isLogged: false }]);
    await untilBlocked();
  });
  await committing;
  const left = await sql<{ sequence: number }[]>`
    select sequence from outbox where subscription_id = ${subscriptionId}`;
  expect([(await stateOf(subscriptionId)).settled, left.map(({ sequence }) => sequence)]).toEqual([
    [1],
    [2],
  ]);
});

test("a release of a row whose due time is corrected meanwhile releases it", async () => {
  const one = await commits.queued(2);
  const { subscriptionId } = one;
  const { sql } = commits.db;
  await passLogged(commits.db, subscriptionId, PASSED);
  await sql`
    update outbox set skipped_at = now(), is_held = true, state = 'waiting', due_at = now() + interval '1 day'
     where subscription_id = ${subscriptionId}`;
  let releasing: Promise<unknown> = Promise.resolve();
  await commits.db.transaction(async (tx) => {
    await bringDueTimesBack({ db: tx, ...DUE_TIMES }, " 0");
    releasing = commits.connect().transaction((own) => release("deliver")(own, one));
    await untilBlocked();
  });
  await releasing;
  expect(await stateOf(subscriptionId)).toEqual({ queued: [1, 2], settled: [] });
});

function release(held: "deliver" | "skip") {
  return (tx: Tx, { subscriptionId: id, shard, tenant: { accountId } }: Queued) =>
    releaseHeld(tx, { id, shard }, { accountId, held });
}

const DUE_TIMES = {
  log: silentLog,
  config: {
    retryDelaysMs: [60_000],
    batchHourMs: 3_600_000,
    lockScheduleS: [],
    auditPauseMs: 300_000,
  },
};
const PASSED = { limit: 10, lockMs: 1_000 };

const untilBlocked = () => untilSomebodyWaits(commits.db);

async function stateOf(subscriptionId: string) {
  const { sql } = commits.db;
  const left = await sql<{ sequence: number }[]>`
    select sequence from queued_entries where subscription_id = ${subscriptionId} order by sequence`;
  const settled = await sql<{ sequence: number }[]>`
    select sequence from delivery_attempts
     where subscription_id = ${subscriptionId} and recorded_at is not null order by sequence`;
  const sequences = (rows: readonly { sequence: number }[]) => rows.map(({ sequence }) => sequence);
  return { queued: sequences(left), settled: sequences(settled) };
}
