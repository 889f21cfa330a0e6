import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";

import { connect, type Tx } from "../../../db/client.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { newSecret } from "../../../src/lib/secrets.ts";
import { createSecretBox } from "../../../src/lib/secret-box.ts";
import { createWriterPool, type WriterPool } from "../../../src/outbox/writer-pool.ts";
import { providerSecretContext } from "../../../src/providers/model.ts";
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

const KEY = randomBytes(32);
const box = createSecretBox({ current: KEY });

let database: TestDatabase;
let api: TestApi;
let provider: TestProvider;
/** The first one of the first partner. */
let account: TestAccount;
/** By partner. */
const sites: number[] = [];
const subscriptions: string[] = [];

/** What a test does to the transactions of groups. */
let around: WriterPool["group"] | undefined;
/** How many there were. */
let groups = 0;
/** How many requests were judged alone. */
let alone = 0;
/** How many secrets were opened: a request that passes its signature joins a group right after. */
let opened = 0;

beforeAll(async () => {
  database = await createDatabase();
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
    groups++;
    return (around ?? real.group)(work);
  };
  api = await startApi({
    db,
    box: { ...box, open: (...given) => (opened++, box.open(...given)) },
    config: testConfig({ masterKey: KEY }),
    writerPool: {
      ...real,
      group,
      transaction: (partnerIds, work) => {
        alone++;
        return real.transaction(partnerIds, work);
      },
    },
  });
  // From here on it is known whose sites these are.
  for (const id of sites) expect((await report([created(id, fresh())])).status).toBe(200);
});
afterAll(async () => {
  await api.stop();
  await database.drop();
});
beforeEach(() => {
  around = undefined;
  groups = 0;
  alone = 0;
});

let serial = 0;
const fresh = () => `r-${++serial}`;
const site = (partner: number) => sites[partner] ?? 0;
const report = (events: readonly unknown[]) => send(api, provider, { events });

/** Makes these requests while a group is under way, one after the other, so that they are one group in this order. */
async function inOneGroup(
  requests: readonly (() => Promise<Answer>)[],
): Promise<readonly Promise<Answer>[]> {
  const begun = Promise.withResolvers<void>();
  const ready = Promise.withResolvers<void>();
  const inner = around;
  around = async (work) => {
    around = inner;
    begun.resolve();
    await ready.promise;
    return database.db.transaction(work);
  };
  const first = report([created(site(1), fresh())]);
  await begun.promise;
  const asked: Promise<Answer>[] = [];
  for (const request of requests) {
    const before = opened;
    asked.push(request());
    await until("it has passed its signature", () => opened > before);
  }
  ready.resolve();
  expect((await first).status).toBe(200);
  return asked;
}

const bodies = (answers: readonly Answer[]) => answers.map(({ body }) => body);
const ONE = { accepted: 1, duplicates: 0 };
const REPEATED = { accepted: 0, duplicates: 1 };

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

describe("requests that come while a group is under way", () => {
  test("are taken by the next transaction, in their order", async () => {
    const names = Array.from({ length: 8 }, fresh);
    const asked = await inOneGroup(
      names.map((name, i) => () => report([created(site(i % 2), name)])),
    );
    expect(bodies(await Promise.all(asked))).toEqual(names.map(() => ONE));
    expect({ groups, alone }).toEqual({ groups: 2, alone: 0 });
    for (const partner of [0, 1]) {
      const rows = await historyOfSite(database.db, site(partner));
      const own = rows.slice(-4).map(({ review }) => review?.["external_review_id"]);
      expect(own).toEqual(names.filter((_, i) => i % 2 === partner));
      await expectNoGap(partner);
    }
  });

  test("see what those before them did to the same review", async () => {
    const name = fresh();
    const changed = providerEvent("review.updated", site(0), {
      review: reportedReview(name, { rate: 1 }),
    });
    const removed = providerEvent("review.removed", site(0), {
      review: { external_review_id: name },
    });
    const posted = providerEvent("response.posted", site(0), { external_review_id: name });
    const asked = await inOneGroup([
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
    expect({ groups, alone }).toEqual({ groups: 2, alone: 0 });
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

  test("count an event id once, whichever of them brings it", async () => {
    const event = created(site(0), fresh());
    const other = created(site(0), fresh());
    const asked = await inOneGroup([
      () => report([event]),
      () => report([event]),
      () => report([event, other, other]),
    ]);
    expect(bodies(await Promise.all(asked))).toEqual([
      ONE,
      REPEATED,
      { accepted: 1, duplicates: 2 },
    ]);
    expect({ groups, alone }).toEqual({ groups: 2, alone: 0 });
    expect((await report([event])).body).toEqual(REPEATED);
    await expectNoGap(0);
  });

  test("claim an event id for their own provider, though another one of the group uses the same", async () => {
    const other = await addProvider(database.db, box, "other-provider");
    const otherSite = await connectStore(database.db, account, { provider: other, store: 1 });
    const event = created(site(0), fresh());
    const namesake = { ...created(otherSite, fresh()), id: event["id"] };
    // The process knows the site's partner only after a first request about it.
    const first = { events: [created(otherSite, fresh())] };
    expect((await send(api, other, first)).body).toEqual(ONE);
    groups = 0;
    const asked = await inOneGroup([
      () => report([event]),
      () => send(api, other, { events: [namesake] }),
    ]);
    expect(bodies(await Promise.all(asked))).toEqual([ONE, ONE]);
    expect({ groups, alone }).toEqual({ groups: 2, alone: 0 });
    const claims = await database.db.sql`
      select review_site_id from provider_events where id = ${String(event["id"])} order by 1`;
    expect(claims.map((row) => row["review_site_id"])).toEqual([provider.id, other.id]);
    expect((await report([event])).body).toEqual(REPEATED);
    expect((await send(api, other, { events: [namesake] })).body).toEqual(REPEATED);
    await expectNoGap(0);
  });

  test("are refused one by one, and nothing of those is kept", async () => {
    const [good, unknown, faulty, orphan, last] = [fresh(), fresh(), fresh(), fresh(), fresh()];
    const update = providerEvent("review.updated", site(0), { review: reportedReview(orphan) });
    const asked = await inOneGroup([
      () => report([created(site(0), good)]),
      () => report([created(site(0), unknown), created(999_999, unknown)]),
      () => send(api, { ...provider, secret: "another" }, { events: [created(site(0), fresh())] }),
      () => report([created(site(0), faulty, { rate: 6 })]),
      () => report([update]),
      () => report([created(site(0), last)]),
    ]);
    const answers = await Promise.all(asked);
    expect(answers.map(({ status }) => status)).toEqual([200, 422, 401, 422, 422, 200]);
    expect({ groups, alone }).toEqual({ groups: 2, alone: 0 });
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
    // Its ids are not claimed either.
    expect((await report([{ ...update, type: "review.created" }])).body).toEqual(ONE);
    await expectNoGap(0);
  });
});

describe("what somebody else holds", () => {
  test("a partner's sequence: it keeps nobody else of the group waiting", async () => {
    const { db } = database;
    const waits: Promise<Answer>[] = [];
    await db.transaction(async (tx) => {
      await heldBy(tx, 0);
      const asked = await inOneGroup([
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

  test("a review: whoever reports it waits alone, and reports what is there then", async () => {
    const name = fresh();
    await report([created(site(0), name)]);
    let waits: Promise<Answer> | undefined;
    await database.db.transaction(async (tx) => {
      await tx.sql`update reviews set rate = 2 where external_review_id = ${name}`;
      const asked = await inOneGroup([
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

  test("an event id that is being claimed: the others of the group are taken one by one", async () => {
    const event = created(site(0), fresh());
    let waits: Promise<Answer> | undefined;
    await database.db.transaction(async (tx) => {
      await tx.sql`
        insert into provider_events (review_site_id, id, received_at)
        values (${provider.id}, ${String(event["id"])}, now())`;
      const asked = await inOneGroup([
        () => report([event]),
        () => report([created(site(0), fresh())]),
        () => report([created(site(1), fresh())]),
      ]);
      waits = asked[0];
      expect(bodies(await Promise.all(asked.slice(1)))).toEqual([ONE, ONE]);
    });
    expect((await waits)?.body).toEqual(REPEATED);
    for (const partner of [0, 1]) await expectNoGap(partner);
  });
});

describe("requests that are large, faulty or change a connection", () => {
  const many = (partner: number) =>
    Array.from({ length: 40 }, () => created(site(partner), fresh()));

  test("are taken by a group like any other, but a large one, which keeps no other partner waiting", async () => {
    const large = many(0);
    await database.db.transaction(async (tx) => {
      await heldBy(tx, 0);
      const waits = report(large);
      const other = await report([created(site(1), fresh())]);
      expect(other.body).toEqual(ONE);
      expect({ groups, alone }).toEqual({ groups: 1, alone: 1 });
      void waits.then(() => alone++);
    });
    await until("it is answered", () => alone === 2);
    expect((await report(large)).body).toEqual({ accepted: 0, duplicates: 40 });
    await expectNoGap(0);
  });

  test("name every fault of every event beside good ones, at once, whatever somebody else holds", async () => {
    const known = fresh();
    const faulty = [
      created(site(0), fresh(), { rate: 6 }),
      created(999_999, fresh()),
      providerEvent("response.posted", site(0), { external_review_id: fresh() }),
      created(site(0), known, { rate: 2 }),
    ];
    await report([created(site(0), known)]);
    groups = 0;
    await database.db.transaction(async (tx) => {
      await heldBy(tx, 0);
      await tx.sql`select from reviews where external_review_id = ${known} for update`;
      const asked = await inOneGroup([
        () => report([created(site(1), fresh())]),
        () => report(faulty),
        () => report([created(site(1), fresh())]),
      ]);
      const [good, bad, other] = await Promise.all(asked);
      expect([good?.body, other?.body]).toEqual([ONE, ONE]);
      expect(bad?.status).toBe(422);
      expect(Object.keys(Object(bad?.body["errors"])).toSorted()).toEqual([
        "events.0.review.rate",
        "events.1.store_review_site_id",
        "events.2.external_review_id",
      ]);
      expect({ groups, alone }).toEqual({ groups: 2, alone: 0 });
    });
    const [row] = await database.db
      .sql`select rate from reviews where external_review_id = ${known}`;
    expect({ ...row }).toEqual({ rate: 4 });
  });

  test("change a connection in the order of the group, and its postings tell of the state by then", async () => {
    const name = fresh();
    const changed = (connected: boolean) =>
      providerEvent("connection.changed", site(0), {
        axis: "post",
        connected,
        error_code: connected ? null : "E-002",
      });
    const failed = () =>
      providerEvent("response.failed", site(0), { external_review_id: name, error_code: "E-012" });
    await report([created(site(0), name)]);
    groups = 0;
    const asked = await inOneGroup([
      () => report([failed()]),
      () => report([changed(false)]),
      () => report([failed()]),
      () => report([changed(true), changed(true)]),
    ]);
    for (const answer of await Promise.all(asked)) expect(answer.status).toBe(200);
    expect({ groups, alone }).toEqual({ groups: 2, alone: 0 });
    const rows = (await historyOfSite(database.db, site(0))).slice(-4);
    expect(rows.map(({ event }) => event)).toEqual([
      "response_post_failed",
      "response_post_disconnected",
      "response_post_failed",
      "response_post_connected",
    ]);
    const states = rows.map(({ site: one }) =>
      Reflect.get(Object(one?.["review_site"]), "connection_status"),
    );
    expect(states).toEqual(["connected", "disconnected", "disconnected", "connected"]);
  });

  test("wait alone for a connection that somebody else holds, and then see what became of it", async () => {
    const change = providerEvent("connection.changed", site(0), {
      axis: "pull",
      connected: false,
      error_code: "E-002",
    });
    let waits: Promise<Answer> | undefined;
    await database.db.transaction(async (tx) => {
      await tx.sql`
        update store_review_sites set pull_connected = false, pull_error_code = 'E-001' where id = ${site(0)}`;
      const asked = await inOneGroup([
        () => report([change]),
        () => report([created(site(0), fresh())]),
      ]);
      waits = asked[0];
      expect((await asked[1])?.body).toEqual(ONE);
    });
    expect((await waits)?.body).toEqual(ONE);
    const rows = await historyOfSite(database.db, site(0));
    expect(rows.at(-1)?.event).toBe("review_received");
    const [row] = await database.db.sql`
      select pull_error_code from store_review_sites where id = ${site(0)}`;
    expect({ ...row }).toEqual({ pull_error_code: "E-002" });
  });
});

test("a connection that changes is held from its look-up to the commit", async () => {
  const { db } = database;
  const held: boolean[] = [];
  const isHeld = async () => {
    const free = await db.sql`
      select from store_review_sites where id = ${site(0)} for no key update skip locked`;
    held.push(free.length === 0);
  };
  around = (work) => {
    around = undefined;
    return db.transaction((tx) => {
      const { run } = tx;
      const watched: Tx["run"] = async (statement, given) => {
        if (statement.name === "providers.updateSites") await isHeld();
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

test("a site is only its own provider's, also beside a request of that provider", async () => {
  const other = await addProvider(database.db, box, "third-provider");
  const otherSite = await connectStore(database.db, account, { provider: other, store: 1 });
  const name = fresh();
  const asked = await inOneGroup([
    () => send(api, other, { events: [created(otherSite, name)] }),
    () => report([created(otherSite, fresh())]),
    () => send(api, other, { events: [created(site(0), fresh())] }),
    () => report([created(site(0), name)]),
  ]);
  expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([200, 422, 422, 200]);
  const rows = await database.db.sql`
    select store_review_site_id as id from reviews where external_review_id = ${name} order by 1`;
  expect(rows.map((row) => row["id"])).toEqual([site(0), otherSite].toSorted((a, b) => a - b));
});

test("of requests that wait for one sequence one that needs a held review leaves the others, too", async () => {
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
      const before = opened;
      waiting.push(report([created(site(0), one, { rate: 1 })]));
      await until("it has passed its signature", () => opened > before);
    }
    sequence.resolve();
    await holding;
    expect((await waiting[0])?.body).toEqual(ONE);
    expect((await waiting[2])?.body).toEqual(ONE);
  });
  expect((await waiting[1])?.body).toEqual(ONE);
  await expectNoGap(0);
});

test("requests that wait for one sequence are taken together once it is free", async () => {
  const waiting: Promise<Answer>[] = [];
  await database.db.transaction(async (tx) => {
    await heldBy(tx, 0);
    for (let n = 0; n < 12; n++) {
      const before = opened;
      waiting.push(report([created(site(0), fresh())]));
      await until("it has passed its signature", () => opened > before);
      if (n % 4 === 0) expect((await report([created(site(1), fresh())])).body).toEqual(ONE);
    }
    expect(alone).toBe(1);
  });
  expect(bodies(await Promise.all(waiting))).toEqual(waiting.map(() => ONE));
  // The first that waited, and all who came meanwhile.
  expect(alone).toBe(2);
  await expectNoGap(0);
});

test.each(["providers.insertNew", "outbox.append"])(
  "when the server loses the session right before %s nothing is written and nothing held",
  async (name) => {
    const { db } = database;
    const events = [created(site(0), fresh()), created(site(1), fresh())];
    around = (work) => {
      around = undefined;
      return db.transaction(async (tx) => {
        const [own] = await tx.sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
        const dying =
          (run: Tx["run"]): Tx["run"] =>
          async (statement, given) => {
            if (statement.name === name)
              await db.sql`select pg_terminate_backend(${own?.pid ?? 0})`;
            return run(statement, given);
          };
        return work(Object.assign(tx, { run: dying(tx.run), runLast: dying(tx.runLast) }));
      });
    };
    const asked = await inOneGroup(events.map((event) => () => report([event])));
    for (const answer of await Promise.all(asked)) expect(answer.status).toBe(503);
    const [{ n } = { n: -1 }] = await db.sql<{ n: number }[]>`
      select count(*)::int as n from provider_events where id in ${db.sql(events.map(({ id }) => String(id)))}`;
    expect(n).toBe(0);
    for (const event of events) expect((await report([event])).body).toEqual(ONE);
    for (const partner of [0, 1]) await expectNoGap(partner);
  },
);

describe("statements", () => {
  /** What goes out over the pool of a request alone, and in how many turns. */
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
    // The first one is described, and prepared.
    around = (work) => db.transaction(work, { readsFirst: true });
    for (let n = 0; n < 2; n++) {
      [sent.length, turns, isAnswered] = [0, 0, true];
      expect((await report(events())).status).toBe(200);
    }
    await db.close();
    return { sent, turns };
  }

  test("of a new review are four and the commit, in two turns", async () => {
    const { sent, turns } = await sentFor(() => [created(site(0), fresh())]);
    expect({ sent: sent.length, turns }).toEqual({ sent: 6, turns: 2 });
  });

  test("of a group are one more for changed reviews and one for changed connections, in as many turns", async () => {
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

test("when the connection is lost at the commit all of the group are 503, and each can be repeated", async () => {
  const { db } = database;
  const events = [created(site(0), fresh()), created(site(1), fresh()), created(site(0), fresh())];
  around = (work) => {
    around = undefined;
    return db.transaction(async (tx) => {
      const result = await work(tx);
      const [own] = await tx.sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
      await db.sql`select pg_terminate_backend(${own?.pid ?? 0})`;
      return result;
    });
  };
  const asked = await inOneGroup(events.map((event) => () => report([event])));
  const answers = await Promise.all(asked);
  expect(answers.map(({ status, body }) => [status, body["code"]])).toEqual(
    events.map(() => [503, "unavailable"]),
  );
  expect(bodies(await Promise.all(events.map((event) => report([event]))))).toEqual([
    ONE,
    ONE,
    ONE,
  ]);
  for (const partner of [0, 1]) await expectNoGap(partner);
});

test("a secret that was changed holds for the next request, and the former one no more", async () => {
  const secret = newSecret();
  const events = () => ({ events: [created(site(0), fresh())] });
  expect((await send(api, provider, events())).status).toBe(200);
  const sealed = box.seal(secret, providerSecretContext(provider.slug));
  await database.db.sql`
    update review_sites set sealed_secret = ${sealed} where id = ${provider.id}`;
  // Whatever else is wrong with them.
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

test("two processes and 16 clients leave no gap, and nothing accepted out of the queue", async () => {
  const env = { DATABASE_URL: database.url, MASTER_KEY: KEY.toString("base64") };
  const processes = await Promise.all([ApiProcess.start(env), ApiProcess.start(env)]);
  try {
    const before = (await queuedFor(database.db, subscriptions[0] ?? "")).length;
    const accepted: string[] = [];
    const client = async (n: number) => {
      for (let i = 0; i < 20; i++) {
        const name = `c-${n}-${i}`;
        // Each reports its own in order, half of them to the partner that all share.
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
