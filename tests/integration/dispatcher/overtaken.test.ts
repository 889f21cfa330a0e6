import { expect, test } from "bun:test";

import { passLogged } from "../../../db/log.ts";
import { untilSomebodyWaits } from "../../support/auth-races.ts";
import { startCommits } from "../../support/commits.ts";
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
