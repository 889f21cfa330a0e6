import { beforeEach, expect, test } from "bun:test";

import { detectIncidents } from "../../support/alerts.ts";
import { deliveries } from "../../support/deliveries.ts";
import { silentLog } from "../../support/dispatch.ts";
import { until } from "../../support/network/receiver.ts";

const { database, box, receiver, emit, ...given } = deliveries();

test("20 consecutive failures disable a subscription exactly once, while its shard moves between two dispatchers", async () => {
  const gone = await failing();
  const all = await Promise.all(Array.from({ length: SUBSCRIPTIONS }, () => subscribed(gone.url)));
  const first = dispatcher();
  await Promise.all(all.map((one) => emit(one, 22)));
  // The second dispatcher first takes half of the shards, and the others when the first one stops.
  dispatcher();
  await until("some failures", () => gone.received.length > SUBSCRIPTIONS * 5);
  await first.stop();
  const ids = all.map(({ id }) => id);
  const disabled = async () =>
    (
      await database.db
        .sql`select from webhook_subscriptions where id = any(${ids}::text[]) and state = 'disabled'`
    ).length;
  await until("all disabled", async () => (await disabled()) === SUBSCRIPTIONS);
  for (const id of ids)
    expect(await stateOf(id)).toMatchObject({ state: "disabled", failures: 20, recorded: 20 });
  await until("all reported", () => reported.length >= SUBSCRIPTIONS);
  expect(reported.toSorted()).toEqual(ids.toSorted());
  await detectIncidents({ db: database.db, box });
  const mails = await database.db.sql`select from mails where kind = 'webhook_alert'`;
  // Each partner has one owner, so there is one mail per subscription.
  expect(mails).toHaveLength(SUBSCRIPTIONS);
});

test("failures of many reviews at a time disable a subscription with exactly 20 events given up", async () => {
  const { url } = await failing();
  for (const failures of [0, 11, 19]) {
    const one = await subscribed(url, { failures, ordering: "review", reviews: REVIEWS });
    const { id, tenant } = one;
    const running = dispatcher();
    await emit(one, REVIEWS, tenant.reviewIds);
    await until("disabled", async () => (await stateOf(id))?.state === "disabled");
    // Deliveries that are under way end, and are recorded before the dispatcher stops.
    await running.stop();
    expect(await stateOf(id)).toEqual({
      state: "disabled",
      failures: 20,
      recorded: 20 - failures,
    });
  }
});

const ANSWER_MS = 40;

const SUBSCRIPTIONS = 32;

const REVIEWS = 60;

/** The subscriptions that the logs of all dispatchers report as disabled. */
let reported: unknown[] = [];

beforeEach(() => void (reported = []));

/** Starts a receiver that answers 410, so late that shards change hands during attempts. */
const failing = () =>
  receiver(async () => {
    await Bun.sleep(ANSWER_MS);
    return 410;
  });

function dispatcher() {
  const log = {
    ...silentLog,
    warn(event: string, fields: Readonly<Record<string, unknown>> = {}) {
      if (event === "subscription.disabled") reported.push(fields["subscription_id"]);
    },
  };
  return given.dispatcher({ db: database.connect(), log });
}

/** Adds a subscription of a partner with one owner. */
async function subscribed(url: string, options?: Parameters<typeof given.subscribe>[1]) {
  const one = await given.subscribe(url, options);
  const { partnerId } = one.tenant;
  await database.db.sql`
    insert into users (company_id, email, name, role, is_active, created_at, updated_at)
    values (${partnerId}, ${`${partnerId}@partner.example`}, 'Owner', 'partner_owner', true, now(), now())`;
  return one;
}

async function stateOf(id: string) {
  const [row] = await database.db.sql<{ state: string; failures: number; recorded: number }[]>`
    select state, consecutive_failure_count as failures,
           (select count(*)::int from delivery_attempts a where a.subscription_id = w.id and outcome = 'failed') as recorded
      from webhook_subscriptions w where id = ${id}`;
  return row;
}
