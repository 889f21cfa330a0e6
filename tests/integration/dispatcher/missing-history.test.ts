// The body of an event is composed from its row of review_history. If the row is missing, nothing may be sent instead.
import { afterEach, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { systemClock } from "../../../src/lib/clock.ts";
import { silentLog, type RunningDispatcher } from "../../support/dispatch.ts";
import { forceHistory } from "../../support/history.ts";
import {
  forgetQueue,
  insertTenant,
  passQueue,
  record,
  reviewAction,
  type Tenant,
} from "../../support/outbox.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { disable, settle } from "../../support/webhooks.ts";
import { webhookDeliveries } from "../../support/deliveries.ts";
import { fixture } from "../../support/fixture.ts";

const { stores, world, ...given } = webhookDeliveries();
const receiver = fixture(() => Receiver.start());
const tenant: Tenant = fixture(async () => ({
  ...(await insertTenant(world.database.db, 2)),
  partnerId: world.tenants.partners[0].id,
}));

describe("an event whose history row is missing", () => {
  test("is neither sent nor settled, and blocks its subscription until the statement of the runbook skips it", async () => {
    const { id, a, b, c } = await queueThree();
    await deleteHistory(b);
    deliver();
    await until("the quarantine", () => quarantined.length > 0);
    expect(quarantined[0]).toMatchObject({ subscription_id: id, event_id: b, sequence: 2 });
    const lane = { subscription_id: id, reason: "history_missing", event_id: b, sequence: 2 };
    expect(dispatcher?.workload.quarantinedLanes).toMatchObject([lane]);
    // A wake must not make the actor send later entries.
    await stores.schedule.wake(await record(world.database.db, [reviewAction(tenant)]));
    await until("the first one's commit", async () => (await attempted(id)).length === 1);
    expect(receiver.eventIds).toEqual([a]);
    expect((await queued(id)).slice(0, 2)).toEqual([b, c]);
    await dispatcher?.stop();

    expect(SKIP).toContain("skipped_at");
    await world.database.db.sql.unsafe(SKIP.replace("00000000000000000000000000", id));
    const { body } = await world.ask("GET", `/${id}/deliveries/${b}`);
    expect(body).toMatchObject({ state: "skipped", attempts: [] });
    deliver();
    await until("the others", async () => (await queued(id)).length === 0);
    expect(receiver.eventIds.slice(0, 2)).toEqual([a, c]);
    expect(receiver.received.filter(({ headers }) => "x-svc-test" in headers)).toEqual([]);
    expect(await attempted(id)).not.toContain(b);
  });

  test("blocks only its review if the ordering is by review", async () => {
    const { id, a, b, c } = await queueThree({ ordering: "review" });
    await deleteHistory(b);
    deliver();
    await until("the quarantine", () => quarantined.length > 0);
    await until("the other review", async () => (await queued(id)).length === 2);
    expect(receiver.eventIds).toEqual([a]);
    expect(await queued(id)).toEqual([b, c]);
  });

  test.each(["subscription", "review"] as const)(
    "is neither passed nor lost if it was removed from the log: order by %s",
    async (ordering) => {
      const { id, a, b, c } = await queueThree({ ordering }, "log");
      const { sql } = world.database.db;
      await sql`create table removed as select * from review_history where event_id = ${b}`;
      await deleteHistory(b);
      deliver();
      await until("the quarantine", () => quarantined.length > 0);
      expect(quarantined[0]).toMatchObject({ subscription_id: id, sequence: 2 });
      await until("the first one's commit", async () => (await attempted(id)).length === 1);
      // Neither a wake nor a delay of the queue passes the removed event, although others are queued behind it.
      const later = reviewAction(tenant);
      await stores.schedule.wake(await record(world.database.db, [later]));
      await passQueue(world.database.db, id);
      await dispatcher?.stop();
      deliver();
      await until("the quarantine after a restart", () => quarantined.length > 1);
      expect(receiver.eventIds).toEqual([a]);
      await dispatcher?.stop();

      await sql`insert into review_history overriding system value select * from removed`;
      await sql`drop table removed`;
      deliver();
      await until("all", async () => (await queued(id)).length === 0);
      expect(receiver.eventIds.toSorted()).toEqual([a, b, c, later.eventId].toSorted());
      expect(receiver.eventIds.indexOf(b)).toBeLessThan(receiver.eventIds.indexOf(c));
    },
  );

  test("cannot be redelivered, neither as a test nor as another event", async () => {
    const { id, a, b } = await queueThree();
    await settle(world, id, "failed");
    // These columns make it an attempt record as the dispatcher writes it for an event that is no test.
    await world.database.db.sql`
      update delivery_attempts set payload_format = 1, host = 'a', signature = '', body_digest = ''
       where subscription_id = ${id}`;
    await deleteHistory(b);
    const redeliver = (eventId: string) =>
      world.ask("POST", `/${id}/deliveries/${eventId}/redeliver`);
    expect((await redeliver(b)).status).toBe(404);
    expect((await redeliver(a)).status).toBe(202);
    expect(await queued(id)).toEqual([a]);
  });
});

describe("a delete of history", () => {
  const remove = (eventId: string) =>
    world.database.db.sql`delete from review_history where event_id = ${eventId}`.then(
      ({ count }) => count,
      (error: unknown) => String(error),
    );

  test.each(["log", "rows"] as const)(
    "is rejected while an entry of the event is queued, and possible afterwards: %s",
    async (kind) => {
      const { id, a } = await queueThree({}, kind);
      expect(await remove(a)).toContain(`event ${a} is still queued`);
      await settle(world, id, "delivered");
      expect(await remove(a)).toBe(1);
    },
  );

  test.each(["log", "rows"] as const)("is possible once the event is skipped: %s", async (kind) => {
    const { id, a } = await queueThree({}, kind);
    await disable(world, id);
    expect(await remove(a)).toContain(`event ${a} is still queued`);
    await world.ask("POST", `/${id}/enable`, { body: { held: "skip" } });
    expect(await remove(a)).toBe(1);
  });

  test("is rejected while the event waits for a batch, and possible afterwards", async () => {
    const { id } = await world.subscribe({ delivery_kind: "batch", batch_interval_hours: 24 });
    const action = reviewAction(tenant);
    await record(world.database.db, [action]);
    await forgetQueue(world.database.db);
    expect(await remove(action.eventId)).toContain(`event ${action.eventId} is still queued`);
    await world.database.db.sql`delete from batch_entries where subscription_id = ${id}`;
    expect(await remove(action.eventId)).toBe(1);
  });
});

const RUNBOOK = readFileSync(join(import.meta.dir, "../../../docs/operations/runbook.md"), "utf8");

const [, SKIP = ""] =
  /^```sql run tests\/integration\/dispatcher\/missing-history.test.ts\n([\s\S]*?)^```$/m.exec(
    RUNBOOK,
  ) ?? [];

let dispatcher: RunningDispatcher | undefined;

let quarantined: unknown[] = [];

afterEach(() => {
  quarantined = [];
  receiver.received.length = 0;
});

function deliver(): void {
  const log = {
    ...silentLog,
    error(event: string, fields: Readonly<Record<string, unknown>> = {}) {
      if (event === "delivery.quarantined") quarantined.push(fields);
    },
  };
  dispatcher = given.dispatcher({ log });
}

/** Queues three events, one of the first review and two of the second; answers their ids. */
async function queueThree(
  fields: Readonly<Record<string, unknown>> = {},
  kind: "log" | "rows" = "rows",
) {
  world.clock.set(systemClock.now());
  const { id } = await world.subscribe({ webhook_url: receiver.url, ...fields });
  const [first = 0, second = 0] = tenant.reviewIds;
  const actions = [first, second, second].map((reviewId) => reviewAction(tenant, { reviewId }));
  await record(world.database.db, actions);
  if (kind === "rows") await passQueue(world.database.db, id);
  const [a = "", b = "", c = ""] = actions.map(({ eventId }) => eventId);
  return { id, a, b, c };
}

const deleteHistory = (eventId: string) =>
  forceHistory(
    world.database.db,
    (sql) => sql`delete from review_history where event_id = ${eventId}`,
  );

async function queued(id: string): Promise<string[]> {
  const rows = await world.database.db.sql<{ eventId: string }[]>`
    select event_id as "eventId" from queued_entries where subscription_id = ${id} order by sequence`;
  return rows.map(({ eventId }) => eventId);
}

async function attempted(id: string): Promise<string[]> {
  const rows = await world.database.db.sql<{ eventId: string }[]>`
    select event_id as "eventId" from delivery_attempts where subscription_id = ${id} order by id`;
  return rows.map(({ eventId }) => eventId);
}
