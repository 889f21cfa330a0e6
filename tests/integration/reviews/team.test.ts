import { beforeEach, describe, expect, test } from "bun:test";

import { startAccountReviews } from "../../support/account-reviews.ts";
import { everyPage, type Answer } from "../../support/api.ts";
import { historyOfSite, providerEvent, report } from "../../support/factory.ts";
import { fixture, lazy } from "../../support/fixture.ts";
import { addUser } from "../../support/tenants.ts";

describe("assigning a review", () => {
  test("moves it between users and ignores its present assignee", async () => {
    expect((await assign(account.user.id)).body).toMatchObject({
      id,
      assigned_user_id: account.user.id,
    });
    expect((await assign(account.user.id)).status).toBe(200);
    await assign(account.locationUser.id);
    expect(await world.events()).toEqual([
      ["review_assigned", { user_id: account.user.id }],
      ["review_assigned", { user_id: account.locationUser.id }],
    ]);
  });

  test("makes it appear among the reviews of that user", async () => {
    await world.addReview();
    await assign(account.locationUser.id);
    const { body } = await api.call(
      "GET",
      `/account/reviews?assigned_user_id=${account.locationUser.id}&limit=1`,
      { token: tokens.account },
    );
    expect((body["data"] as { id: number }[]).map((one) => one.id)).toEqual([id]);
  });

  test("to a user who cannot see it is a 422 on user_id", async () => {
    const inactive = await addUser(world.database.db, {
      companyId: account.id,
      role: "account_user",
      email: `gone-${id}@p1.test`,
      isActive: false,
    });
    const [one] = world.tenants.partners;
    const strangers = [inactive, one.accounts[1].owner, one.owner, world.tenants.superAdmin];
    for (const user of [...strangers.map((stranger) => stranger.id), 999_999])
      expect(fieldsOf(await assign(user))).toEqual([422, ["user_id"]]);
    expect(await world.events()).toEqual([]);
    const { id: west } = await world.addReview(world.westSite);
    expect(fieldsOf(await assign(account.locationUser.id, west))).toEqual([422, ["user_id"]]);
  });
});

describe("a note", () => {
  test("is recorded every time, also on a removed review, and shown in the history", async () => {
    await note("Call her.");
    await report(api, world.provider, [
      providerEvent("review.removed", world.siteId, {
        review: { external_review_id: externalId },
      }),
    ]);
    expect((await note("Call her.")).status).toBe(200);
    const { body } = await api.call("GET", `/account/reviews/${id}`, { token: tokens.account });
    const history = body["history"] as { event: string; metadata: unknown; actor: unknown }[];
    const notes = history.filter(({ event }) => event === "note_added");
    expect(notes.map(({ metadata }) => metadata)).toEqual([
      { body: "Call her." },
      { body: "Call her." },
    ]);
    expect(notes[0]?.actor).toEqual({
      type: "user",
      id: account.owner.id,
      name: `Name of ${account.owner.email}`,
    });
  });

  test("moves the review to the end of the list by its last change", async () => {
    const updated = async () => {
      const [row] = await world.database.db.sql<{ at: Date }[]>`
        select updated_at as at from reviews where id = ${id}`;
      return row?.at.toISOString();
    };
    await world.database.db.sql`update reviews set updated_at = '2020-01-01Z' where id = ${id}`;
    const { body } = await note("Call her.");
    expect(await updated()).not.toBe("2020-01-01T00:00:00.000Z");
    expect(new Date(String(body["updated_at"])).toISOString()).toBe(String(await updated()));
  });

  test("has 1 to 10,000 characters and no NUL", async () => {
    expect((await note("x".repeat(10_000))).status).toBe(200);
    for (const body of ["", "x".repeat(10_001), "\u0000", 7, null, undefined])
      expect(fieldsOf(await note(body))).toEqual([422, ["body"]]);
  });
});

test("a partner reaches the reviews of an account as its owner, by impersonation", async () => {
  const impersonated = await api.call("POST", "/partner/account-owner/token", {
    token: tokens.owner,
    body: { account_id: account.id },
  });
  const token = String(impersonated.body["access_token"]);
  expect((await note("From the agency.", token)).status).toBe(200);
  const rows = await historyOfSite(world.database.db, world.siteId);
  const row = rows.findLast((one) => one.reviewId === id);
  expect(row?.actor).toMatchObject({ type: "user", id: account.owner.id });
});

describe("the users of an account", () => {
  const list = async (query = "", token = tokens.account) => {
    const { status, body } = await api.call("GET", `/account/users?${query}`, { token });
    expect(status).toBe(200);
    return (body["data"] as { id: number }[]).map((one) => one.id);
  };

  test("are listed page by page while they are active", async () => {
    const { owner, user, locationUser } = account;
    const everybody = [owner.id, user.id, locationUser.id];
    expect(await list()).toEqual(everybody);
    const pages = await everyPage<{ id: number }>(api, "/account/users?limit=2", tokens.account);
    expect(pages.flat().map((one) => one.id)).toEqual(everybody);
    const { body } = await api.call("GET", "/account/users", { token: tokens.account });
    expect((body["data"] as unknown[])[2]).toEqual({
      id: locationUser.id,
      email: locationUser.email,
      name: `Name of ${locationUser.email}`,
      role: "location_user",
      store_ids: [account.storeIds[0]],
    });
  });

  test("can be filtered by store; a location user sees only users of its own stores", async () => {
    const [east, west] = account.storeIds;
    const { owner, user, locationUser } = account;
    const there = await addUser(world.database.db, {
      companyId: account.id,
      role: "location_user",
      email: "west@p1-a1.test",
      storeIds: [Number(west)],
    });
    expect(await list(`store_id=${west}`)).toEqual([owner.id, user.id, there.id]);
    expect(await list(`store_id=${east}`)).toEqual([owner.id, user.id, locationUser.id]);
    expect(await list("", tokens.location)).toEqual([owner.id, user.id, locationUser.id]);
    const foreign = world.tenants.partners[1].accounts[0].storeIds[0];
    expect(await list(`store_id=${foreign}`)).toEqual([]);
  });
});

const world = fixture(startAccountReviews);
const api = lazy(() => world.api);
const account = lazy(() => world.account);
const tokens = lazy(() => world.tokens);

/** Every test has its own review. */
let id = 0;
let externalId = "";
beforeEach(async () => {
  ({ id, externalId } = await world.addReview());
  world.id = id;
});

const assign = (user_id: unknown, review = id) =>
  world.post("assign", { user_id }, { token: tokens.account, review });

const note = (body: unknown, token = tokens.account) => world.post("notes", { body }, { token });

const fieldsOf = ({ status, body }: Answer) => [status, Object.keys(body["errors"] ?? {})];
