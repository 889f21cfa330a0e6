import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createHmac, randomBytes } from "node:crypto";

import { connect, type Tx } from "../../../db/client.ts";
import { BASE_PATH } from "../../../src/http/access.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { newSecret } from "../../../src/lib/secrets.ts";
import { createSecretBox } from "../../../src/lib/secrets.ts";
import { createWriterPool, type WriterPool } from "../../../src/outbox/writer-pool.ts";
import { providerSecretContext } from "../../../src/intake/provider-model.ts";
import { fieldsOf } from "../../../src/lib/fields.ts";
import { deleteStoreReviewSite } from "../../../src/tenants/queries/stores.ts";
import { startApi, testConfig, type Answer, type TestApi } from "../../support/api.ts";
import { ApiProcess } from "../../support/processes/api-process.ts";
import {
  addProvider,
  connectStore,
  created,
  historyOfSite,
  providerEvent,
  queuedFor,
  reportedReview,
  reviewIdOf,
  send,
  type TestProvider,
} from "../../support/factory.ts";
import { insertSubscription } from "../../support/outbox.ts";
import { createDatabase, type TestDatabase } from "../../support/postgres.ts";
import { until } from "../../support/network/receiver.ts";
import { addTenants, type TestAccount } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(() => createDatabase("sessions"));

describe("requests that arrive while a batch is in progress", () => {
  test("are written by the next transaction, in their order", async () => {
    const names = Array.from({ length: 8 }, fresh);
    const asked = await inOneBatch(
      names.map((name, i) => () => report([created(site(i % 2), name)])),
    );
    expect(bodies(await Promise.all(asked))).toEqual(names.map(() => ONE));
    expect({ batches, individually }).toEqual({ batches: 2, individually: 0 });
    for (const partner of [0, 1]) {
      const rows = await historyOfSite(database.db, site(partner));
      const own = rows.slice(-4).map(({ review }) => review?.["external_review_id"]);
      expect(own).toEqual(names.filter((_, i) => i % 2 === partner));
      await expectNoGap(partner);
    }
  });

  test("are written one by one if PostgreSQL refuses one of them, which alone is a 500", async () => {
    const { sql } = database.db;
    const [refused, ...others] = [fresh(), fresh(), fresh()];
    const check = `external_review_id <> '${refused}'`;
    await sql.unsafe(`alter table reviews add constraint refused check (${check}) not valid`);
    const asked = await inOneBatch(
      [refused, ...others].map((name) => () => report([created(site(0), name)])),
    );
    const answers = await Promise.all(asked);
    await sql.unsafe("alter table reviews drop constraint refused");
    expect(answers.map(({ status }) => status)).toEqual([500, 200, 200]);
    // The batch is tried without a look-up, then with one.
    expect({ batches, individually }).toEqual({ batches: 3, individually: 3 });
    const found = await sql`
      select external_review_id as name from reviews where external_review_id = any(${[refused, ...others]})`;
    expect(found.map(({ name }) => name).toSorted()).toEqual(others.toSorted());
    await expectNoGap(0);
    const split = api.lines
      .map((line): unknown => JSON.parse(line))
      .find((line) => fieldsOf(line)["event"] === "intake.batch_split");
    expect(split).toMatchObject({ requests: 3, code: "23514" });
  });

  test("see the changes that earlier requests made to the same review", async () => {
    const name = fresh();
    const changed = providerEvent("review.updated", site(0), {
      review: reportedReview(name, { rate: 1 }),
    });
    const removed = providerEvent("review.removed", site(0), {
      review: { external_review_id: name },
    });
    const posted = providerEvent("response.posted", site(0), { external_review_id: name });
    const asked = await inOneBatch([
      () => report([created(site(0), name)]),
      () => report([changed]),
      () => report([created(site(0), name, { rate: 1 })]),
      () => report([posted, removed]),
    ]);
    expect(bodies(await Promise.all(asked))).toEqual([
      ONE,
      ONE,
      ONE,
      { accepted: 2, duplicates: 0 },
    ]);
    expect({ batches, individually }).toEqual({ batches: 2, individually: 0 });
    const rows = await historyOfSite(database.db, site(0));
    expect(rows.slice(-5).map(({ event }) => event)).toEqual([
      "review_received",
      "review_updated",
      "response_post_succeeded",
      "homeowner_notified_of_response",
      "review_removed",
    ]);
    const id = await reviewIdOf(database.db, name);
    expect(rows.slice(-5).map(({ reviewId }) => reviewId)).toEqual([id, id, id, id, id]);
    const [row] = await database.db.sql`select rate, removed_at from reviews where id = ${id}`;
    expect({ ...row }).toEqual({ rate: 1, removed_at: expect.any(Date) });
  });

  test("count an event id once across requests", async () => {
    const event = created(site(0), fresh());
    const other = created(site(0), fresh());
    const asked = await inOneBatch([
      () => report([event]),
      () => report([event]),
      () => report([event, other, other]),
    ]);
    expect(bodies(await Promise.all(asked))).toEqual([
      ONE,
      DUPLICATE,
      { accepted: 1, duplicates: 2 },
    ]);
    expect({ batches, individually }).toEqual({ batches: 2, individually: 0 });
    expect((await report([event])).body).toEqual(DUPLICATE);
    await expectNoGap(0);
  });

  test("claim an event id per provider, even if another provider in the batch uses it", async () => {
    const other = await addProvider(database.db, box, "other-provider");
    const otherSite = await connectStore(database.db, account, { provider: other, store: 1 });
    const event = created(site(0), fresh());
    const namesake = { ...created(otherSite, fresh()), id: event["id"] };
    // The process learns a site's partner only from a first request about it.
    const first = { events: [created(otherSite, fresh())] };
    expect((await send(api, other, first)).body).toEqual(ONE);
    batches = 0;
    const asked = await inOneBatch([
      () => report([event]),
      () => send(api, other, { events: [namesake] }),
    ]);
    expect(bodies(await Promise.all(asked))).toEqual([ONE, ONE]);
    expect({ batches, individually }).toEqual({ batches: 2, individually: 0 });
    const claims = await database.db.sql`
      select review_site_id from provider_events where id = ${String(event["id"])} order by 1`;
    expect(claims.map((row) => row["review_site_id"])).toEqual([provider.id, other.id]);
    expect((await report([event])).body).toEqual(DUPLICATE);
    expect((await send(api, other, { events: [namesake] })).body).toEqual(DUPLICATE);
    await expectNoGap(0);
  });

  test("are rejected individually, and nothing of the rejected ones is written", async () => {
    const [good, unknown, faulty, orphan, last] = [fresh(), fresh(), fresh(), fresh(), fresh()];
    const update = providerEvent("review.updated", site(0), { review: reportedReview(orphan) });
    const asked = await inOneBatch([
      () => report([created(site(0), good)]),
      () => report([created(site(0), unknown), created(999_999, unknown)]),
      () => send(api, { ...provider, secret: "another" }, { events: [created(site(0), fresh())] }),
      () => report([created(site(0), faulty, { rate: 6 })]),
      () => report([update]),
      () => report([created(site(0), last)]),
    ]);
    const answers = await Promise.all(asked);
    expect(answers.map(({ status }) => status)).toEqual([200, 422, 401, 422, 422, 200]);
    expect({ batches, individually }).toEqual({ batches: 2, individually: 0 });
    expect(answers[1]?.body["errors"]).toEqual({
      "events.1.store_review_site_id": ["is not a store's connection with this provider"],
    });
    const rows = await historyOfSite(database.db, site(0));
    const written = rows.map(({ review }) => review?.["external_review_id"]);
    expect(written.slice(-2)).toEqual([good, last]);
    const [{ n } = { n: -1 }] = await database.db.sql<{ n: number }[]>`
      select count(*)::int as n from reviews
       where external_review_id in (${unknown}, ${faulty}, ${orphan})`;
    expect(n).toBe(0);
    // The ids of the rejected requests are not claimed either.
    expect((await report([{ ...update, type: "review.created" }])).body).toEqual(ONE);
    await expectNoGap(0);
  });
});

describe("locks held by another transaction", () => {
  test("on a partner's sequence do not delay the other requests of the batch", async () => {
    const { db } = database;
    const waits: Promise<Answer>[] = [];
    await db.transaction(async (tx) => {
      await heldBy(tx, 0);
      const asked = await inOneBatch([
        () => report([created(site(0), fresh())]),
        () => report([created(site(1), fresh())]),
        () => report([created(site(0), fresh()), created(site(1), fresh())]),
        () => report([created(site(1), fresh())]),
      ]);
      waits.push(...asked);
      expect((await asked[1])?.body).toEqual(ONE);
      expect((await asked[3])?.body).toEqual(ONE);
    });
    const taken = [ONE, ONE, { accepted: 2, duplicates: 0 }, ONE];
    expect(bodies(await Promise.all(waits))).toEqual(taken);
    for (const partner of [0, 1]) await expectNoGap(partner);
  });

  test("on a review make its request wait individually and see the committed state", async () => {
    const name = fresh();
    await report([created(site(0), name)]);
    let waits: Promise<Answer> | undefined;
    await database.db.transaction(async (tx) => {
      await tx.sql`update reviews set rate = 2 where external_review_id = ${name}`;
      const asked = await inOneBatch([
        () => report([created(site(0), name, { rate: 3 })]),
        () => report([created(site(0), fresh())]),
      ]);
      waits = asked[0];
      expect((await asked[1])?.body).toEqual(ONE);
    });
    expect((await waits)?.body).toEqual(ONE);
    const rows = await historyOfSite(database.db, site(0));
    expect(rows.at(-1)).toMatchObject({ event: "review_updated", metadata: { changed: ["rate"] } });
  });

  test("on a claimed event id make the requests of the batch be processed individually", async () => {
    const event = created(site(0), fresh());
    let waits: Promise<Answer> | undefined;
    await database.db.transaction(async (tx) => {
      await tx.sql`
        insert into provider_events (review_site_id, id, received_at)
        values (${provider.id}, ${String(event["id"])}, now())`;
      const asked = await inOneBatch([
        () => report([event]),
        () => report([created(site(0), fresh())]),
        () => report([created(site(1), fresh())]),
      ]);
      waits = asked[0];
      expect(bodies(await Promise.all(asked.slice(1)))).toEqual([ONE, ONE]);
    });
    expect((await waits)?.body).toEqual(DUPLICATE);
    for (const partner of [0, 1]) await expectNoGap(partner);
  });
});

test("a large request does not delay requests of other partners", async () => {
  const large = Array.from({ length: 40 }, () => created(site(0), fresh()));
  let answer: Promise<Answer> | undefined;
  await database.db.transaction(async (tx) => {
    await heldBy(tx, 0);
    answer = report(large);
    expect((await report([created(site(1), fresh())])).body).toEqual(ONE);
    expect({ batches, individually }).toEqual({ batches: 1, individually: 1 });
  });
  expect((await answer)?.body).toEqual({ accepted: 40, duplicates: 0 });
  expect((await report(large)).body).toEqual({ accepted: 0, duplicates: 40 });
  await expectNoGap(0);
});

test("a connection that changes is locked from its look-up to the commit", async () => {
  const { db } = database;
  const held: boolean[] = [];
  const isHeld = async () => {
    const free = await db.sql`
      select from store_review_sites where id = ${site(0)} for no key update skip locked`;
    held.push(free.length === 0);
  };
  wrapBatch = (work) => {
    wrapBatch = undefined;
    return db.transaction((tx) => {
      const { run } = tx;
      const watched: Tx["run"] = async (statement, given) => {
        if (statement.name === "intake.updateSites") await isHeld();
        return run(statement, given);
      };
      return work(Object.assign(tx, { run: watched }));
    });
  };
  const change = providerEvent("connection.changed", site(0), {
    axis: "post",
    connected: false,
    error_code: fresh(),
  });
  expect((await report([change])).body).toEqual(ONE);
  expect(held).toEqual([true]);
});

test("the first review of a connection waits for the deletion of the connection, and is rejected", async () => {
  const { db } = database;
  const deleted = await connectStore(db, account, { provider, store: 1 });
  const same = { axis: "pull", connected: true };
  expect((await report([providerEvent("connection.changed", deleted, same)])).body).toEqual(ONE);
  const [begun, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const deletion = db.transaction(async (tx) => {
    await deleteStoreReviewSite(tx, deleted);
    begun.resolve();
    await release.promise;
  });
  await begun.promise;
  let answer: Answer | undefined;
  const asked = report([created(deleted, fresh())]).then((one) => (answer = one));
  await until("the report waits or is answered", async () => {
    const [waiting] = await db.sql`
      select from pg_locks where relation = 'store_review_sites'::regclass and not granted`;
    return waiting !== undefined || answer !== undefined;
  });
  release.resolve();
  await deletion;
  expect((await asked).status).toBe(422);
  const orphans = await db.sql`select from reviews where store_review_site_id = ${deleted}`;
  expect(orphans).toHaveLength(0);
});

test("a request that needs a locked review also leaves the queue of its partners", async () => {
  const name = fresh();
  await report([created(site(0), name)]);
  const waiting: Promise<Answer>[] = [];
  const sequence = Promise.withResolvers<void>();
  const holding = database.db.transaction(async (tx) => {
    await heldBy(tx, 0);
    await sequence.promise;
  });
  await database.db.transaction(async (tx) => {
    await tx.sql`select from reviews where external_review_id = ${name} for no key update`;
    for (const one of [fresh(), name, fresh()]) {
      const before = taken;
      waiting.push(report([created(site(0), one, { rate: 1 })]));
      await until("it has passed its signature", () => taken > before);
    }
    sequence.resolve();
    await holding;
    expect((await waiting[0])?.body).toEqual(ONE);
    expect((await waiting[2])?.body).toEqual(ONE);
  });
  expect((await waiting[1])?.body).toEqual(ONE);
  await expectNoGap(0);
});

test("requests that wait for one sequence are written together once it is free", async () => {
  const waiting: Promise<Answer>[] = [];
  await database.db.transaction(async (tx) => {
    await heldBy(tx, 0);
    for (let n = 0; n < 12; n++) {
      const before = taken;
      waiting.push(report([created(site(0), fresh())]));
      await until("it has passed its signature", () => taken > before);
      if (n % 4 === 0) expect((await report([created(site(1), fresh())])).body).toEqual(ONE);
    }
    expect(individually).toBe(1);
  });
  expect(bodies(await Promise.all(waiting))).toEqual(waiting.map(() => ONE));
  // The first request that waited, then all others that arrived meanwhile.
  expect(individually).toBe(2);
  await expectNoGap(0);
});

describe("a batch that seems to report only new reviews is written with a look-up after all", () => {
  const second = fixture(() => addProvider(database.db, box, "second-provider"));
  const known = async () => {
    const name = fresh();
    const event = created(site(0), name);
    expect((await report([event])).body).toEqual(ONE);
    return { name, event };
  };

  interface Conflict {
    readonly event: Record<string, unknown>;
    readonly body: Answer["body"];
    readonly by?: TestProvider;
    readonly partnerId?: number | undefined;
  }

  test.each<[string, () => Promise<Conflict>]>([
    [
      "if an event is known",
      async () => ({ event: (await known()).event, body: { accepted: 0, duplicates: 1 } }),
    ],
    [
      "if a review exists",
      async () => ({
        event: created(site(0), (await known()).name, { content: "Changed" }),
        body: ONE,
      }),
    ],
    [
      "if a connection was deleted",
      async () => {
        const store = await connectStore(database.db, account, { provider, store: 1 });
        // The process remembers the connection, which has reported nothing that is recorded.
        const same = { axis: "pull", connected: true };
        expect((await report([providerEvent("connection.changed", store, same)])).body).toEqual(
          ONE,
        );
        const { sql } = database.db;
        await sql`delete from store_review_sites where id = ${store}`;
        const errors = { "events.0.store_review_site_id": expect.anything() };
        return { event: created(store, fresh()), body: expect.objectContaining({ errors }) };
      },
    ],
    [
      "if a connection of the same id belongs to another partner",
      async () => {
        const { sql } = database.db;
        const [other] = await sql<{ store_id: number; account_id: number; partner_id: number }[]>`
          select store_id, account_id, partner_id from store_review_sites where id = ${site(1)}`;
        const old = await connectStore(database.db, account, { provider: second, store: 0 });
        expect((await send(api, second, { events: [created(old, fresh())] })).body).toEqual(ONE);
        await sql`update store_review_sites set ${sql(other ?? {})} where id = ${old}`;
        return {
          event: created(old, fresh()),
          body: ONE,
          by: second,
          partnerId: other?.partner_id,
        };
      },
    ],
  ])("%s, and the others of the batch are written once", async (_, make) => {
    const { event, body, by = provider, partnerId } = await make();
    const other = created(site(1), fresh());
    await endPause();
    const tried: string[] = [];
    wrapBatch = (work) =>
      database.db.transaction((tx) => {
        const { runLast } = tx;
        const watched: Tx["run"] = (one, given) => {
          tried.push(one.name);
          return runLast(one, given);
        };
        return work(Object.assign(tx, { runLast: watched }));
      });
    const asked = await inOneBatch([
      () => send(api, by, { events: [event] }),
      () => report([other]),
    ]);
    expect(bodies(await Promise.all(asked))).toEqual([body, ONE]);
    if (partnerId !== undefined) {
      const rows = await database.db.sql`
        select partner_id from review_history where store_review_site_id = ${Number(event["store_review_site_id"])}
         order by id desc limit 1`;
      expect(rows.map((row) => row["partner_id"])).toEqual([partnerId]);
    }
    // The first batch of all only occupies the batcher.
    expect(tried).toEqual(["outbox.append.newReviews", "outbox.append"]);
    expect((await report([other])).body).toEqual(DUPLICATE);
    for (const partner of [0, 1]) await expectNoGap(partner);
  });

  test("if another transaction holds a sequence, and a locked one delays no other partner", async () => {
    const [held, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const locked = database.db.transaction(async (tx) => {
      await tx.sql`select from outbox_sequences where subscription_id = ${subscriptions[0] ?? ""} for update`;
      held.resolve();
      await release.promise;
    });
    await held.promise;
    const waits = report([created(site(0), fresh())]);
    expect((await report([created(site(1), fresh())])).body).toEqual(ONE);
    release.resolve();
    await locked;
    expect((await waits).body).toEqual(ONE);
    for (const partner of [0, 1]) await expectNoGap(partner);
  });
});

test("a report that is repeated uses up no ids of reviews", async () => {
  await endPause();
  const event = created(site(0), fresh());
  expect((await report([event])).body).toEqual(ONE);
  const last = async () => (await database.db.sql`select last_value from reviews_id_seq`)[0];
  const before = await last();
  expect((await report([event])).body).toEqual(DUPLICATE);
  expect(await last()).toEqual(before);
});

describe("statements", () => {
  /** Records the statements of an individually processed request and the number of round trips. */
  async function sentFor(
    events: () => readonly unknown[],
  ): Promise<{ sent: string[]; turns: number }> {
    const sent: string[] = [];
    let [turns, isAnswered] = [0, true];
    const db = connect(database.url, {
      max: 1,
      name: "counted",
      isPipelined: true,
      onStatement: (text) => {
        if (isAnswered) turns++;
        isAnswered = false;
        sent.push(text);
      },
      onRows: () => void (isAnswered = true),
    });
    // The first request describes and prepares the statements.
    wrapBatch = (work) => db.transaction(work, { readsFirst: true });
    runAlone = db.run;
    for (let n = 0; n < 2; n++) {
      [sent.length, turns, isAnswered] = [0, 0, true];
      expect((await report(events())).status).toBe(200);
    }
    await db.close();
    return { sent, turns };
  }

  test("for new reviews are one, without begin and commit", async () => {
    await endPause();
    const { sent, turns } = await sentFor(() => [
      created(site(0), fresh()),
      created(site(1), fresh()),
    ]);
    expect({ sent: sent.length, turns }).toEqual({ sent: 1, turns: 1 });
  });

  test("for a batch are one more for changed reviews and one for changed connections, in as many round trips", async () => {
    const known = fresh();
    await report([created(site(0), known)]);
    const { sent, turns } = await sentFor(() => [
      ...Array.from({ length: 10 }, () => created(site(0), fresh())),
      created(site(0), known, { content: `Changed ${fresh()}` }),
      providerEvent("connection.changed", site(1), {
        axis: "post",
        connected: false,
        error_code: fresh(),
      }),
    ]);
    expect({ sent: sent.length, turns }).toEqual({ sent: 8, turns: 2 });
  });
});

test("a request whose client hangs up during the commit is written all the same, once", async () => {
  const events = [created(site(0), fresh()), created(site(0), fresh())];
  const body = JSON.stringify({ events });
  const digest = createHmac("sha256", provider.secret).update(body).digest("hex");
  const gone = new AbortController();
  await database.db.transaction(async (tx) => {
    await heldBy(tx, 0);
    const lost = fetch(`${api.listen()}${BASE_PATH}/providers/${provider.slug}/events`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Provider-Signature": `sha256=${digest}` },
      body,
      signal: gone.signal,
    });
    await until("the request waits for the sequence", async () => {
      const waiting = await database.db.sql`
        select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
      return waiting.length > 0;
    });
    gone.abort();
    await expect(lost).rejects.toThrow();
  });
  expect((await report(events)).body).toEqual({ accepted: 0, duplicates: 2 });
  await expectNoGap(0);
});

test("a changed secret is valid for the next request, and the former one is not", async () => {
  const secret = newSecret();
  const events = () => ({ events: [created(site(0), fresh())] });
  expect((await send(api, provider, events())).status).toBe(200);
  const sealed = box.seal(secret, providerSecretContext(provider.slug));
  await database.db.sql`
    update review_sites set sealed_secret = ${sealed} where id = ${provider.id}`;
  // Requests with further errors.
  const faulty: unknown[] = [
    { events: [] },
    { events: [1] },
    { events: [{}] },
    "no JSON",
    events(),
  ];
  for (const body of faulty) expect((await send(api, provider, body)).status).toBe(401);
  provider = { ...provider, secret };
  expect((await send(api, provider, events())).status).toBe(200);
});

test("two processes and 16 clients leave no gap, and every accepted event is queued", async () => {
  const env = { DATABASE_URL: database.url, MASTER_KEY: KEY.toString("base64") };
  const processes = await Promise.all([ApiProcess.start(env), ApiProcess.start(env)]);
  try {
    const before = (await queuedFor(database.db, subscriptions[0] ?? "")).length;
    const accepted: string[] = [];
    const client = async (n: number) => {
      for (let i = 0; i < 20; i++) {
        const name = `c-${n}-${i}`;
        // Each client reports its own events in order, half of them for the partner that all share.
        const events = [created(site(n % 4 === 3 ? 1 : 0), name)];
        const answer = await processes[(n + i) % 2]?.report(provider, events);
        expect(answer?.status).toBe(200);
        if (n % 4 !== 3) accepted.push(name);
      }
    };
    await Promise.all(Array.from({ length: 16 }, (_, n) => client(n)));
    for (const partner of [0, 1]) await expectNoGap(partner);
    const queued = await queuedFor(database.db, subscriptions[0] ?? "");
    expect(queued).toHaveLength(before + accepted.length);
    const rows = await historyOfSite(database.db, site(0));
    const names = rows.map(({ review }) => String(review?.["external_review_id"]));
    for (let n = 0; n < 16; n++) {
      const own = names.filter((name) => name.startsWith(`c-${n}-`));
      expect(own).toEqual(n % 4 === 3 ? [] : Array.from({ length: 20 }, (_, i) => `c-${n}-${i}`));
    }
  } finally {
    for (const one of processes) one.kill();
  }
  await until("their connections are gone", async () => {
    const rows = await database.db.sql`
      select from pg_stat_activity
       where application_name like 'reviewrelay-%' and datname = current_database()`;
    return rows.length === 0;
  });
});

let api: TestApi;
let provider: TestProvider;

/** The site and the subscription of each partner. */
const sites: number[] = [];

/** Wraps the transactions of batches; set by a test. */
let wrapBatch: WriterPool["group"] | undefined;
/** Runs the batches that are one statement; set by a test. */
let runAlone: WriterPool["run"] | undefined;

let serial = 0;
const fresh = () => `r-${++serial}`;
const site = (partner: number) => sites[partner] ?? 0;
const report = (events: readonly unknown[]) => send(api, provider, { events });

const KEY = randomBytes(32);

const box = createSecretBox({ current: KEY });

/** The first account of the first partner. */
let account: TestAccount;

const subscriptions: string[] = [];

/** The number of batch transactions. */
let batches = 0;

/** The number of requests that were processed individually. */
let individually = 0;

/** The number of requests with a valid signature, which join a batch or a queue soon afterwards. */
let taken = 0;

/** The number of requests that have joined a batch: each asks whether its partners are blocked right before. */
let joined = 0;

beforeAll(async () => {
  const { db } = database;
  const { partners } = await addTenants(db);
  provider = await addProvider(db, box);
  account = partners[0].accounts[0];
  for (const { id, accounts } of partners) {
    const options = { partnerId: id, url: "http://127.0.0.1:3999/" };
    subscriptions.push((await insertSubscription({ db, box }, options)).subscriptionId);
    sites.push(await connectStore(db, accounts[0], { provider }));
  }
  const real = createWriterPool(db, systemClock, { connections: 10, share: 10, waitMs: 60_000 });
  const group: WriterPool["group"] = (work) => {
    batches++;
    return (wrapBatch ?? real.group)(work);
  };
  const run: WriterPool["run"] = (statement, given) => {
    if (runAlone === undefined && wrapBatch !== undefined)
      return group((tx) => tx.runLast(statement, given));
    batches++;
    return (runAlone ?? real.run)(statement, given);
  };
  api = await startApi({
    db,
    box,
    // A trace learns of the events of a request once its signature was verified.
    traces: Object.assign(Object.create(null), {
      begin() {},
      came: () => void (taken += 1),
      answered() {},
    }),
    config: testConfig({ masterKey: KEY }),
    writerPool: {
      ...real,
      group,
      run,
      isBlocked: (partnerIds) => (joined++, real.isBlocked(partnerIds)),
      transaction: (partnerIds, work) => {
        individually++;
        return real.transaction(partnerIds, work);
      },
    },
  });
  // These requests teach the process the partners of the sites.
  for (const id of sites) expect((await report([created(id, fresh())])).status).toBe(200);
});

afterAll(async () => {
  await api.stop();
});

beforeEach(() => {
  wrapBatch = undefined;
  runAlone = undefined;
  batches = 0;
  individually = 0;
});

/**
 * Sends these requests one after the other while a batch is in progress, so that they form the next batch in this
 * order.
 */
async function inOneBatch(
  requests: readonly (() => Promise<Answer>)[],
): Promise<readonly Promise<Answer>[]> {
  const begun = Promise.withResolvers<void>();
  const ready = Promise.withResolvers<void>();
  const inner = wrapBatch;
  wrapBatch = async (work) => {
    wrapBatch = inner;
    begun.resolve();
    await ready.promise;
    return database.db.transaction(work);
  };
  const first = report([created(site(1), fresh())]);
  await begun.promise;
  const asked: Promise<Answer>[] = [];
  for (const request of requests) {
    const before = joined;
    let isAnswered = false;
    asked.push(request().finally(() => (isAnswered = true)));
    await until("it has joined the batch, or was refused", () => joined > before || isAnswered);
  }
  ready.resolve();
  expect((await first).status).toBe(200);
  return asked;
}

/** Reports new reviews until a batch of them is tried without a look-up again, which is not done right after a conflict. */
async function endPause(): Promise<void> {
  for (let n = 0; n < 20; n++) await report([created(site(1), fresh())]);
}

const bodies = (answers: readonly Answer[]) => answers.map(({ body }) => body);

const ONE = { accepted: 1, duplicates: 0 };
const DUPLICATE = { accepted: 0, duplicates: 1 };

async function expectNoGap(partner: number): Promise<void> {
  const queued = await queuedFor(database.db, subscriptions[partner] ?? "");
  expect(queued.map(({ sequence }) => sequence)).toEqual(queued.map((_, i) => i + 1));
  const history = queued.map(({ historyId }) => historyId);
  expect(history).toEqual(history.toSorted((a, b) => a - b));
}

const heldBy = async (tx: Tx & { sql: TestDatabase["db"]["sql"] }, partner: number) => {
  await tx.sql`
    select from outbox_sequences where subscription_id = ${subscriptions[partner] ?? ""} for update`;
};
