// Suspended partners and inactive accounts receive no webhooks (contract 10.1); the whole dispatcher runs beside the API.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";

import { systemClock } from "../../../src/lib/clock.ts";
import { createTestSchedule, startDispatcher } from "../../support/dispatch.ts";
import { connectStore, created, queuedFor, report } from "../../support/factory.ts";
import { fixture } from "../../support/fixture.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { queueCopies } from "../../support/outbox.ts";
import { startWebhooks } from "../../support/webhooks.ts";

const stores = fixture(createTestSchedule);
const world = fixture(() =>
  startWebhooks({ schedule: stores.schedule, config: { batchHourMs: HOUR_MS } }),
);

describe("a partner that is suspended", () => {
  test("in the middle of a backlog gets no further POST, and the POST under way is recorded", async () => {
    const id = await subscribe();
    const answer = Promise.withResolvers<number>();
    receiver.answer = () => answer.promise;
    const eventIds = await world.emit(5);
    await until("the first POST", () => receiver.received.length === 1);
    const suspended = await change("partners", "deactivate");
    expect([suspended.status, suspended.body["is_active"]]).toEqual([200, false]);
    // From then on no POST may start, also if the wake is lost.
    await Bun.sleep(1_100);
    answer.resolve(200);
    await until("its record", async () => (await attempts(id)) === 1);
    await Bun.sleep(300);
    expect([receiver.received.length, await attempts(id)]).toEqual([1, 1]);
    expect(await shown(id)).toMatchObject({
      is_active: false,
      disabled_reason: "suspended",
      disabled_note: null,
    });
    expect(await states(id, eventIds)).toEqual(["delivered", "held", "held", "held", "held"]);
    const late = await world.emit(1);

    await change("partners", "activate");
    await until("the others", () => receiver.received.length === 6);
    expect(receiver.eventIds).toEqual([...eventIds, ...late]);
    expect(await shown(id)).toMatchObject({ is_active: true, disabled_reason: null });
  });

  test("and activated with held: skip gets only later events", async () => {
    const id = await subscribe();
    await change("partners", "deactivate");
    const eventIds = await world.emit(3);
    await change("partners", "activate", { held: "skip" });
    const [last = ""] = await world.emit(1);
    await until("the later one", () => receiver.received.length > 0);
    expect(receiver.eventIds).toEqual([last]);
    expect(await states(id, eventIds)).toEqual(["skipped", "skipped", "skipped"]);
  });

  test("keeps a subscription disabled that its partner or an operator had disabled", async () => {
    const id = await subscribe();
    await world.ask("POST", `/${id}/disable`);
    await change("partners", "deactivate");
    await change("partners", "activate");
    expect(await shown(id)).toMatchObject({ is_active: false, disabled_reason: "manual" });
  });

  test("has no subscription that an operator can enable, and none that is created at the same moment", async () => {
    const id = await subscribe();
    const partner = world.tenants.partners[0].id;
    await change("partners", "deactivate");
    const { status, body } = await asRoot(
      "POST",
      `/admin/partners/${partner}/webhooks/${id}/enable`,
    );
    expect([status, body["code"]]).toEqual([409, "company_inactive"]);
    await change("partners", "activate");

    await world.ask("DELETE", `/${id}`);
    const wanted = { label: "x", webhook_url: receiver.url, delivery_kind: "immediate" };
    for (let i = 0; i < 10; i++) {
      const [made] = await Promise.all([
        world.ask("POST", "", { body: wanted }),
        change("partners", "deactivate"),
      ]);
      const active = await world.database.db.sql`
        select id from webhook_subscriptions where partner_id = ${partner} and state = 'active'`;
      expect([made.status, active.length]).toEqual([made.status, 0]);
      await change("partners", "activate");
      await signIn();
      await unsubscribe();
    }
  });
});

describe("an account that is deactivated", () => {
  test.each(["subscription", "review"])(
    "in the middle of a backlog by %s holds its events, and those of others go on",
    async (ordering) => {
      const id = await subscribe({ ordering });
      const answer = Promise.withResolvers<number>();
      receiver.answer = () => (receiver.received.length === 1 ? answer.promise : 200);
      const first = await world.emit(1);
      await until("the first POST", () => receiver.received.length === 1);
      // By review all of them would be under way.
      const own = ordering === "review" ? [] : await world.emit(3);
      const others = await emitOther(2);
      await change("accounts", "deactivate");
      const late = await world.emit(4 - own.length);
      // From then on no POST may start, also if the wake is lost.
      await Bun.sleep(1_100);
      answer.resolve(200);
      await until("those of the other account", async () =>
        (await states(id, others)).every((state) => state === "delivered"),
      );
      await until("the holds", async () => (await queued(id)) === 0);
      expect(receiver.eventIds.filter((one) => !others.includes(one))).toEqual(first);
      const held = [...own, ...late];
      expect(await states(id, held)).toEqual(["held", "held", "held", "held"]);
      expect(await listed(id, "held")).toEqual(held.toReversed());
      expect(await listed(id, "skipped")).toEqual([]);
      const since = new Date(Date.now() - 3_600_000).toISOString();
      const recovered = await world.ask("POST", `/${id}/recover`, { body: { since } });
      expect(recovered.body).toEqual({ queued: 0 });

      await change("accounts", "activate");
      await until("the held ones", () => receiver.received.length === 7);
      expect(receiver.eventIds.slice(3)).toEqual(held);
    },
  );

  test("and activated with held: skip gets only later events, also of a queue that nobody has read", async () => {
    const id = await subscribe();
    const answer = Promise.withResolvers<number>();
    receiver.answer = () => answer.promise;
    const first = await world.emit(1);
    await until("the first POST", () => receiver.received.length === 1);
    await change("accounts", "deactivate");
    const skipped = await world.emit(2);
    await change("accounts", "activate", { held: "skip" });
    const later = await world.emit(1);
    answer.resolve(200);
    await until("the later one", () => receiver.received.length === 2);
    expect(receiver.eventIds).toEqual([...first, ...later]);
    await until("it to be recorded", async () => (await queued(id)) === 0);
    expect(receiver.received).toHaveLength(2);
    expect(await attempts(id)).toBe(2);
    expect(await states(id, skipped)).toEqual(["skipped", "skipped"]);
  });

  test.each([
    ["deliver", 2_502],
    ["skip", 1],
  ])(
    "and activated with held: %s after more events than one statement searches",
    async (held, received) => {
      const id = await subscribe();
      await change("accounts", "deactivate");
      await world.emit(1);
      await queueCopies(world.database.db, id, 2_500);
      await until("the holds", async () => (await queued(id)) === 0);
      await change("accounts", "activate", { held });
      const later = await world.emit(1);
      await until("all of them", () => receiver.received.length === received);
      expect(receiver.eventIds.at(-1)).toBe(later[0]);
      expect(await listed(id, "held")).toEqual([]);
    },
  );

  test("holds the events of its next batch", async () => {
    const id = await subscribe({ delivery_kind: "batch", batch_interval_hours: 1 });
    await change("accounts", "deactivate");
    const own = await world.emit(2);
    const others = await emitOther(1);
    await until("the other account's", () => receiver.received.length > 0);
    expect(receiver.eventIds).toEqual(others);
    await until("the holds", async () => (await queued(id)) === 0);
    await change("accounts", "activate");
    await until("the held ones", () => receiver.received.length === 3);
    expect(receiver.eventIds.slice(1)).toEqual(own);
  });

  test("is activated at the moment at which its events are held, and none stays held", async () => {
    const id = await subscribe();
    let expected: string[] = [];
    for (let i = 0; i < 8; i++) {
      await change("accounts", "deactivate");
      const events = world.emit(4);
      await Bun.sleep(i * 7);
      await change("accounts", "activate");
      expected = [...expected, ...(await events)];
    }
    await until("all of them", () => receiver.received.length === expected.length);
    expect(receiver.eventIds.toSorted()).toEqual(expected.toSorted());
    expect(await listed(id, "held")).toEqual([]);
  });
});

test("an activation takes deliver or skip", async () => {
  const { status, body } = await change("partners", "activate", { held: "drop" });
  expect([status, Object.keys(body["errors"] as object)]).toEqual([422, ["held"]]);
  expect((await change("partners", "activate")).status).toBe(200);
});

const HOUR_MS = 500;

let receiver: Receiver;
let otherSite = 0;
let others = 0;
const started: { stop(): Promise<void> }[] = [];

beforeEach(async () => {
  const [partner] = world.tenants.partners;
  if (otherSite === 0)
    otherSite = await connectStore(world.database.db, partner.accounts[1], {
      provider: world.provider,
    });
  receiver = await Receiver.start();
  const { db } = world.database;
  const { box } = world.api.deps;
  const { schedule } = stores;
  started.push(startDispatcher({ db, box, schedule, batchHourMs: HOUR_MS }), receiver);
  world.clock.set(systemClock.now());
});

afterEach(async () => {
  for (const kind of ["partners", "accounts"] as const) await change(kind, "activate");
  for (const one of started.splice(0)) await one.stop();
});

/** Signs the owner in again, because a suspension ends all tokens, and creates a subscription. */
async function subscribe(fields: Readonly<Record<string, unknown>> = {}): Promise<string> {
  await signIn();
  await unsubscribe();
  return (await world.subscribe({ webhook_url: receiver.url, ...fields })).id;
}

async function unsubscribe(): Promise<void> {
  const path = `/admin/partners/${world.tenants.partners[0].id}/webhooks`;
  const { body } = await asRoot("GET", path);
  for (const { id } of body["data"] as { id: string }[])
    await asRoot("DELETE", `${path}/${id}?reason=done`);
}

async function signIn(): Promise<void> {
  const [partner] = world.tenants.partners;
  Object.assign(world.tokens, { owner: await world.api.login(partner.owner.email) });
}

const asRoot = (method: string, path: string, body?: object) =>
  world.api.call(method, path, { token: world.tokens.root, body });

function change(kind: "partners" | "accounts", verb: "activate" | "deactivate", body?: object) {
  const [partner] = world.tenants.partners;
  const { id } = kind === "partners" ? partner : partner.accounts[0];
  return asRoot("POST", `/admin/${kind}/${id}/${verb}`, body);
}

/** Reports reviews of the partner's other account; answers their event ids. */
async function emitOther(count: number): Promise<string[]> {
  const before = await newest();
  for (let i = 0; i < count; i++)
    await report(world.api, world.provider, [created(otherSite, `other-${++others}`)]);
  const rows = await world.database.db.sql<{ eventId: string }[]>`
    select event_id as "eventId" from review_history
     where id > ${before} and store_review_site_id = ${otherSite} order by id`;
  return rows.map((row) => row.eventId);
}

async function newest(): Promise<number> {
  const [row] = await world.database.db.sql<{ id: number | null }[]>`
    select max(id) as id from review_history`;
  return row?.id ?? 0;
}

const below = (id: string) => `/admin/partners/${world.tenants.partners[0].id}/webhooks/${id}`;

const shown = async (id: string) => (await asRoot("GET", below(id))).body;

const states = (id: string, eventIds: readonly string[]) =>
  Promise.all(
    eventIds.map(
      async (one) => (await asRoot("GET", `${below(id)}/deliveries/${one}`)).body["state"],
    ),
  );

async function listed(id: string, state: string): Promise<string[]> {
  const { body } = await asRoot("GET", `${below(id)}/messages?state=${state}`);
  return (body["data"] as { event_id: string }[]).map((one) => one.event_id);
}

const queued = async (id: string) => (await queuedFor(world.database.db, id)).length;

async function attempts(id: string): Promise<number> {
  const { db } = world.database;
  return (await db.sql`select from delivery_attempts where subscription_id = ${id}`).length;
}
