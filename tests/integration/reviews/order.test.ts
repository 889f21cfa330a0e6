import { afterAll, beforeAll, describe, expect, test } from "bun:test";

import { createSecretBox } from "../../../src/lib/secrets.ts";
import { insertNew } from "../../../src/intake/queries/write.ts";
import { fieldsOf } from "../../../src/lib/fields.ts";
import { startApi, type TestApi } from "../../support/api.ts";
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
import {
  insertSubscription,
  insertTenant,
  recordFirst,
  reviewAction,
} from "../../support/outbox.ts";
import { createDatabase } from "../../support/postgres.ts";
import { until } from "../../support/network/receiver.ts";
import { holdSequences } from "../../../src/outbox/queries.ts";
import { addTenants, type TestAccount } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);

describe("two overlapping transactions", () => {
  test("get their numbers in the order of commit, not of begin", async () => {
    const { db } = database;
    const tenant = await insertTenant(db);
    const box = createSecretBox({ current: new Uint8Array(32) });
    const { subscriptionId } = await insertSubscription(
      { db, box },
      { partnerId: tenant.partnerId, url: "http://127.0.0.1:3699/" },
    );
    const first = reviewAction(tenant);
    const second = reviewAction(tenant);
    const ready = Promise.withResolvers<void>();
    const recorded = Promise.withResolvers<void>();

    const early = db.transaction(async (tx) => {
      await tx.sql`select 1`;
      ready.resolve();
      await recorded.promise;
      // This transaction began first, and waits here until the other one has committed.
      await recordFirst(tx, [second]);
    });
    const late = db.transaction(async (tx) => {
      await ready.promise;
      await recordFirst(tx, [first]);
      recorded.resolve();
      await untilOneWaits();
    });
    await Promise.all([early, late]);

    const queued = await queuedFor(db, subscriptionId);
    expect(queued.map(({ sequence, eventId }) => [sequence, eventId])).toEqual([
      [1, first.eventId],
      [2, second.eventId],
    ]);
    const rows = await historyOfSite(db, tenant.storeReviewSiteId);
    expect(rows.map(({ eventId }) => eventId)).toEqual([first.eventId, second.eventId]);
  });

  test("count no number as one outside of the log if the subscription is newer than both", async () => {
    const { db } = database;
    const tenant = await insertTenant(db);
    const box = createSecretBox({ current: new Uint8Array(32) });
    const options = { partnerId: tenant.partnerId, url: "http://127.0.0.1:3699/" };
    const held = Promise.withResolvers<void>();
    const inserted = Promise.withResolvers<void>();
    const late = db.transaction(async (tx) => {
      await holdSequences(tx, [tenant.partnerId], false);
      held.resolve();
      await inserted.promise;
      await recordFirst(tx, [reviewAction(tenant)]);
    });
    await held.promise;
    await insertSubscription({ db, box }, options);
    await db.transaction(async (tx) => {
      await recordFirst(tx, [reviewAction(tenant)]);
      inserted.resolve();
      await untilOneWaits();
    });
    await late;
    const rows = await db.sql<{ sequence: number; gap: number | null }[]>`
      select sequence, gap from review_history where partner_id = ${tenant.partnerId} order by id`;
    expect(rows.map(({ sequence, gap }) => [sequence, gap])).toEqual([
      [1, null],
      [2, null],
    ]);
  });

  test("leave no gap if one of them rolls back", async () => {
    const { db } = database;
    const tenant = await insertTenant(db);
    const box = createSecretBox({ current: new Uint8Array(32) });
    const { subscriptionId } = await insertSubscription(
      { db, box },
      { partnerId: tenant.partnerId, url: "http://127.0.0.1:3699/" },
    );
    await Promise.allSettled(
      Array.from({ length: 20 }, (_, i) =>
        db.transaction(async (tx) => {
          await recordFirst(tx, [reviewAction(tenant)]);
          if (i % 3 === 0) throw new Error("given up");
        }),
      ),
    );
    const queued = await queuedFor(db, subscriptionId);
    expect(queued.map(({ sequence }) => sequence)).toEqual(
      Array.from({ length: 13 }, (_, i) => i + 1),
    );
  });
});

describe("transactions that write the same rows in opposite orders", () => {
  const many = Array.from({ length: 4_000 }, (_, i) => String(i).padStart(5, "0"));
  /** Returns the SQLSTATE of each transaction; undefined for a committed one. */
  const inBothOrders = (work: (ids: string[]) => Promise<void>): Promise<unknown[]> =>
    Promise.all(
      [many, many.toReversed(), many, many.toReversed()].map((ids) =>
        work(ids).then(
          () => undefined,
          (error: unknown) => fieldsOf(error)["code"],
        ),
      ),
    );
  const ONE_WRITES = [undefined, "23505", "23505", "23505"];

  test("claim each event id once and never deadlock", async () => {
    const ended = await inBothOrders((ids) =>
      database.db.transaction((tx) => {
        const claims = ids.map((id) => ({ slug: provider.slug, id }));
        return insertNew(tx, { claims, created: [], now: new Date() });
      }),
    );
    expect(ended.toSorted()).toEqual(ONE_WRITES.toSorted());
  });

  test("create each review once and never deadlock", async () => {
    const other = await addProvider(database.db, api.deps.box, "other");
    const siteId = await connectStore(database.db, account, { provider: other });
    const facts = { rate: 4, reviewer: null, reviewerEmail: null, content: "", profanity: [] };
    let id = 1_000_000;
    const ended = await inBothOrders((ids) =>
      database.db.transaction((tx) => {
        const reviewedAt = new Date();
        const more = { ...facts, storeReviewSiteId: siteId, reviewedAt, removedAt: null };
        const reviews = ids.map((one) => ({ id: ++id, externalReviewId: one, ...more }));
        return insertNew(tx, { claims: [], created: reviews, now: reviewedAt });
      }),
    );
    expect(ended.toSorted()).toEqual(ONE_WRITES.toSorted());
  });
});

describe("requests that touch the same reviews and sites in any order", () => {
  test("all succeed without a deadlock", async () => {
    const { db } = database;
    const sites = [
      await connectStore(db, account, { provider }),
      await connectStore(db, account, { provider, store: 1 }),
    ];
    const token = await api.login(account.owner.email);
    const seed = sites.flatMap((site) =>
      ["a", "b", "c"].map((id) => created(site, `${id}${site}`)),
    );
    await send(api, provider, { events: seed });
    const target = await reviewIdOf(db, `a${sites[0]}`);

    const request = (round: number) => {
      const events = sites.flatMap((site) => [
        providerEvent("review.updated", site, {
          review: reportedReview(`a${site}`, { rate: (round % 5) + 1 }),
        }),
        providerEvent("review.updated", site, {
          review: reportedReview(`b${site}`, { content: `Round ${round}` }),
        }),
        created(site, `new${round % 7}`),
        providerEvent("connection.changed", site, {
          axis: round % 2 === 0 ? "pull" : "post",
          connected: round % 3 === 0,
          error_code: round % 3 === 0 ? null : "E-002",
        }),
        { ...created(site, `shared${round % 5}-${site}`), id: `shared-${round % 5}-${site}` },
      ]);
      return send(api, provider, { events: round % 2 === 0 ? events : events.toReversed() });
    };
    const answers = await Promise.all([
      ...Array.from({ length: 60 }, (_, round) => request(round)),
      ...Array.from({ length: 30 }, (_, i) =>
        api.call("POST", `/account/reviews/${target}/response`, {
          token,
          body: { body: `Thanks ${i}` },
        }),
      ),
    ]);
    expect(answers.filter(({ status }) => status !== 200).map(({ text }) => text)).toEqual([]);
    // Of the ten events of a request, two have an id that other requests have as well: 10 ids in all.
    const accepted = answers.slice(0, 60).map(({ body }) => Number(body["accepted"]));
    expect(accepted.reduce((all, one) => all + one, 0)).toBe(60 * 8 + 10);
    expect(api.lines.filter((line) => line.includes("deadlock"))).toEqual([]);
  });
});

/** Waits until a statement waits for a lock. */
const untilOneWaits = () =>
  until("the other waits", async () => {
    const rows = await database.db.sql`
      select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    return rows.length > 0;
  });

let api: TestApi;

let provider: TestProvider;

let account: TestAccount;

beforeAll(async () => {
  [account] = (await addTenants(database.db)).partners[0].accounts;
  api = await startApi({ db: database.db });
  provider = await addProvider(database.db, api.deps.box);
});

afterAll(async () => {
  await api.stop();
});
