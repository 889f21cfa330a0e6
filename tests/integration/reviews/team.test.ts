import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";

import { startApi, everyPage, type Answer, type TestApi } from "../../support/api.ts";
import {
  addProvider,
  connectStore,
  created,
  historyOfSite,
  providerEvent,
  report,
  reviewIdOf,
  type TestProvider,
} from "../../support/factory.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addTenants, addUser, type TestAccount } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));

describe("assigning a review", () => {
  test("moves it between users and ignores its present assignee", async () => {
    expect((await assign(account.user.id)).body).toMatchObject({
      id,
      assigned_user_id: account.user.id,
    });
    expect((await assign(account.user.id)).status).toBe(200);
    await assign(account.locationUser.id);
    expect(await events()).toEqual([
      ["review_assigned", { user_id: account.user.id }],
      ["review_assigned", { user_id: account.locationUser.id }],
    ]);
  });

  test("makes it appear among the reviews of that user", async () => {
    await addReview(site);
    await assign(account.locationUser.id);
    const { body } = await api.call(
      "GET",
      `/account/reviews?assigned_user_id=${account.locationUser.id}&limit=1`,
      { token: tokens.owner },
    );
    expect((body["data"] as { id: number }[]).map((one) => one.id)).toEqual([id]);
  });

  test("to a user who cannot see it is a 422 on user_id", async () => {
    const inactive = await addUser(database.db, {
      companyId: account.id,
      role: "account_user",
      email: `gone-${id}@p1.test`,
      isActive: false,
    });
    const [one] = tenants.partners;
    const strangers = [inactive, one.accounts[1].owner, one.owner, tenants.superAdmin];
    for (const user of [...strangers.map((stranger) => stranger.id), 999_999])
      expect(fieldsOf(await assign(user))).toEqual([422, ["user_id"]]);
    expect(await events()).toEqual([]);
    const west = await addReview(westSite);
    expect(fieldsOf(await assign(account.locationUser.id, tokens.owner, west))).toEqual([
      422,
      ["user_id"],
    ]);
  });

  test.each(["1", 0, -1, 1.5, 2 ** 31, null, undefined])(
    "to the user %p is a 422",
    async (user) => {
      expect(fieldsOf(await assign(user))).toEqual([422, ["user_id"]]);
    },
  );
});

describe("a note", () => {
  test("is recorded every time, also on a removed review, and shown in the history", async () => {
    await note("Call her.");
    await report(api, provider, [
      providerEvent("review.removed", site, {
        review: { external_review_id: `review-${reviews}` },
      }),
    ]);
    expect((await note("Call her.")).status).toBe(200);
    const { body } = await api.call("GET", `/account/reviews/${id}`, { token: tokens.owner });
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
      const [row] = await database.db.sql<{ at: Date }[]>`
        select updated_at as at from reviews where id = ${id}`;
      return row?.at.toISOString();
    };
    await database.db.sql`update reviews set updated_at = '2020-01-01Z' where id = ${id}`;
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

test("assignments and notes are 403 for other accounts and other stores", async () => {
  const west = await addReview(westSite);
  for (const [token, review] of [
    [tokens.sibling, id],
    [tokens.location, west],
  ] as const) {
    expect((await assign(account.user.id, token, review)).status).toBe(403);
    expect((await note("x", token, review)).status).toBe(403);
  }
  expect((await note("Mine.", tokens.location)).status).toBe(200);
  expect((await note("x", tokens.owner, 999_999)).status).toBe(404);
});

test("a partner reaches the reviews of an account as its owner, by impersonation", async () => {
  const impersonated = await api.call("POST", "/partner/account-owner/token", {
    token: tokens.partner,
    body: { account_id: account.id },
  });
  const token = String(impersonated.body["access_token"]);
  expect((await note("From the agency.", token)).status).toBe(200);
  const row = (await historyOfSite(database.db, site)).findLast((one) => one.reviewId === id);
  expect(row?.actor).toMatchObject({ type: "user", id: account.owner.id });
});

describe("the users of an account", () => {
  const list = async (query = "", token = tokens.owner) => {
    const { status, body } = await api.call("GET", `/account/users?${query}`, { token });
    expect(status).toBe(200);
    return (body["data"] as { id: number }[]).map((one) => one.id);
  };

  test("are listed page by page while they are active", async () => {
    const { owner, user, locationUser } = account;
    const everybody = [owner.id, user.id, locationUser.id];
    expect(await list()).toEqual(everybody);
    const pages = await everyPage<{ id: number }>(api, "/account/users?limit=2", tokens.owner);
    expect(pages.flat().map((one) => one.id)).toEqual(everybody);
    const { body } = await api.call("GET", "/account/users", { token: tokens.owner });
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
    const there = await addUser(database.db, {
      companyId: account.id,
      role: "location_user",
      email: "west@p1-a1.test",
      storeIds: [Number(west)],
    });
    expect(await list(`store_id=${west}`)).toEqual([owner.id, user.id, there.id]);
    expect(await list(`store_id=${east}`)).toEqual([owner.id, user.id, locationUser.id]);
    expect(await list("", tokens.location)).toEqual([owner.id, user.id, locationUser.id]);
    const foreign = tenants.partners[1].accounts[0].storeIds[0];
    expect(await list(`store_id=${foreign}`)).toEqual([]);
  });
});

let api: TestApi;
const tokens = { owner: "", location: "", sibling: "", partner: "" };

let account: TestAccount;

let provider: TestProvider;

let site = 0;

let westSite = 0;

let id = 0;

let reviews = 0;

beforeAll(async () => {
  const [one] = tenants.partners;
  [account] = one.accounts;
  api = await startApi({ db: database.db });
  tokens.owner = await api.login(account.owner.email);
  tokens.location = await api.login(account.locationUser.email);
  tokens.sibling = await api.login(one.accounts[1].owner.email);
  tokens.partner = await api.login(one.owner.email);
  provider = await addProvider(database.db, api.deps.box);
  site = await connectStore(database.db, account, { provider });
  westSite = await connectStore(database.db, account, { provider, store: 1 });
});

afterAll(async () => {
  await api.stop();
});

beforeEach(async () => {
  id = await addReview(site);
});

async function addReview(siteId: number): Promise<number> {
  const external = `review-${++reviews}`;
  await report(api, provider, [created(siteId, external)]);
  return reviewIdOf(database.db, external);
}

const post = (action: string, body: unknown, token = tokens.owner, review = id): Promise<Answer> =>
  api.call("POST", `/account/reviews/${review}/${action}`, { token, body });

const assign = (user_id: unknown, token?: string, review?: number) =>
  post("assign", { user_id }, token, review);

const note = (body: unknown, token?: string, review?: number) =>
  post("notes", { body }, token, review);

const fieldsOf = ({ status, body }: Answer) => [status, Object.keys(body["errors"] ?? {})];

async function events(): Promise<[string, unknown][]> {
  const rows = await historyOfSite(database.db, site);
  return rows
    .filter((row) => row.reviewId === id && row.event !== "review_received")
    .map(({ event, metadata }) => [event, metadata]);
}
