// An erasure reaches attempts that are under way and events that a dispatcher has read (contract 10.8).
import { afterEach, beforeEach, describe, expect, test } from "bun:test";

import { systemClock } from "../../../src/lib/clock.ts";
import { eraseChunk } from "../../../src/tenants/actions/erase.ts";
import { deletionChunk } from "../../../src/tenants/actions/delete-companies.ts";
import { createTestSchedule, startDispatcher } from "../../support/dispatch.ts";
import {
  created,
  providerEvent,
  report,
  reportedReview,
  reviewIdOf,
} from "../../support/factory.ts";
import { fixture } from "../../support/fixture.ts";
import { until } from "../../support/network/receiver.ts";
import { placesOf } from "../../support/texts.ts";
import { startWebhooks } from "../../support/webhooks.ts";

const NAME = "Ferrante Oblomov";
const EMAIL = "ferrante@oblomov.test";
const TEXT = "The soup of Ferrante Oblomov was cold";
/** The age at which a dispatcher reads settings again (`SETTINGS_MAX_AGE_MS`), and a margin. */
const READ_AGAIN_MS = 1_100;

const stores = fixture(createTestSchedule);
const world = fixture(() => startWebhooks({ schedule: stores.schedule }));
const started: { stop(): Promise<unknown> }[] = [];

beforeEach(() => world.clock.set(systemClock.now()));
afterEach(async () => {
  for (const one of started.splice(0)) await one.stop();
});

describe("the erasure of a reviewer while a POST is under way", () => {
  test.each([
    { ordering: "subscription", status: 200 },
    { ordering: "subscription", status: 500 },
    { ordering: "review", status: 200 },
    { ordering: "review", status: 410 },
  ])(
    "leaves no response, and sends the rest without the person: $ordering, $status",
    async (one) => {
      const name = `under-way-${one.ordering}-${one.status}`;
      const { reviewId, subscription, echo } = await fill(name, { ordering: one.ordering });
      await report(world.api, world.provider, [created(world.siteId, `${name}-other`)]);
      const events = await eventsOf(subscription);
      dispatch();
      await until("a POST is under way", () => echo.requests.length > 0);
      expect(echo.requests[0]?.body).toContain(NAME);

      await erase({ review_ids: [reviewId] });
      await Bun.sleep(READ_AGAIN_MS);
      echo.answer(one.status);
      await until(
        "all are recorded",
        async () => (await attemptsOf(subscription, 200)) >= events - 1,
      );
      expect(echo.requests.filter(({ body }) => body.includes(NAME))).toHaveLength(1);
      expect(await found()).toEqual([]);
      const attempts = await listed(subscription);
      const first = attempts.find(
        (row) => row["event_id"] === echo.requests[0]?.eventId && row["attempt"] === 1,
      );
      expect(first).toMatchObject({
        status_code: one.status,
        request_erased: true,
        request_body: null,
        request_digest: expect.stringMatching(/^[0-9a-f]{32}$/),
        response_headers: null,
        response_excerpt: null,
      });
      // The responses about others and those of later attempts are kept.
      for (const row of attempts.filter((each) => each !== first))
        expect(row).toMatchObject({ request_erased: false, response_excerpt: row["request_body"] });
    },
  );

  test("keeps the responses about other persons and of tests that are under way, too", async () => {
    const { reviewId, subscription, echo } = await fill("others", { ordering: "review" });
    await report(world.api, world.provider, [created(world.siteId, "others-2")]);
    const { body: sent } = await world.ask("POST", `/${subscription}/test`);
    dispatch();
    await until("three POSTs are under way", () => echo.requests.length === 3);
    await erase({ reviewer_email: EMAIL });
    echo.answer(200);
    await until("all are recorded", async () => (await attemptsOf(subscription, 200)) >= 5);
    const erased = new Set([await eventOf(reviewId)]);
    for (const { eventId, body } of echo.requests.slice(0, 3)) {
      const row = (await listed(subscription)).find((each) => each["event_id"] === eventId);
      expect(row).toMatchObject({ response_excerpt: erased.has(eventId) ? null : body });
    }
    expect(echo.requests.some(({ eventId }) => eventId === sent["event_id"])).toBe(true);
    expect(await found()).toEqual([]);
  });

  test("is the same where two erasures follow each other", async () => {
    const one = await fill("two-1", { ordering: "review" });
    await reportPerson("two-2");
    const second = await reviewIdOf(world.database.db, "two-2");
    dispatch();
    await until("two POSTs are under way", () => one.echo.requests.length === 2);
    await Promise.all([request({ review_ids: [one.reviewId] }), request({ review_ids: [second] })]);
    await Promise.all([allChunks(), allChunks()]);
    one.echo.answer(200);
    await until("all are recorded", async () => (await attemptsOf(one.subscription, 200)) >= 5);
    expect(await found()).toEqual([]);
  });
});

test("the erasure of a user removes the name from what is under way and from what was read", async () => {
  const { db } = world.database;
  const { body: user } = await world.api.call("POST", "/admin/users", {
    token: world.tokens.root,
    body: {
      company_id: world.tenants.partners[0].accounts[0].id,
      role: "account_user",
      email: EMAIL,
      name: NAME,
      password: "correct horse battery staple",
    },
  });
  const { body: session } = await world.api.call("POST", "/login", {
    body: { email: EMAIL, password: "correct horse battery staple" },
  });
  const { reviewId, subscription, echo } = await fill("of-user", { person: {} });
  for (let n = 0; n < 3; n++)
    await world.api.call("POST", `/account/reviews/${reviewId}/notes`, {
      token: String(session["token"]),
      body: { body: `Note ${n}` },
    });
  await db.sql`update outbox_offsets set settled_through = 4 where subscription_id = ${subscription}`;
  dispatch();
  await until("a POST is under way", () => echo.requests.length > 0);
  expect(echo.requests[0]?.body).toContain(NAME);
  await erase({ user_id: user["id"] });
  await Bun.sleep(READ_AGAIN_MS);
  echo.answer(200);
  await until("all are recorded", async () => (await attemptsOf(subscription, 200)) >= 3);
  expect(echo.requests.filter(({ body }) => body.includes(NAME))).toHaveLength(1);
  expect(await found()).toEqual([]);
});

test("the response of an attempt whose event is deleted with its account is not stored", async () => {
  const { db } = world.database;
  const { subscription, echo } = await fill("of-account", {});
  dispatch();
  await until("a POST is under way", () => echo.requests.length > 0);
  const account = world.tenants.partners[0].accounts[0];
  const token = world.tokens.root;
  const of = `/admin/accounts/${account.id}`;
  await world.api.call("POST", `${of}/deactivate`, { token, body: {} });
  const { body: shown } = await world.api.call("GET", of, { token });
  await world.api.call("POST", `${of}/deletion`, { token, body: { name: shown["name"] } });
  await db.sql`update company_deletions set due_at = now() - interval '1 second'`;
  const deps = { db, clock: systemClock, log: world.api.deps.log };
  while ((await deletionChunk(deps)).next !== undefined);
  expect(await world.database.db.sql`select from review_history`).toHaveLength(0);
  await Bun.sleep(READ_AGAIN_MS);
  echo.answer(200);
  await until("it is recorded", async () => (await attemptsOf(subscription, 200)) >= 1);
  expect(await found()).toEqual([]);
  expect(echo.requests).toHaveLength(1);
});

/** Subscribes a receiver that echoes when it is told to, and reports a review of the person with four events. */
async function fill(
  name: string,
  { person = PERSON, ...fields }: { person?: Readonly<Record<string, unknown>>; ordering?: string },
) {
  const echo = new Echo();
  started.push(echo);
  const { id } = await world.subscribe({ webhook_url: echo.url, ...fields });
  await reportPerson(name, person);
  return { reviewId: await reviewIdOf(world.database.db, name), subscription: id, echo };
}

const PERSON = { reviewer: NAME, reviewer_email: EMAIL, content: TEXT };

async function reportPerson(
  name: string,
  person: Readonly<Record<string, unknown>> = PERSON,
): Promise<void> {
  const { api, provider, siteId } = world;
  await report(api, provider, [created(siteId, name, person)]);
  for (const rate of [1, 2, 3])
    await report(api, provider, [
      providerEvent("review.updated", siteId, {
        review: reportedReview(name, { ...person, rate }),
      }),
    ]);
}

interface Held {
  readonly eventId: string;
  readonly body: string;
}

/** A receiver that answers with the body that it got, in a header too, once it is told the status. */
class Echo {
  readonly requests: Held[] = [];
  readonly #status = Promise.withResolvers<number>();
  readonly #server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (call) => {
      const body = await call.text();
      this.requests.push({ eventId: call.headers.get("x-svc-delivery") ?? "", body });
      const first = this.requests.length === 1;
      const status = await this.#status.promise;
      const headers = { "x-echo": body.includes(NAME) ? NAME : "nobody" };
      return new Response(body, { status: first ? status : 200, headers });
    },
  });

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}/hook`;
  }

  /** Answers the first request with this status, and all others with 200. */
  answer(status: number): void {
    this.#status.resolve(status);
  }

  stop(): Promise<void> {
    this.#status.resolve(200);
    return this.#server.stop(true);
  }
}

function dispatch(): void {
  const { db } = world.database;
  const { box } = world.api.deps;
  started.unshift(startDispatcher({ db, box, schedule: stores.schedule }));
}

const request = (body: Readonly<Record<string, unknown>>) =>
  world.api.call("POST", "/admin/erasures", { token: world.tokens.root, body });

async function erase(body: Readonly<Record<string, unknown>>): Promise<void> {
  const { status } = await request(body);
  expect(status).toBe(202);
  await allChunks();
}

async function allChunks(): Promise<void> {
  const { box, log } = world.api.deps;
  const deps = { db: world.database.db, box, clock: world.clock, log };
  while ((await eraseChunk(deps)).next !== undefined);
}

const found = () =>
  placesOf(world.database.db, world.api.deps.box, [NAME.toLowerCase(), EMAIL, "oblomov"]);

async function eventsOf(subscription: string): Promise<number> {
  const rows = await world.database.db.sql`
    select from queued_entries where subscription_id = ${subscription}`;
  return rows.length;
}

async function eventOf(reviewId: number): Promise<string> {
  const [row] = await world.database.db.sql<{ eventId: string }[]>`
    select event_id as "eventId" from review_history where review_id = ${reviewId} order by id limit 1`;
  return row?.eventId ?? "";
}

async function attemptsOf(subscription: string, status: number): Promise<number> {
  const rows = await world.database.db.sql`
    select from delivery_attempts where subscription_id = ${subscription} and status_code = ${status}`;
  return rows.length;
}

async function listed(subscription: string): Promise<Record<string, unknown>[]> {
  const { body } = await world.ask("GET", `/${subscription}/deliveries?limit=100`);
  return body["data"] as Record<string, unknown>[];
}
