// Every lane that stands still for a reason on our side is named by health and by the state of the dispatchers (contract
// 6.17 and 10.4).
import { afterEach, describe, expect, test } from "bun:test";

import { createSecretBox } from "../../../src/lib/secrets.ts";
import { fixture } from "../../support/fixture.ts";
import { forceHistory } from "../../support/history.ts";
import { holding } from "../../support/holding.ts";
import { until } from "../../support/network/receiver.ts";
import {
  insertTenant,
  passQueue,
  record,
  reviewAction,
  type Tenant,
} from "../../support/outbox.ts";
import { webhookDeliveries } from "../../support/deliveries.ts";

const { world, ...given } = webhookDeliveries();
const tenant: Tenant = fixture(async () => ({
  ...(await insertTenant(world.database.db, 2)),
  partnerId: world.tenants.partners[0].id,
}));

const releases: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const release of releases.splice(0)) await release();
});

describe("a lane", () => {
  test.each(CASES)(
    "is named while it stands still: $reason $ordering",
    async ({ reason, ordering = "subscription", namesEvent, breaks }) => {
      const { url } = await given.receiver();
      const { id } = await world.subscribe({ webhook_url: url, ordering });
      const other = await world.subscribe({ delivery_kind: "batch", batch_interval_hours: 24 });
      await raw(`update webhook_subscriptions set shard = one.shard from webhook_subscriptions one
                  where one.id = '${id}' and webhook_subscriptions.id = '${other.id}'`);
      const actions = tenant.reviewIds.map((reviewId) => reviewAction(tenant, { reviewId }));
      await record(world.database.db, actions);
      await passQueue(world.database.db, id);
      const eventId = actions[1]?.eventId ?? "";
      const repair = await breaks(id, eventId);
      const dispatcher = given.dispatcher({ db: world.database.connect() });
      await until("the lane", async () => (await health(id)).quarantined.length > 0);
      const { condition, quarantined } = await health(id);
      const isByReview = ordering === "review";
      const lane = {
        reason,
        review_id: isByReview ? tenant.reviewIds[1] : null,
        since: expect.any(String),
        ...(reason !== "locked" && {
          event_id: namesEvent ? eventId : null,
          sequence: namesEvent ? 2 : null,
        }),
      };
      expect([condition, quarantined]).toEqual(["degraded", [expect.objectContaining(lane)]]);
      expect((await health(other.id)).quarantined).toEqual([]);
      const state = await world.api.call("GET", "/admin/dispatcher", { token: world.tokens.root });
      expect(state.body["quarantined_lanes"]).toEqual([
        expect.objectContaining({
          ...lane,
          subscription_id: id,
          dispatcher_id: expect.any(String),
        }),
      ]);
      expect(dispatcher.workload.quarantinedLanes).toMatchObject([{ reason, subscription_id: id }]);

      await repair();
      await dispatcher.stop();
      given.dispatcher({ db: world.database.connect() });
      const outcomes = async () =>
        (
          await world.database.db.sql<{ outcome: string }[]>`
            select outcome from delivery_attempts where subscription_id = ${id}`
        ).map(({ outcome }) => outcome);
      await until("both are recorded", async () => (await outcomes()).length === 2);
      // No failure of our own is an attempt.
      expect(await outcomes()).toEqual(["delivered", "delivered"]);
      await until("health", async () => (await health(id)).quarantined.length === 0);
      expect((await health(id)).condition).toBe("healthy");
    },
    60_000,
  );
});

const raw = (text: string) => world.database.db.sql.unsafe(text);
const otherBox = createSecretBox({ current: new Uint8Array(32).fill(7) });

interface Case {
  readonly reason: string;
  readonly ordering?: "review";
  readonly namesEvent: boolean;
  /** Breaks something of the subscription and its second event; the returned function repairs it. */
  readonly breaks: (id: string, eventId: string) => Promise<() => Promise<unknown>>;
}

const CASES: readonly Case[] = [
  { reason: "history_missing", namesEvent: true, breaks: (_, eventId) => withoutHistory(eventId) },
  {
    reason: "history_missing",
    ordering: "review",
    namesEvent: true,
    breaks: (_, eventId) => withoutHistory(eventId),
  },
  {
    reason: "unreadable",
    namesEvent: false,
    // PostgreSQL cannot convert this instant to a bigint, so that the load fails.
    async breaks(_, eventId) {
      const occurred = (at: string) =>
        forceHistory(
          world.database.db,
          (tx) =>
            tx`update review_history set occurred_at = ${at}::text::timestamptz where event_id = ${eventId}`,
        );
      await occurred("infinity");
      return () => occurred("2026-06-01T12:00:00Z");
    },
  },
  {
    reason: "unrecordable",
    namesEvent: true,
    async breaks(id) {
      await raw(`alter table delivery_attempts add constraint refused
                   check (subscription_id <> '${id}' or sequence <> 2) not valid`);
      return () => raw("alter table delivery_attempts drop constraint refused");
    },
  },
  {
    reason: "secret_unreadable",
    namesEvent: false,
    async breaks(id) {
      const [row] = await world.database.db.sql<{ sealed: string }[]>`
        select sealed_secret as sealed from webhook_subscriptions where id = ${id}`;
      await world.database.db.sql`
        update webhook_subscriptions set sealed_secret = ${otherBox.seal("s", id)} where id = ${id}`;
      return async () =>
        world.database.db.sql`
          update webhook_subscriptions set sealed_secret = ${row?.sealed ?? ""} where id = ${id}`;
    },
  },
  {
    reason: "secret_unreadable",
    namesEvent: false,
    async breaks(id) {
      const { sql } = world.database.db;
      await sql`
        update webhook_subscriptions set header_names = '{X-Key}', sealed_headers = ${otherBox.seal("{}", id)}
         where id = ${id}`;
      return async () =>
        sql`update webhook_subscriptions set header_names = '{}', sealed_headers = null where id = ${id}`;
    },
  },
  { reason: "locked", namesEvent: true, breaks: (id) => lockOffset(id) },
];

async function health(id: string) {
  const { body } = await world.ask("GET", `/${id}/health`);
  return body as { condition: string; quarantined: object[] };
}

async function withoutHistory(eventId: string) {
  const { sql } = world.database.db;
  await sql`create table kept as select * from review_history where event_id = ${eventId}`;
  await forceHistory(
    world.database.db,
    (tx) => tx`delete from review_history where event_id = ${eventId}`,
  );
  return async () => {
    await sql`insert into review_history overriding system value select * from kept`;
    await sql`drop table kept`;
  };
}

async function lockOffset(id: string) {
  const release = await holding(world.database.connect(), async ({ sql }) => {
    await sql`set local idle_in_transaction_session_timeout = 0`;
    await sql`select from outbox_offsets where subscription_id = ${id} for update`;
  });
  releases.push(release);
  return release;
}
