import { beforeEach, describe, expect, test } from "bun:test";

import { everyPage, type Answer } from "../../support/api.ts";
import { startAccountReviews } from "../../support/account-reviews.ts";
import {
  connectStore,
  created,
  historyOfSite,
  providerEvent,
  report,
  reviewIdOf,
} from "../../support/factory.ts";
import { fixture, lazy } from "../../support/fixture.ts";

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
    expect(await world.events()).toEqual([
      ["response_submitted", { body: "Thanks!" }],
      ["response_updated", { body: "Thank you!" }],
      ["response_updated", { body: "Thank you!" }],
      ["response_deleted", {}],
      ["response_submitted", { body: "Thanks again." }],
    ]);
  });

  test("is recorded with the user, the time and the facts of the review", async () => {
    world.clock.advance(1_234);
    await respond("Thanks!");
    const rows = await historyOfSite(world.database.db, world.siteId);
    const row = rows.findLast((one) => one.reviewId === id);
    expect(row).toMatchObject({
      actor: { type: "user", id: account.user.id, name: `Name of ${account.user.email}` },
      review: {
        id,
        store_id: account.storeIds[0],
        review_site_id: world.provider.id,
        source_platform: "google",
        rate: 4,
        reviewer: "Ada Reviewer",
      },
      occurredAt: world.clock.now(),
    });
  });

  test("has 1 to 10,000 characters and no NUL", async () => {
    expect((await respond("x".repeat(10_000))).status).toBe(200);
    for (const body of ["x".repeat(10_001), "", "\u0000", 7, null]) {
      const answer = await respond(body);
      expect([answer.status, Object.keys(answer.body["errors"] ?? {})]).toEqual([422, ["body"]]);
    }
    const unknown = await world.post("response", { body: "x", more: 1 });
    expect(Object.keys(unknown.body["errors"] ?? {})).toEqual(["more"]);
  });

  test("to a removed review is rejected, but can be deleted", async () => {
    await respond("Thanks!");
    await report(api, world.provider, [
      providerEvent("review.removed", world.siteId, { review: { external_review_id: externalId } }),
    ]);
    const { status, body } = await respond("Thanks again!");
    expect([status, body["code"]]).toEqual([409, "review_removed"]);
    expect((await unrespond()).status).toBe(200);
    expect((await unrespond()).body["code"]).toBe("no_response");
  });

  test("of 20 parallel ones is submitted once", async () => {
    await Promise.all(Array.from({ length: 20 }, (_, i) => respond(`Thanks ${i}`)));
    const names = (await world.events()).map(([event]) => event);
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
    expect(await world.events()).toEqual([
      ["review_flagged", { reason: "Spam" }],
      ["flag_status_changed", { from: "open", to: "under_review", native_email: "queued" }],
      ["flag_status_changed", { from: "under_review", to: "rejected", native_email: "queued" }],
      ["review_flagged", { reason: "Still spam" }],
    ]);
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
    api.call("POST", path("assign", review), { token, body: { user_id: account.user.id } }),
    api.call("POST", path("notes", review), { token, body: { body: "x" } }),
    api.call("GET", path("", review), { token }),
  ];
  const all = (status: number) => Array.from({ length: 7 }, () => status);
  const statuses = async (answers: Promise<Answer>[]) =>
    (await Promise.all(answers)).map(({ status }) => status);
  async function denials(): Promise<number> {
    const [row] = await world.database.db.sql<{ n: number }[]>`
      select count(*)::int as n from audit_log where action = 'AUTHZ_DENIED'`;
    return row?.n ?? 0;
  }

  test.each(["sibling", "stranger", "owner"] as const)(
    "is denied to the %s with 403 and an AUTHZ_DENIED row, without any effect",
    async (who) => {
      const before = await denials();
      expect(await statuses(attempts(tokens[who]))).toEqual(all(403));
      expect(await denials()).toBe(before + 7);
      expect(await world.events()).toEqual([]);
    },
  );

  test("is granted to a location user only for its own stores", async () => {
    expect((await respond("Thanks!", tokens.location)).status).toBe(200);
    const { id: elsewhere } = await world.addReview(world.westSite);
    expect(await statuses(attempts(tokens.location, elsewhere))).toEqual(all(403));
    expect((await statuses(attempts(tokens.account, elsewhere))).at(-1)).toBe(200);
  });

  test.each(["0", "-1", "abc", "1.5", "%00", "99999999999", "9007199254740993", "2147483647"])(
    "is answered 404 for the id %s",
    async (review) => {
      expect(await statuses(attempts(tokens.account, review))).toEqual(all(404));
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

describe("reading", () => {
  test("a review shows its history, oldest first", async () => {
    await flag("Spam");
    const { body } = await api.call("GET", path(), { token: tokens.account });
    expect(body).toMatchObject({ id, flag: { status: "open", reason: "Spam" }, response: null });
    const history = body["history"] as { event: string }[];
    expect(history.map(({ event }) => event)).toEqual(["review_received", "review_flagged"]);
  });

  test("lists newest first, filtered, within the caller's stores", async () => {
    const { id: there } = await world.addReview(world.westSite);
    const list = async (query: string, token = tokens.account) => {
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
    const { body } = await api.call("GET", `/account/reviews/${there}`, { token: tokens.account });
    const own = `external_review_id=${encodeURIComponent(String(body["external_review_id"]))}`;
    expect(await list(own)).toEqual([there]);
    expect(await list(own, tokens.location)).toEqual([]);
    expect(await list(own, tokens.sibling)).toEqual([]);
    expect(await list(`${own}x`)).toEqual([]);
  });

  test("finds text of the review, its reviewer or its response, literally and ignoring case", async () => {
    const found = async (q: string, token = tokens.account) => {
      const search = `/account/reviews?q=${encodeURIComponent(q)}`;
      const { body } = await api.call("GET", search, { token });
      return (body["data"] as { id: number }[]).map((one) => one.id);
    };
    const fields = { reviewer: "Zoë O'Hara", content: "Cold 100% soup,\nrude_waiter" };
    await report(api, world.provider, [created(world.siteId, "searched", fields)]);
    const searched = await reviewIdOf(world.database.db, "searched");
    await api.call("POST", path("response", searched), {
      token: tokens.account,
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
      const answer = await api.call("GET", `/account/reviews?q=${q}`, { token: tokens.account });
      expect(answer.status).toBe(Number(status));
    }
  });

  test("pages follow each other without gap or repeat", async () => {
    const pages = await everyPage<{ id: number }>(api, "/account/reviews?limit=7", tokens.account);
    const seen = pages.flat().map((one) => one.id);
    expect(seen).toEqual([...new Set(seen)].toSorted((a, b) => b - a));
    const { sql } = world.database.db;
    const [row] = await sql<{ n: number }[]>`select count(*)::int as n from reviews`;
    expect(seen).toHaveLength(row?.n ?? 0);
  });

  test("searches 5,000 reviews per page and continues after them on the next page", async () => {
    const other = world.tenants.partners[0].accounts[1];
    const there = await connectStore(world.database.db, other, { provider: world.provider });
    await report(api, world.provider, [created(there, "hidden", { content: "a needle" })]);
    const hidden = await reviewIdOf(world.database.db, "hidden");
    const coverRange = (n: number) => world.database.db.sql`
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

  test("review sites show the state of both axes", async () => {
    await report(api, world.provider, [
      providerEvent("connection.changed", world.westSite, {
        axis: "post",
        connected: false,
        error_code: "E-007",
      }),
    ]);
    const { body } = await api.call("GET", "/account/review-sites", { token: tokens.account });
    expect(body["data"]).toEqual([
      expect.objectContaining({
        id: world.siteId,
        store_name: "p1-a1 east",
        post: { connected: true, error_code: null, since: null },
      }),
      {
        id: world.westSite,
        store_id: account.storeIds[1],
        review_site_id: world.provider.id,
        provider: "google",
        name: world.provider.name,
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

const world = fixture(startAccountReviews);
const api = lazy(() => world.api);
const account = lazy(() => world.account);
const tokens = lazy(() => world.tokens);

const path = (action = "", review: unknown = id) =>
  `/account/reviews/${String(review)}${action === "" ? "" : `/${action}`}`;

/** Every test has its own review. */
let id = 0;
let externalId = "";
beforeEach(async () => {
  ({ id, externalId } = await world.addReview());
  world.id = id;
});

const respond = (body: unknown, token?: string) =>
  world.post("response", { body }, token === undefined ? {} : { token });

const flag = (reason: unknown = "Not a customer") => world.post("flag", { reason });

const move = (status: unknown) => world.post("flag-status", { status });

const unrespond = () => api.call("DELETE", path("response"), { token: tokens.user });
