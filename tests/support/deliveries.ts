import { afterEach } from "bun:test";

import { systemClock } from "../../src/lib/clock.ts";
import { createTestBox, createTestSchedule, startDispatcher } from "./dispatch.ts";
import { fixture } from "./fixture.ts";
import { Receiver } from "./network/receiver.ts";
import {
  insertSubscription,
  insertTenant,
  record,
  reviewAction,
  type SubscriptionOptions,
  type Tenant,
  type TestSubscription,
} from "./outbox.ts";
import { createDatabase } from "./postgres.ts";
import { startWebhooks } from "./webhooks.ts";

/** A partner with one subscription. */
export interface Subscribed extends TestSubscription {
  readonly id: string;
  readonly tenant: Tenant;
}

export interface RecordedAttempt {
  readonly event_id: string;
  readonly attempt: number;
  readonly outcome: string;
  readonly status_code: number | null;
  readonly error_code: string | null;
  readonly response_headers: Record<string, string> | null;
  readonly response_excerpt: string | null;
  readonly response_truncated: boolean;
  readonly resent: boolean;
}

type DispatcherOptions = Parameters<typeof startDispatcher>[0];

/** Starts dispatchers and receivers that end after each test, the last one first. */
function starting(stores: () => Pick<DispatcherOptions, "db" | "box" | "schedule">) {
  const started: { stop(): unknown }[] = [];
  afterEach(async () => {
    for (const one of started.splice(0).toReversed()) await one.stop();
  });
  const ending = <T extends { stop(): unknown }>(one: T): T => {
    started.push(one);
    return one;
  };
  return {
    /** Ends something after the test. */
    ending,
    dispatcher: (own: Partial<DispatcherOptions> = {}) =>
      ending(startDispatcher({ ...stores(), ...own })),
    receiver: async (answer?: Receiver["answer"]) => ending(await Receiver.start(answer)),
  };
}

/**
 * Gives a test file the API of `startWebhooks` with a schedule that dispatchers hear. The start of a dispatcher sets the
 * clock of the API, which stands still, to the present time.
 */
export function webhookDeliveries(options: Parameters<typeof startWebhooks>[0] = {}) {
  const stores = fixture(createTestSchedule);
  const world = fixture(() => startWebhooks({ ...options, schedule: stores.schedule }));
  const running = starting(() => {
    world.clock.set(systemClock.now());
    return { db: world.database.db, box: world.api.deps.box, schedule: stores.schedule };
  });
  return { stores, world, ...running };
}

/** Gives a test file a database and a schedule, without the API. */
export function deliveries() {
  const database = fixture(createDatabase);
  const stores = fixture(createTestSchedule);
  const box = createTestBox();
  return {
    database,
    stores,
    box,
    ...starting(() => ({ db: database.db, box, schedule: stores.schedule })),
    async subscribe(
      url: string,
      options: Partial<SubscriptionOptions> & { reviews?: number } = {},
    ): Promise<Subscribed> {
      const tenant = await insertTenant(database.db, options.reviews);
      const { partnerId } = tenant;
      const deps = { db: database.db, box };
      const made = await insertSubscription(deps, { partnerId, url, ...options });
      return { ...made, id: made.subscriptionId, tenant };
    },
    /**
     * Records `count` events in one transaction, of these reviews in turn, and wakes the dispatchers. Returns the event
     * ids.
     */
    async emit(
      { tenant }: Pick<Subscribed, "tenant">,
      count = 1,
      reviews: readonly number[] = tenant.reviewIds.slice(0, 1),
    ): Promise<string[]> {
      const actions = Array.from({ length: count }, (_, i) =>
        reviewAction(tenant, { reviewId: reviews[i % reviews.length] ?? 0 }),
      );
      await stores.schedule.wake(await record(database.db, actions));
      return actions.map(({ eventId }) => eventId);
    },
    attemptsOf: (id: string): PromiseLike<RecordedAttempt[]> => database.db.sql<RecordedAttempt[]>`
      select event_id, attempt, outcome, status_code, error_code, response_headers, response_excerpt,
             response_truncated, resent
        from delivery_attempts where subscription_id = ${id} order by id`,
    /** Reads the state of a subscription, its failures in a row, and the number of its queued entries. */
    async stateOf(id: string) {
      const [row] = await database.db.sql<{ state: string; failures: number; queued: number }[]>`
        select state, consecutive_failure_count as failures,
               (select count(*)::int from queued_entries where subscription_id = ${id}) as queued
          from webhook_subscriptions where id = ${id}`;
      if (row === undefined) throw new Error(`There is no subscription ${id}.`);
      return row;
    },
  };
}
