import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";

import { fieldsOf } from "../../../src/lib/fields.ts";
import type { Wake } from "../../../src/outbox/schedule.ts";
import { startApi, type Answer, type TestApi } from "../../support/api.ts";
import { createFakeClock } from "../../support/clock.ts";
import {
  addProvider,
  connectStore,
  created,
  historyOfSite,
  providerEvent,
  queuedFor,
  report,
  reviewIdOf,
  type TestProvider,
} from "../../support/factory.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addTenants, type TestAccount } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));

describe("the response", () => {
  test("is first submitted, later updated, and submitted again after a delete", async () => {
    expect((await respond("Thanks!")).body).toMatchObject({
      id,
      response: { body: "Thanks!", user_id: account.user.id },
    });
    await respond("Thank you!");
    await respond("Thank you!");
    const { status, body } = await unrespond();
    expect([status, body["response"]]).toEqual([200, null]);
    await respond("Thanks again.");
    expect(await events()).toEqual([
      ["response_submitted", { body: "Thanks!" }],
      ["response_updated", { body: "Thank you!" }],
      ["response_updated", { body: "Thank you!" }],
      ["response_deleted", {}],
      ["response_submitted", { body: "Thanks again." }],
    ]);
  });

  test("cannot be deleted if there is none", async () => {
    const { status, body } = await unrespond();
    expect([status, body["code"]]).toEqual([409, "no_response"]);
    expect(await events()).toEqual([]);
  });

  test("is recorded with the user, the time and the facts of the review", async () => {
    clock.advance(1_234);
    await respond("Thanks!");
    const row = (await historyOfSite(database.db, site)).findLast((one) => one.reviewId === id);
    expect(row).toMatchObject({
      actor: { type: "user", id: account.user.id, name: `Name of ${account.user.email}` },
      review: {
        id,
        store_id: account.storeIds[0],
        review_site_id: google.id,
        source_platform: "google",
        rate: 4,
        reviewer: "Ada Reviewer",
      },
      occurredAt: clock.now(),
    });
  });

  test("has 1 to 10,000 characters and no NUL", async () => {
    expect((await respond("x".repeat(10_000))).status).toBe(200);
    for (const body of ["x".repeat(10_001), "", "\u0000", 7, null]) {
      const answer = await respond(body);
      expect([answer.status, Object.keys(answer.body["errors"] ?? {})]).toEqual([422, ["body"]]);
    }
    const unknown = await post("response", { body: "x", more: 1 });
    expect(Object.keys(unknown.body["errors"] ?? {})).toEqual(["more"]);
  });

  test("to a removed review is rejected, but can be deleted", async () => {
    await respond("Thanks!");
    const external = `review-${reviews}`;
    await report(api, google, [
      providerEvent("review.removed", site, { review: { external_review_id: external } }),
    ]);
    const { status, body } = await respond("Thanks again!");
    expect([status, body["code"]]).toEqual([409, "review_removed"]);
    expect((await unrespond()).status).toBe(200);
  });

  test("of 20 parallel ones is submitted once", async () => {
    await Promise.all(Array.from({ length: 20 }, (_, i) => respond(`Thanks ${i}`)));
    const names = (await events()).map(([event]) => event);
    expect(names).toEqual([
      "response_submitted",
      ...Array.from({ length: 19 }, () => "response_updated"),
    ]);
  });
});

describe("the flag", () => {
  test("opens once, moves, closes and may be opened again", async () => {
    expect((await flag("Spam")).body["flag"]).toEqual({ status: "open", reason: "Spam" });
    const again = await flag();
    expect([again.status, again.body["code"]]).toEqual([409, "flag_open"]);
    await move("under_review");
    expect((await flag()).status).toBe(409);
    expect((await move("rejected")).body["flag"]).toEqual({ status: "rejected", reason: "Spam" });
    expect((await flag("Still spam")).status).toBe(200);
    expect(await events()).toEqual([
      ["review_flagged", { reason: "Spam" }],
      ["flag_status_changed", { from: "open", to: "under_review", native_email: "queued" }],
      ["flag_status_changed", { from: "under_review", to: "rejected", native_email: "queued" }],
      ["review_flagged", { reason: "Still spam" }],
    ]);
  });

  test("cannot be moved if there is none", async () => {
    expect((await move("accepted")).body["code"]).toBe("no_open_flag");
  });

  test.each(["under_review", "accepted"])("set to %s again writes nothing", async (status) => {
    await flag();
    await move(status);
    wakes.length = 0;
    const { status: code, body } = await move(status);
    expect([code, fieldsOf(body["flag"])["status"]]).toEqual([200, status]);
    expect(await events()).toHaveLength(2);
    expect(wakes).toEqual([]);
  });

  test.each(["open", "closed", "", null, undefined])("cannot be set to %p", async (status) => {
    await flag();
    const { status: code, body } = await move(status);
    expect([code, Object.keys(body["errors"] ?? {})]).toEqual([422, ["status"]]);
  });

  test("has a reason of 1 to 1,000 characters", async () => {
    expect((await flag("x".repeat(1_001))).status).toBe(422);
    expect((await flag("")).status).toBe(422);
    expect((await flag("x".repeat(1_000))).status).toBe(200);
  });
});

describe("access to a review", () => {
  const attempts = (token: string, review: unknown = id) => [
    api.call("POST", path("response", review), { token, body: { body: "x" } }),
    api.call("DELETE", path("response", review), { token }),
    api.call("POST", path("flag", review), { token, body: { reason: "x" } }),
    api.call("POST", path("flag-status", review), { token, body: { status: "accepted" } }),
    api.call("GET", path("", review), { token }),
  ];
  const statuses = async (answers: Promise<Answer>[]) =>
    (await Promise.all(answers)).map(({ status }) => status);
  async function denials(): Promise<number> {
    const [row] = await database.db.sql<{ n: number }[]>`
      select count(*)::int as n from audit_log where action = 'AUTHZ_DENIED'`;
    return row?.n ?? 0;
  }

  test.each(["sibling", "stranger", "partner"] as const)(
    "is denied to the %s with 403 and an AUTHZ_DENIED row, without any effect",
    async (who) => {
      const before = await denials();
      expect(await statuses(attempts(tokens[who]))).toEqual([403, 403, 403, 403, 403]);
      expect(await denials()).toBe(before + 5);
      expect(await events()).toEqual([]);
    },
  );

  test("is granted to a location user only for its own stores", async () => {
    expect((await respond("Thanks!", tokens.location)).status).toBe(200);
    const elsewhere = await addReview(secondSite);
    expect(await statuses(attempts(tokens.location, elsewhere))).toEqual([403, 403, 403, 403, 403]);
    expect((await statuses(attempts(tokens.owner, elsewhere)))[4]).toBe(200);
  });

  test.each(["0", "-1", "abc", "1.5", "%00", "99999999999", "9007199254740993", "2147483647"])(
    "is answered 404 for the id %s",
    async (review) => {
      expect(await statuses(attempts(tokens.owner, review))).toEqual([404, 404, 404, 404, 404]);
    },
  );

  test("is checked after the syntax and before the fields", async () => {
    const send = (review: unknown, body: string) =>
      api.call("POST", path("flag", review), { token: tokens.user, body });
    expect((await send(0, "{")).status).toBe(400);
    expect((await send(0, "{}")).status).toBe(404);
    expect((await send(id, "{}")).status).toBe(422);
  });
});

describe("one action", () => {
  test("writes review, history and outbox together and wakes the subscription", async () => {
    const body = { label: "L", webhook_url: "http://127.0.0.1:3699/", delivery_kind: "immediate" };
    const token = tokens.partner;
    const made = await api.call("POST", "/partner/webhooks", { token, body });
    const subscription = String(made.body["id"]);
    await flag();
    const [entry] = await queuedFor(database.db, subscription);
    expect(entry).toMatchObject({ sequence: 1, event: "review_flagged" });
    expect(wakes.map(({ subscriptionId }) => subscriptionId)).toEqual([subscription]);
    await flag();
    expect(await queuedFor(database.db, subscription)).toHaveLength(1);
    await api.call("DELETE", `/partner/webhooks/${subscription}`, { token });
  });
});

describe("reading", () => {
  test("a review shows its history, oldest first", async () => {
    await flag("Spam");
    const { body } = await api.call("GET", path(), { token: tokens.owner });
    expect(body).toMatchObject({ id, flag: { status: "open", reason: "Spam" }, response: null });
    const history = body["history"] as { event: string }[];
    expect(history.map(({ event }) => event)).toEqual(["review_received", "review_flagged"]);
  });

  test("lists newest first, filtered, within the caller's stores", async () => {
    const there = await addReview(secondSite);
    const list = async (query: string, token = tokens.owner) => {
      const { body } = await api.call("GET", `/account/reviews?${query}`, { token });
      return (body["data"] as { id: number }[]).map((one) => one.id);
    };
    expect(await list("limit=2")).toEqual([there, id]);
    expect(await list("limit=1", tokens.location)).toEqual([id]);
    expect(await list(`store_id=${account.storeIds[1]}`)).toContain(there);
    expect(await list(`store_id=${account.storeIds[1]}`, tokens.location)).toEqual([]);
    expect(await list("limit=100", tokens.sibling)).toEqual([]);
    await flag();
    await respond("Thanks!");
    expect((await list("flag_status=open"))[0]).toBe(id);
    expect((await list("responded=true"))[0]).toBe(id);
    expect(await list("rate=5")).toEqual([]);
    expect(await list("source_platform=yelp")).toEqual([]);
    const { body } = await api.call("GET", `/account/reviews/${there}`, { token: tokens.owner });
    const own = `external_review_id=${encodeURIComponent(String(body["external_review_id"]))}`;
    expect(await list(own)).toEqual([there]);
    expect(await list(own, tokens.location)).toEqual([]);
    expect(await list(own, tokens.sibling)).toEqual([]);
    expect(await list(`${own}x`)).toEqual([]);
  });

  test("finds text of the review, its reviewer or its response, literally and ignoring case", async () => {
    const found = async (q: string, token = tokens.owner) => {
      const search = `/account/reviews?q=${encodeURIComponent(q)}`;
      const { body } = await api.call("GET", search, { token });
      return (body["data"] as { id: number }[]).map((one) => one.id);
    };
    const fields = { reviewer: "Zoë O'Hara", content: "Cold 100% soup,\nrude_waiter" };
    await report(api, google, [created(site, "searched", fields)]);
    const searched = await reviewIdOf(database.db, "searched");
    await api.call("POST", path("response", searched), {
      token: tokens.owner,
      body: { body: "We apologise." },
    });
    for (const q of ["zoë o'hara", "COLD 100% SOUP", "soup,\nrude_w", "APOLOGISE.", "%", "_"])
      expect([q, await found(q)]).toEqual([q, [searched]]);
    for (const q of ["hara cold", "soup%rude", "\\"]) expect([q, await found(q)]).toEqual([q, []]);
    expect(await found("apologise", tokens.location)).toEqual([searched]);
    expect(await found("apologise", tokens.sibling)).toEqual([]);
    for (const [q, status] of [
      ["x".repeat(200), 200],
      ["x".repeat(201), 422],
      ["", 422],
    ]) {
      const answer = await api.call("GET", `/account/reviews?q=${q}`, { token: tokens.owner });
      expect(answer.status).toBe(Number(status));
    }
  });

  test("pages follow each other without gap or repeat", async () => {
    const token = tokens.owner;
    const seen: number[] = [];
    let cursor = "";
    do {
      const { body } = await api.call("GET", `/account/reviews?limit=7${cursor}`, { token });
      seen.push(...(body["data"] as { id: number }[]).map((one) => one.id));
      const next = body["next_cursor"];
      cursor = typeof next === "string" ? `&cursor=${next}` : "";
    } while (cursor !== "");
    expect(seen).toEqual([...new Set(seen)].toSorted((a, b) => b - a));
    const [row] = await database.db.sql<{ n: number }[]>`select count(*)::int as n from reviews`;
    expect(seen).toHaveLength(row?.n ?? 0);
  });

  test("searches 5,000 reviews per page and continues after them on the next page", async () => {
    const other = tenants.partners[0].accounts[1];
    const there = await connectStore(database.db, other, { provider: google });
    await report(api, google, [created(there, "hidden", { content: "a needle" })]);
    const hidden = await reviewIdOf(database.db, "hidden");
    const coverRange = (n: number) => database.db.sql`
      insert into reviews (partner_id, account_id, store_id, store_review_site_id, external_review_id, rate, content,
                           reviewed_at, created_at, updated_at)
      select partner_id, account_id, store_id, store_review_site_id, gen_random_uuid(), rate, 'hay',
             reviewed_at, created_at, updated_at
        from reviews, generate_series(1, ${n}) where id = ${hidden}`;
    const search = async (cursor?: unknown) => {
      const page = typeof cursor === "string" ? `&cursor=${cursor}` : "";
      const answer = await api.call("GET", `/account/reviews?q=needle${page}`, {
        token: tokens.sibling,
      });
      const ids = (answer.body["data"] as { id: number }[]).map((one) => one.id);
      return { ids, next: answer.body["next_cursor"] };
    };
    await coverRange(4_998);
    expect(await search()).toEqual({ ids: [hidden], next: null });
    await coverRange(1);
    const last = await search();
    expect(last.ids).toEqual([hidden]);
    expect(await search(last.next)).toEqual({ ids: [], next: null });
    await coverRange(1);
    const first = await search();
    expect(first).toEqual({ ids: [], next: expect.any(String) });
    expect(await search(first.next)).toEqual({ ids: [hidden], next: null });
  });

  test("a cursor beyond every id is an empty page", async () => {
    const cursor = Buffer.from("9999999999999").toString("base64url");
    const { status } = await api.call("GET", `/account/review-sites?cursor=${cursor}`, {
      token: tokens.owner,
    });
    expect(status).toBe(200);
  });

  test("review sites show the state of both axes", async () => {
    await report(api, google, [
      providerEvent("connection.changed", secondSite, {
        axis: "post",
        connected: false,
        error_code: "E-007",
      }),
    ]);
    const { body } = await api.call("GET", "/account/review-sites", { token: tokens.owner });
    expect(body["data"]).toEqual([
      expect.objectContaining({
        id: site,
        store_name: "p1-a1 east",
        post: { connected: true, error_code: null, since: null },
      }),
      {
        id: secondSite,
        store_id: account.storeIds[1],
        review_site_id: google.id,
        provider: "google",
        name: google.name,
        store_name: "p1-a1 west",
        pull: { connected: true, error_code: null, since: null },
        post: {
          connected: false,
          error_code: "E-007",
          since: "2026-06-01T12:00:00.000+00:00",
        },
      },
    ]);
  });
});

let api: TestApi;
let id = 0;

const path = (action = "", review: unknown = id) =>
  `/account/reviews/${String(review)}${action === "" ? "" : `/${action}`}`;

let account: TestAccount;

let google: TestProvider;

let site = 0;

let secondSite = 0;

let reviews = 0;

const clock = createFakeClock();

const wakes: Wake[] = [];

const tokens = { owner: "", user: "", location: "", sibling: "", stranger: "", partner: "" };

beforeAll(async () => {
  const [one, two] = tenants.partners;
  [account] = one.accounts;
  const schedule = {
    wake: (some: readonly Wake[]) => void wakes.push(...some),
    wakeMailer: () => {},
  };
  api = await startApi({ db: database.db, clock, schedule });
  tokens.owner = await api.login(account.owner.email);
  tokens.user = await api.login(account.user.email);
  tokens.location = await api.login(account.locationUser.email);
  tokens.sibling = await api.login(one.accounts[1].owner.email);
  tokens.stranger = await api.login(two.accounts[0].owner.email);
  tokens.partner = await api.login(one.owner.email);
  google = await addProvider(database.db, api.deps.box);
  site = await connectStore(database.db, account, { provider: google });
  secondSite = await connectStore(database.db, account, { provider: google, store: 1 });
});

afterAll(async () => {
  await api.stop();
});

// Every test has its own review.
beforeEach(async () => {
  id = await addReview(site);
  wakes.length = 0;
});

async function addReview(storeReviewSiteId: number): Promise<number> {
  const external = `review-${++reviews}`;
  await report(api, google, [created(storeReviewSiteId, external)]);
  return reviewIdOf(database.db, external);
}

const post = (action: string, body: unknown, token = tokens.user): Promise<Answer> =>
  api.call("POST", path(action), { token, body });

const respond = (body: unknown, token?: string) => post("response", { body }, token);

const flag = (reason: unknown = "Not a customer") => post("flag", { reason });

const move = (status: unknown) => post("flag-status", { status });

const unrespond = () => api.call("DELETE", path("response"), { token: tokens.user });

async function events(): Promise<[string, unknown][]> {
  const rows = await historyOfSite(database.db, site);
  return rows
    .filter((row) => row.reviewId === id && row.event !== "review_received")
    .map(({ event, metadata }) => [event, metadata]);
}
