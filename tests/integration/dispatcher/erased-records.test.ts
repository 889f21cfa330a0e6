// The commit of an attempt and the erasure of its event, in every order (contract 10.8).
import { describe, expect, test } from "bun:test";

import type { Tx } from "../../../db/client.ts";
import type { AttemptRecord } from "../../../dispatcher/store/attempt-queries.ts";
import { isLockTimeout } from "../../../db/errors.ts";
import { eventsOfReview, replaceEvents } from "../../../src/tenants/queries/erase.ts";
import { untilSomebodyWaits } from "../../support/auth-races.ts";
import { startCommits, untilFree } from "../../support/commits.ts";
import { fixture } from "../../support/fixture.ts";

const commits = fixture(startCommits);

const KINDS = [
  ["successes", {}],
  ["a retry", { decision: { kind: "retry", delayMs: 60_000 }, statusCode: 500 }],
  ["a permanent failure", { decision: { kind: "failed" }, statusCode: 410 }],
] as const;

describe.each(KINDS)("the record of %s", (_, fields) => {
  test("keeps its response if nothing was erased since the load", async () => {
    const { subscriptionId, recordOf, tenant } = await commits.queued(2);
    await erase(tenant.reviewIds[0]);
    await commits.commit([{ ...recordOf(1), ...fields, erasures: 1 }]);
    expect(await responsesOf(subscriptionId)).toEqual(["Ada"]);
  });

  test("has no response if the erasure was committed before", async () => {
    const { subscriptionId, recordOf, tenant } = await commits.queued(2);
    await erase(tenant.reviewIds[0]);
    await commits.commit([{ ...recordOf(1), ...fields }]);
    expect(await responsesOf(subscriptionId)).toEqual([null]);
  });

  test("has no response if it waits for the erasure", async () => {
    const { subscriptionId, recordOf, tenant } = await commits.queued(2);
    let committing: Promise<unknown> = Promise.resolve();
    await commits.db.transaction(async (tx) => {
      await eraseIn(tx, tenant.reviewIds[0]);
      committing = commits.commit([{ ...recordOf(1), ...fields }]);
      await untilSomebodyWaits(commits.db);
    });
    await committing;
    expect(await responsesOf(subscriptionId)).toEqual([null]);
  });

  test("loses its response if the erasure waits for it", async () => {
    const { subscriptionId, recordOf, tenant } = await commits.queued(2);
    let erasing: Promise<unknown> = Promise.resolve();
    await commits.db.transaction(async (tx) => {
      await commits.commitIn(tx, [{ ...recordOf(1), ...fields }]);
      erasing = erase(tenant.reviewIds[0]);
      await untilSomebodyWaits(commits.db);
    });
    await erasing;
    expect(await responsesOf(subscriptionId)).toEqual([null]);
  });

  test("keeps its response if its event is not erased, but another one of the partner", async () => {
    const { subscriptionId, recordOf, tenant } = await commits.queued(2, 2);
    await erase(tenant.reviewIds[1]);
    await commits.commit([{ ...recordOf(1), ...fields }]);
    expect(await responsesOf(subscriptionId)).toEqual(["Ada"]);
  });

  test("has no response if its event was deleted", async () => {
    const { subscriptionId, recordOf, tenant } = await commits.queued(2);
    const { eventId } = recordOf(1);
    await commits.db.transaction(async (tx) => {
      await tx.sql`set local session_replication_role = replica`;
      await eraseIn(tx, tenant.reviewIds[0]);
      await tx.sql`delete from review_history where event_id = ${eventId}`;
    });
    await commits.commit([{ ...recordOf(1), ...fields }]);
    expect(await responsesOf(subscriptionId)).toEqual([null]);
  });
});

test("in one group, each record keeps or loses its response by the load of its own entry", async () => {
  const { subscriptionId, recordOf, tenant } = await commits.queued(3);
  await erase(tenant.reviewIds[0]);
  const read = [0, 1, 1].map((erasures, i) => ({ ...recordOf(i + 1), erasures }));
  await commits.commit(read);
  expect(await responsesOf(subscriptionId)).toEqual([null, "Ada", "Ada"]);
});

test("the response of a test is kept", async () => {
  const { subscriptionId, shard, recordOf, tenant } = await commits.queued(1);
  await commits.db.sql`
    insert into outbox (shard, subscription_id, sequence, event_id, event, payload_mode, is_test, recorded_at)
    values (${shard}, ${subscriptionId}, 2, 'T', 'webhook.test', 'full', true, now())`;
  await erase(tenant.reviewIds[0]);
  const composed = { payloadFormat: null, host: null, signature: null, bodyDigest: null };
  const whole = { requestHeaders: {}, requestBody: "{}", isLogged: false, eventId: "T" };
  await commits.commit([{ ...recordOf(2), ...composed, ...whole }]);
  expect(await responsesOf(subscriptionId)).toEqual(["Ada"]);
});

test("an erasure waits half a second at most for a locked offset, and then changes nothing", async () => {
  const { subscriptionId, recordOf, tenant } = await commits.queued(1);
  const other = await commits.queued(1);
  const both = [tenant.reviewIds[0], other.tenant.reviewIds[0]];
  await commits.db.transaction(async ({ sql }) => {
    await sql`select from outbox_offsets where subscription_id = ${other.subscriptionId} for update`;
    const failure = await commits.db
      .transaction(async (tx) => {
        for (const reviewId of both) await eraseIn(tx, reviewId);
      })
      .catch((error: unknown) => error);
    expect(isLockTimeout(failure)).toBe(true);
    // The attempts of the partner whose offset was free are committed again.
    await commits.commit([recordOf(1)]);
  });
  expect(await responsesOf(subscriptionId)).toEqual(["Ada"]);
  for (const reviewId of both) await erase(reviewId);
  expect(await responsesOf(subscriptionId)).toEqual([null]);
});

test("erasures and commits of many subscriptions at once end, and leave no response", async () => {
  const all = await Promise.all(Array.from({ length: 6 }, () => commits.queued(8)));
  const reviewIds = all.map(({ tenant }) => tenant.reviewIds[0]);
  const records = (sequence: number): AttemptRecord[] =>
    all.map(({ recordOf }) => recordOf(sequence));
  const eraseAll = (ids: readonly (number | undefined)[]) => {
    const own = commits.connect();
    return untilFree(() =>
      own.transaction(async (tx) => {
        for (const reviewId of ids) await eraseIn(tx, reviewId);
      }),
    );
  };
  const committing = async () => {
    for (let sequence = 1; sequence <= 8; sequence++) await commits.commit(records(sequence));
  };
  await Promise.all([committing(), eraseAll(reviewIds), eraseAll(reviewIds.toReversed())]);
  for (const { subscriptionId } of all)
    expect(await responsesOf(subscriptionId)).toEqual(Array.from({ length: 8 }, () => null));
}, 60_000);

/** Marks the events of a review as erased, as an erasure of its reviewer does. */
async function eraseIn(tx: Tx, reviewId: number | undefined): Promise<void> {
  await replaceEvents(tx, await eventsOfReview(tx, reviewId ?? 0, 0));
}

const erase = (reviewId: number | undefined) =>
  commits.connect().transaction((tx) => eraseIn(tx, reviewId));

/** Returns the excerpts of the responses in the order of the sequences. The headers go with them. */
async function responsesOf(subscriptionId: string): Promise<(string | null)[]> {
  const rows = await commits.db.sql<{ excerpt: string | null; headers: object | null }[]>`
    select response_excerpt as excerpt, response_headers as headers from delivery_attempts
     where subscription_id = ${subscriptionId} order by sequence`;
  for (const { excerpt, headers } of rows) expect(headers === null).toBe(excerpt === null);
  return rows.map(({ excerpt }) => excerpt);
}
