// The sequence headers at the partner's endpoint (contract 7.19): the whole dispatcher runs beside the API.
import { beforeEach, describe, expect, test } from "bun:test";

import { passLogged } from "../../../db/log.ts";
import type { LoadRequest, Subscription } from "../../../dispatcher/actor/event.ts";
import { createStore } from "../../../dispatcher/store/store.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { SequenceChecker } from "../../verdicts/sequence-checker.ts";
import { silentLog } from "../../support/dispatch.ts";
import { connectStore, created, report } from "../../support/factory.ts";
import { fixture } from "../../support/fixture.ts";
import { forceHistory } from "../../support/history.ts";
import { type Receiver, type Received, until } from "../../support/network/receiver.ts";
import { insertTenant, record, reviewAction, type Tenant } from "../../support/outbox.ts";
import { webhookDeliveries } from "../../support/deliveries.ts";

const { world, ...running } = webhookDeliveries();
const otherSite = fixture(async () => {
  const [, other] = world.tenants.partners[0].accounts;
  return { id: await connectStore(world.database.db, other, { provider: world.provider }) };
});

describe.each(["subscription", "review"])("with ordering by %s", (ordering) => {
  beforeEach(async () => {
    checker = new SequenceChecker();
    receiver = await running.receiver();
    running.dispatcher({ batchHourMs: 500 });
    const fields = { webhook_url: receiver.url, ordering, sequence_headers: true };
    ({ id } = await world.subscribe(fields));
  });

  test("a receiver finds exactly the events that it missed, among tests, repeats, skips and held events", async () => {
    const [first = ""] = await delivered(2);
    await world.ask("POST", `/${id}/test`);
    await until("the test", async () => (await attempts()).length === 3);
    receiver.answer = () => 410;
    const [failed = ""] = await delivered(1, "failed");
    receiver.answer = () => 200;
    await redeliver(first);

    await changeAccount("deactivate");
    const held = await world.emit(1);
    await until("the hold", async () => (await state(held[0])) === "held");
    const [beside] = await emitOther();
    await until("the other account's", async () => (await state(beside)) === "delivered");
    await changeAccount("activate");
    await until("the held one", async () => (await state(held[0])) === "delivered");

    await world.ask("POST", `/${id}/disable`);
    await world.emit(1);
    await world.ask("POST", `/${id}/enable`, { body: { held: "skip" } });
    await delivered(1);
    expect(checker.missed).toEqual([]);
    for (const post of receiver.received) take(post);
    expect(checker.missed).toEqual([3, 6]);
    await redeliver(failed);
    take(receiver.received.at(-1));
    expect(checker.missed).toEqual([6]);

    expect(receiver.received.map(placeOf)).toEqual([
      ["1", "0"],
      ["2", "1"],
      // The test.
      [undefined, undefined],
      // It was answered 410.
      ["3", "2"],
      ["1", "3"],
      // The event of the other account, while the fourth is held.
      ["5", "3"],
      // With lanes by review, all others are settled. With one lane it is the one before.
      ["4", "3"],
      ["7", "6"],
      ["3", "7"],
    ]);
    await showsWhatCame();
  });

  test("the events of a batch have no numbers, and take none of those of the other slot", async () => {
    const batched = await running.receiver();
    const fields = { delivery_kind: "batch", batch_interval_hours: 1, ordering: undefined };
    const batch = await world.subscribe({ ...fields, webhook_url: batched.url });
    await delivered(2);
    await until("the batch", () => batched.received.length >= 2);
    expect(batched.received.map(placeOf)).toEqual([
      [undefined, undefined],
      [undefined, undefined],
    ]);
    expect(receiver.received.map(placeOf)).toEqual([
      ["1", "0"],
      ["2", "1"],
    ]);
    await world.ask("DELETE", `/${batch.id}`);
  });

  test("an event that waits for a retry keeps its number, and holds back what is settled", async () => {
    receiver.answer = ({ headers }) => (headers["x-svc-sequence"] === "1" ? failing : 200);
    failing = 500;
    const [waiting] = await world.emit(3);
    const sent = (number: string) =>
      receiver.received.filter(({ headers }) => headers["x-svc-sequence"] === number);
    await until("two attempts", () => sent("1").length >= 2);
    failing = 200;
    await until("all of them", async () => (await state(waiting)) === "delivered");
    await until("the last", () => sent("3").length === 1);
    const settled = (number: string) =>
      new Set(sent(number).map(({ headers }) => headers["x-svc-settled"]));
    expect(settled("1")).toEqual(new Set(["0"]));
    if (ordering === "subscription") expect(settled("3")).toEqual(new Set(["2"]));
    for (const post of receiver.received) take(post);
    expect(checker.missed).toEqual([]);
    await until("the records", async () => (await attempts()).length === receiver.received.length);
    await showsWhatCame();
  });
});

// The limits of loads, of which the dispatcher above shows only some.
describe("what a load by review calls settled", () => {
  const tenant: Tenant = fixture(async () => ({
    ...(await insertTenant(world.database.db, 4)),
    partnerId: world.tenants.partners[0].id,
  }));

  async function subscribe(): Promise<void> {
    world.clock.set(systemClock.now());
    ({ id } = await world.subscribe({ ordering: "review", sequence_headers: true }));
  }

  const recordEvents = async (count: number) => {
    const actions = Array.from({ length: count }, (_, i) =>
      reviewAction(tenant, { reviewId: tenant.reviewIds[i % 4] ?? 0 }),
    );
    await record(world.database.db, actions);
    return actions.map(({ eventId }) => eventId);
  };

  /** Moves the offset past all events, and ends those of these sequences. */
  async function endAll(sequences: readonly number[]): Promise<void> {
    const { db } = world.database;
    await passLogged(db, id, { limit: 1_000, lockMs: 1_000 });
    await db.sql`
      delete from outbox where subscription_id = ${id} and sequence = any(${[...sequences]}::bigint[])`;
  }

  const remove = (eventId: string | undefined) =>
    forceHistory(
      world.database.db,
      (sql) => sql`delete from review_history where event_id = ${eventId ?? ""}`,
    );

  async function load(hints: Partial<LoadRequest> = {}): Promise<Subscription | undefined> {
    const { db } = world.database;
    const { box } = world.api.deps;
    const config = { batchHourMs: 1_000 };
    const store = createStore({ db, clock: systemClock, box, log: silentLog, config });
    const [row] = await db.sql<{ shard: number }[]>`
      select shard from webhook_subscriptions where id = ${id}`;
    const request = { id, shard: row?.shard ?? 0, generation: 1, after: 0, limit: 64 };
    const asked = { ...request, maxBytes: 1_000_000, exceptReviews: [], ...hints };
    const [answer] = await store.load([asked]);
    return answer?.found?.subscription;
  }

  test("ends before a waiting event whose row in the history is missing", async () => {
    await subscribe();
    const [, second] = await recordEvents(4);
    await endAll([1, 3, 4]);
    expect((await load())?.settledLimit).toBe(1);
    await remove(second);
    expect((await load())?.settledLimit).toBe(1);
  });

  test.each([1, 2])(
    "ends before the %d of 2 events that are missing in the log",
    async (missing) => {
      await subscribe();
      await recordEvents(2);
      await endAll([1, 2]);
      const later = await recordEvents(2);
      for (const eventId of later.slice(0, missing)) await remove(eventId);
      expect((await load())?.settledLimit).toBe(2);
    },
  );

  test.each([1, 2])(
    "is not negative if %d of 2 events after tests are missing",
    async (missing) => {
      await subscribe();
      await recordEvents(1);
      await endAll([1]);
      await world.database.db.sql`
      update outbox_sequences set last_sequence = 4 where subscription_id = ${id}`;
      for (const eventId of (await recordEvents(2)).slice(0, missing)) await remove(eventId);
      expect((await load())?.settledLimit).toBe(0);
    },
  );

  test("does not depend on the settings that the actor knew", async () => {
    await subscribe();
    await recordEvents(3);
    await endAll([1]);
    const limits = async () => {
      const found: (number | null | undefined)[] = [];
      for (const ordering of ["subscription", "review", undefined] as const)
        for (const isNumbered of [true, false])
          // A load that leaves out a review does not begin with the log.
          for (const exceptReviews of [[], [0]])
            found.push((await load({ ordering, isNumbered, exceptReviews }))?.settledLimit);
      return new Set(found);
    };
    expect(await limits()).toEqual(new Set([1]));
    await world.ask("POST", `/${id}`, { body: { ordering: "subscription" } });
    expect(await limits()).toEqual(new Set([3]));
    await world.ask("POST", `/${id}`, { body: { sequence_headers: false } });
    expect(await limits()).toEqual(new Set([null]));
  });

  test("does not search the events that a recovery brought in from before the filter", async () => {
    await subscribe();
    await recordEvents(2);
    await endAll([1, 2]);
    // The rows of events that the log of the subscription does not have.
    const { db } = world.database;
    await db.sql`
      insert into outbox (shard, subscription_id, sequence, event_id, event, payload_mode, recorded_at, review_id,
                          review_history_id)
      select shard, id, 2 + n, lpad(n::text, 26, '0'), 'review_received', 'full', now(), 1, 0
        from webhook_subscriptions, generate_series(1, 3) n where id = ${id}`;
    await db.sql`update outbox_sequences set last_sequence = 5 where subscription_id = ${id}`;
    const [third] = await recordEvents(1);
    expect((await load())?.settledLimit).toBe(2);
    await endAll([6]);
    // It may be lower while such events are queued.
    expect((await load())?.settledLimit).toBe(2);
    await db.sql`delete from outbox where subscription_id = ${id}`;
    expect((await load())?.settledLimit).toBe(3);
    expect(third).toBeString();
  });
});

let id = "";
let receiver: Receiver;
let checker: SequenceChecker;
let failing = 500;
let others = 0;

type Shown = Readonly<Record<string, unknown>> & {
  readonly event_id: string;
  readonly request_headers: Readonly<Record<string, string>>;
};

const placeOf = ({ headers }: Received) => [headers["x-svc-sequence"], headers["x-svc-settled"]];

/** Tells the checker of a request that the receiver accepted. */
function take(post: Received | undefined): void {
  const [number, settled] = post === undefined ? [] : placeOf(post);
  if (number === undefined || post?.answered?.status !== 200) return;
  checker.take({ number: Number(number), settled: Number(settled) });
}

/** Records events one by one, each after the end of the one before. */
async function delivered(count: number, as = "delivered"): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n++) {
    const [eventId = ""] = await world.emit(1);
    await until("its end", async () => (await state(eventId)) === as);
    ids.push(eventId);
  }
  return ids;
}

async function redeliver(eventId: string): Promise<void> {
  const before = receiver.received.length;
  await world.ask("POST", `/${id}/deliveries/${eventId}/redeliver`);
  await until("the redelivery", () => receiver.received.length > before);
  await until("its end", async () => (await state(eventId)) === "delivered");
}

const state = async (eventId = "") =>
  (await world.ask("GET", `/${id}/deliveries/${eventId}`)).body["state"];

async function changeAccount(verb: "activate" | "deactivate"): Promise<void> {
  const [account] = world.tenants.partners[0].accounts;
  await world.api.call("POST", `/admin/accounts/${account.id}/${verb}`, {
    token: world.tokens.root,
  });
}

/** Reports a review of the partner's other account. */
async function emitOther(): Promise<string[]> {
  await report(world.api, world.provider, [created(otherSite.id, `numbered-${++others}`)]);
  const rows = await world.database.db.sql<{ eventId: string }[]>`
    select event_id as "eventId" from review_history order by id desc limit 1`;
  return rows.map(({ eventId }) => eventId);
}

async function attempts(): Promise<readonly Shown[]> {
  const { body } = await world.ask("GET", `/${id}/deliveries?limit=100`);
  return body["data"] as Shown[];
}

/** Checks that the records show the headers of the requests, and none that were not sent (contract 7.13). */
async function showsWhatCame(): Promise<void> {
  const shown = (await attempts()).map(({ event_id, request_headers: headers }) =>
    [event_id, headers["X-SVC-Sequence"], headers["X-SVC-Settled"]].join(" "),
  );
  const came = receiver.received.map((post) =>
    [post.headers["x-svc-delivery"], ...placeOf(post)].join(" "),
  );
  expect(shown.toSorted()).toEqual(came.toSorted());
}
