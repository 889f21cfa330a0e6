// The commit of a success and a skip of its entry, in every order (contract 6.16).
import { expect, test } from "bun:test";

import type { Tx } from "../../../db/client.ts";
import { passLogged, skipQueued } from "../../../db/log.ts";
import { untilSomebodyWaits } from "../../support/auth-races.ts";
import { startCommits } from "../../support/commits.ts";
import { fixture } from "../../support/fixture.ts";

const commits = fixture(startCommits);

test.each(["log", "rows"] as const)(
  "a success of the %s that is committed after the skip is no more skipped, and a failure stays so",
  async (kind) => {
    const { subscriptionId, recordOf } = await queued(4, kind);
    await skip(subscriptionId, 4);
    const failed = { ...recordOf(2), decision: { kind: "failed" } } as const;
    const retried = { ...recordOf(3), decision: { kind: "retry", delayMs: 1_000 } } as const;
    await commits.commit([recordOf(1), failed, retried]);
    expect(await placesOf(subscriptionId)).toEqual({
      queued: [],
      skipped: [2, 3, 4],
      settled: [1],
    });
  },
);

test.each(["log", "rows"] as const)(
  "a success of the %s whose commit waits for the skip is not skipped",
  async (kind) => {
    const { subscriptionId, recordOf } = await queued(3, kind);
    let committing: Promise<unknown> = Promise.resolve();
    await commits.db.transaction(async (tx) => {
      await skip(subscriptionId, 3, tx);
      committing = commits.commit([recordOf(1), recordOf(2)]);
      await untilSomebodyWaits(commits.db);
    });
    await committing;
    expect(await placesOf(subscriptionId)).toEqual({ queued: [], skipped: [3], settled: [1, 2] });
  },
);

test.each(["log", "rows"] as const)(
  "a skip that waits for the commit of a success of the %s leaves it out",
  async (kind) => {
    const { subscriptionId, recordOf } = await queued(3, kind);
    let skipping: Promise<unknown> = Promise.resolve();
    await commits.db.transaction(async (tx) => {
      await commits.commitIn(tx, [recordOf(1)]);
      skipping = skip(subscriptionId, 3);
      await untilSomebodyWaits(commits.db);
    });
    await skipping;
    expect(await placesOf(subscriptionId)).toEqual({ queued: [], skipped: [2, 3], settled: [1] });
  },
);

test("any successes of a skip are taken out of it, and the ranges around them stay", async () => {
  const groups = [[1], [9], [5], [1, 2, 3], [7, 8, 9], [2, 4, 6, 8], [1, 2, 3, 4, 5, 6, 7, 8, 9]];
  for (const late of groups) {
    const { subscriptionId, recordOf } = await commits.queued(9);
    await skip(subscriptionId, 9);
    const rest = Array.from({ length: 9 }, (_, i) => i + 1).filter((n) => !late.includes(n));
    // In any order, with the last one alone, and all of them once more.
    await commits.commit(late.slice(0, -1).toReversed().map(recordOf));
    await commits.commit(late.slice(-1).map(recordOf));
    await commits.commit(late.map(recordOf));
    const expected = { queued: [], skipped: rest, settled: late };
    expect([late, await placesOf(subscriptionId)]).toEqual([late, expected]);
  }
});

test("each success is taken out of the skip that covers it", async () => {
  const { subscriptionId, recordOf } = await commits.queued(6);
  await commits.commit([recordOf(1)]);
  await skip(subscriptionId, 3);
  await skip(subscriptionId, 6);
  await commits.commit([recordOf(3), recordOf(4)]);
  expect(await placesOf(subscriptionId)).toEqual({
    queued: [],
    skipped: [2, 5, 6],
    settled: [1, 3, 4],
  });
});

test("a success that was committed before the skip changes nothing when its commit is repeated", async () => {
  const { subscriptionId, recordOf } = await commits.queued(3);
  await commits.commit([recordOf(1)]);
  await skip(subscriptionId, 3);
  await commits.db.sql`
    update webhook_subscriptions set consecutive_failure_count = 5 where id = ${subscriptionId}`;
  await commits.commit([recordOf(1)]);
  expect(await placesOf(subscriptionId)).toEqual({ queued: [], skipped: [2, 3], settled: [1] });
  expect(await failuresOf(subscriptionId)).toBe(5);
});

test("the number of expired entries is that without the delivered ones", async () => {
  const { subscriptionId, recordOf } = await commits.queued(5);
  await skip(subscriptionId, 5);
  await commits.db.sql`
    update outbox_skips set reason = 'expired', entries = 5 where subscription_id = ${subscriptionId}`;
  await commits.commit([recordOf(2), recordOf(4)]);
  const [row] = await commits.db.sql`
    select sum(entries)::int as entries from outbox_skips where subscription_id = ${subscriptionId}`;
  expect(row).toEqual({ entries: 3 });
});

test("a success of a disabled subscription settles its entry and leaves the counter alone", async () => {
  const { subscriptionId, recordOf } = await commits.queued(2);
  await commits.db.sql`
    update webhook_subscriptions
       set state = 'disabled', disabled_at = now(), disabled_reason = 'manual', consecutive_failure_count = 3
     where id = ${subscriptionId}`;
  await skip(subscriptionId, 2);
  await commits.commit([recordOf(1)]);
  expect(await placesOf(subscriptionId)).toEqual({ queued: [], skipped: [2], settled: [1] });
  expect(await failuresOf(subscriptionId)).toBe(3);
});

test("a success of an entry that is held for an inactive account is not delivered again", async () => {
  const { subscriptionId, recordOf } = await queued(2, "rows");
  await commits.db.sql`
    update outbox set skipped_at = now(), is_held = true where subscription_id = ${subscriptionId}`;
  await commits.commit([recordOf(1)]);
  await commits.db.sql`
    update outbox set skipped_at = null, is_held = false where subscription_id = ${subscriptionId}`;
  expect(await placesOf(subscriptionId)).toEqual({ queued: [2], skipped: [], settled: [1] });
});

async function queued(events: number, kind: "log" | "rows") {
  const made = await commits.queued(events);
  if (kind === "rows")
    await passLogged(commits.db, made.subscriptionId, { limit: 10, lockMs: 1_000 });
  return made;
}

/** Skips all entries up to a sequence, as an enable with `held: skip` does. */
const skip = (subscriptionId: string, through: number, tx?: Tx) => {
  const one = { subscriptionId, through, reason: "skipped", skippedAt: new Date() } as const;
  return tx ? skipQueued(tx, one) : commits.connect().transaction((own) => skipQueued(own, one));
};

async function placesOf(subscriptionId: string) {
  const { sql } = commits.db;
  const [queuedRows, skippedRows, settledRows] = await Promise.all([
    sql<Row[]>`select sequence from queued_entries where subscription_id = ${subscriptionId}`,
    sql<Row[]>`select sequence from skipped_entries where subscription_id = ${subscriptionId}`,
    sql<Row[]>`
      select sequence from delivery_attempts
       where subscription_id = ${subscriptionId} and recorded_at is not null`,
  ]);
  const sequences = (rows: readonly Row[]) =>
    rows.map(({ sequence }) => sequence).toSorted((a, b) => a - b);
  return {
    queued: sequences(queuedRows),
    skipped: sequences(skippedRows),
    settled: sequences(settledRows),
  };
}

interface Row {
  readonly sequence: number;
}

async function failuresOf(subscriptionId: string): Promise<number | undefined> {
  const [row] = await commits.db.sql<{ failures: number }[]>`
    select consecutive_failure_count as failures from webhook_subscriptions where id = ${subscriptionId}`;
  return row?.failures;
}
