import { afterAll, beforeAll, describe, expect, test } from "bun:test";

import { type Clock, systemClock } from "../../../src/lib/clock.ts";
import { recordActions } from "../../../src/outbox/queries.ts";
import { everyPage, startApi, type TestApi } from "../../support/api.ts";
import {
  addProvider,
  connectStore,
  created,
  providerEvent,
  report,
  reportedReview,
  reviewIdOf,
  type TestProvider,
} from "../../support/factory.ts";
import { until } from "../../support/network/receiver.ts";
import { reviewAction } from "../../support/outbox.ts";
import { createDatabase } from "../../support/postgres.ts";
import { fixture } from "../../support/fixture.ts";
import { addTenants, type TestAccount } from "../../support/tenants.ts";

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));

describe("a review that a webhook names", () => {
  test("is fetched by its partner, with account and history", async () => {
    const id = await review("named");
    const { status, body } = await get(`/partner/reviews/${id}`);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      id,
      account_id: account.id,
      external_review_id: "named",
      rate: 4,
    });
    expect(body["history"]).toMatchObject([
      { event: "review_received", actor: { type: "system" } },
    ]);
  });

  test("is 403 with an AUTHZ_DENIED row for another partner, and 404 if it does not exist", async () => {
    const id = await review("foreign");
    const { status } = await get(`/partner/reviews/${id}`, tokens.other);
    expect(status).toBe(403);
    const [row] = await database.db.sql<{ details: object }[]>`
      select details from audit_log where action = 'AUTHZ_DENIED' order by id desc limit 1`;
    expect(row?.details).toMatchObject({ review_id: id, reason: "foreign_record" });
    for (const path of ["999999999", "0", "x", "99999999999999999999"])
      expect((await get(`/partner/reviews/${path}`)).status).toBe(404);
  });

  test.each(["/partner/reviews/1", "/partner/reviews", "/partner/review-history"])(
    "%s needs the scope reviews:read",
    async (path) => {
      const answer = await get(path, tokens.narrow);
      expect([answer.status, answer.body["code"]]).toEqual([403, "insufficient_scope"]);
    },
  );
});

describe("the list of a partner's reviews", () => {
  test("is in the order of the last change, and ends a loop by updated_since", async () => {
    const first = await review("list-1");
    const second = await review("list-2");
    const third = await review("list-3");
    await Bun.sleep(2);
    const since = new Date().toISOString();
    const changed = { review: reportedReview("list-2", { rate: 1 }) };
    await report(api, google, [providerEvent("review.updated", site, changed)]);
    const all = (await everyPage<Row>(api, "/partner/reviews?limit=2", tokens.partner)).flat();
    const listed = all.map(({ id }) => id).filter((id) => id >= first);
    expect(listed).toEqual([first, third, second]);
    const times = all.map((one) => one.updated_at);
    expect(times).toEqual(times.toSorted());
    const { body } = await get(`/partner/reviews?updated_since=${encodeURIComponent(since)}`);
    expect(body["data"]).toMatchObject([{ id: second, rate: 1 }]);
    expect(await everyPage(api, "/partner/reviews?limit=2", tokens.other)).toEqual([[]]);
  });

  test("rejects a malformed instant and a foreign cursor by the names of their fields", async () => {
    const { status, body } = await get("/partner/reviews?updated_since=today&cursor=MTI");
    expect(status).toBe(422);
    expect(Object.keys(body["errors"] as object).toSorted()).toEqual(["cursor", "updated_since"]);
  });
});

describe("the history of a partner", () => {
  test("lists each row once in the order of ids, after a row or since an instant", async () => {
    const minutesAgo = new Date(Date.now() - 120_000);
    await database.db.transaction((tx) => recordActions(tx, [reviewReceived("old")], minutesAgo));
    const since = new Date().toISOString();
    await review("history-1");
    await review("history-2");
    const all = await history("/partner/review-history?limit=3");
    const ids = all.map(({ id }) => id);
    expect(ids).toEqual([...new Set(ids)].toSorted((a, b) => a - b));
    expect(all.at(-1)).toMatchObject({
      event: "review_received",
      account_id: account.id,
      review: { external_review_id: "history-2" },
      site: null,
    });
    expect(await history(`/partner/review-history?limit=1&after=${ids.at(-2)}`)).toEqual(
      all.slice(-1),
    );
    expect(await history(`/partner/review-history?limit=1&after=${ids.at(-1)}`)).toEqual([]);
    const path = `/partner/review-history?limit=1&since=${encodeURIComponent(since)}`;
    expect(await history(path)).toEqual(all.slice(-2));
    expect(await history("/partner/review-history?limit=9", tokens.other)).toEqual([]);
  });

  test("waits for a transaction that took an earlier id and commits later", async () => {
    const last = (await history("/partner/review-history?limit=100")).at(-1)?.id ?? 0;
    const late = await writing("late");
    await review("early");
    const before = waits;
    const listed = history(`/partner/review-history?limit=9&after=${last}`);
    await until("the list waits for the open transaction", () => waits > before);
    await late.commit();
    const names = (await listed).map((row) => row.review.external_review_id);
    expect(names).toEqual(["late", "early"]);
  });

  test("is answered 503 while such a transaction stays open, or up to the last row that is certain", async () => {
    const last = (await history("/partner/review-history?limit=100")).at(-1)?.id ?? 0;
    const late = await writing("very late");
    await review("certain");
    const fresh = await startApi({ db: database.connect(), config: api.deps.config });
    const path = `/partner/review-history?limit=9&after=${last}`;
    const refused = await fresh.call("GET", path, { token: tokens.partner });
    expect([refused.status, refused.body["code"]]).toEqual([503, "unavailable"]);
    expect(refused.headers.get("retry-after")).not.toBeNull();
    // This API has looked before, and knows that no row up to the last one can appear any more.
    expect(await history(path)).toEqual([]);
    await late.rollBack();
    const names = (await history(path)).map((row) => row.review.external_review_id);
    expect(names).toEqual(["certain"]);
  });

  test("gives a loop every committed row once, in order, while writers overlap and roll back", async () => {
    const start = (await history("/partner/review-history?limit=100")).at(-1)?.id ?? 0;
    const committed: string[] = [];
    let isWriting = true;
    const writer = async (name: string) => {
      for (let n = 0; n < 40; n++) {
        const one = await writing(`${name}-${n}`);
        await Bun.sleep(Math.random() * 8);
        if (Math.random() < 0.3) await one.rollBack();
        else {
          await one.commit();
          committed.push(`${name}-${n}`);
        }
      }
    };
    const writers = Promise.all(["a", "b", "c"].map(writer)).then(() => (isWriting = false));
    const seen: Row[] = [];
    for (let isLast = false; !isLast;) {
      isLast = !isWriting;
      const after = seen.at(-1)?.id ?? start;
      seen.push(...(await history(`/partner/review-history?limit=5&after=${after}`)));
    }
    await writers;
    const ids = seen.map(({ id }) => id);
    expect(ids).toEqual(ids.toSorted((a, b) => a - b));
    const names = seen.map((row) => row.review.external_review_id);
    expect(names.toSorted()).toEqual(committed.toSorted());
  });
});

interface Row {
  readonly id: number;
  readonly updated_at: string;
  readonly review: { readonly external_review_id: string };
}

let api: TestApi;
let google: TestProvider;
let account: TestAccount;
let site: number;
let tokens: Record<"partner" | "other" | "narrow", string>;

/** The pause in ms between two looks at open transactions, and the number of such pauses. */
const LOOK_MS = 10;
let waits = 0;
const clock: Clock = {
  now: () => systemClock.now(),
  monotonicMs: () => systemClock.monotonicMs(),
  sleep(ms, signal) {
    if (ms === LOOK_MS) waits++;
    return systemClock.sleep(ms, signal);
  },
};

beforeAll(async () => {
  api = await startApi({ db: database.db, clock });
  const [own, other] = tenants.partners;
  account = own.accounts[0];
  google = await addProvider(database.db, api.deps.box);
  site = await connectStore(database.db, account, { provider: google });
  const partner = await api.login(own.admin.email);
  const scopes = { name: "Hooks", scopes: ["webhooks:read"] };
  const narrow = await api.call("POST", "/account/personal-access-tokens", {
    token: partner,
    body: scopes,
  });
  tokens = {
    partner,
    other: await api.login(other.owner.email),
    narrow: String(narrow.body["access_token"]),
  };
});
afterAll(() => api.stop());

const get = (path: string, token = tokens.partner) => api.call("GET", path, { token });

async function history(path: string, token = tokens.partner): Promise<Row[]> {
  return (await everyPage<Row>(api, path, token)).flat();
}

async function review(externalReviewId: string): Promise<number> {
  await report(api, google, [created(site, externalReviewId)]);
  return reviewIdOf(database.db, externalReviewId);
}

/** Writes a row of the history in a transaction that stays open until the test ends it. */
async function writing(name: string) {
  const written = Promise.withResolvers<void>();
  const { promise: ended, resolve } = Promise.withResolvers<boolean>();
  const rolledBack = new Error("rolled back");
  const transaction = database.db.transaction(async (tx) => {
    await recordActions(tx, [reviewReceived(name)], new Date());
    written.resolve();
    if (!(await ended)) throw rolledBack;
  });
  const done = transaction.catch((error: unknown) => {
    if (error !== rolledBack) throw error;
  });
  await written.promise;
  const end = (isCommitted: boolean) => {
    resolve(isCommitted);
    return done;
  };
  return { commit: () => end(true), rollBack: () => end(false) };
}

function reviewReceived(externalReviewId: string) {
  const { id: accountId, partnerId, storeIds } = account;
  const place = { accountId, partnerId, storeId: storeIds[0] ?? 0, storeReviewSiteId: site };
  const action = reviewAction({ ...place, reviewSiteId: google.id, reviewIds: [1] });
  const { about } = action;
  if (!("review" in about)) throw new Error("The action is about a review.");
  return {
    ...action,
    about: { review: { ...about.review, external_review_id: externalReviewId } },
  };
}
