// The portal's reads, with a limit for the blocks that each may read.
import type { Db } from "../../../db/client.ts";
import { isAttemptOfAny } from "../../../db/conditions.ts";
import { ulidFloor } from "../../../db/partitions.ts";
import { deliveryAttempts } from "../../../db/schema/attempts.ts";
import { listBacklogs } from "../../../src/tenants/queries/dispatcher.ts";
import { companiesOf } from "../../../src/tenants/queries/companies.ts";
import {
  latestRefusals,
  latestReviews,
  linksOfStores,
} from "../../../src/tenants/queries/stores.ts";
import type { BacklogOrder } from "../../../src/tenants/dispatcher-model.ts";
import { addMs, systemClock } from "../../../src/lib/clock.ts";
import { findTrouble, seeSubscriptions } from "../../../dispatcher/alerts/queries.ts";
import { partnerHistory } from "../../../src/reviews/queries.ts";
import { historyOf, partnerReviewsOf } from "../../../src/reviews/queries.ts";
import { showHealth, showIncident, showStats } from "../../../src/webhooks/actions/stats.ts";
import { createDeliveryList } from "../../../src/webhooks/actions/list-deliveries.ts";
import type { AttemptFilter } from "../../../src/webhooks/delivery-model.ts";
import {
  type DeliveryFilter,
  WAITING_FOR_BATCH,
} from "../../../src/webhooks/delivery-list-model.ts";
import {
  attemptsOf,
  attemptsOfEvent,
  firstOfFailures,
} from "../../../src/webhooks/queries/attempts.ts";
import { deliveryOf, eventsOfNumbers } from "../../../src/webhooks/queries/events.ts";
import { stillMissing, undelivered } from "../../../src/webhooks/queries/missed.ts";
import {
  listSubscriptions,
  subscriptionById,
} from "../../../src/webhooks/queries/subscriptions.ts";
import { failuresWithin, incidentsOf } from "../../../src/webhooks/queries/incidents.ts";
import { pollStreams } from "../../../src/webhooks/queries/watch.ts";
import { bucketFloor, READ_BY_EVENT, READ_PER_SLICE, SLICES } from "../../../src/webhooks/stats.ts";
import {
  BUSY_MS,
  eventId,
  HOT,
  HOT_BATCH,
  hotPerDay,
  NEIGHBOUR,
  other,
  PLANS,
  type PlanSizes,
} from "./data.ts";

export interface PlanCase {
  readonly name: string;
  /** The maximum of blocks, independent of the number of rows. */
  readonly bound: number;
  readonly run: (db: Db) => Promise<unknown>;
}

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

const UNFILTERED: AttemptFilter = {
  event: undefined,
  eventId: undefined,
  outcome: undefined,
  since: undefined,
  until: undefined,
};

async function hotSubscription(db: Db) {
  const found = await subscriptionById(db, HOT.partnerId, HOT.id);
  if (found === undefined) throw new Error("The subscription is gone.");
  return found;
}

export function readCases(sizes: PlanSizes): PlanCase[] {
  const page = { limit: 50, after: undefined };
  const since = new Date(Date.now() - DAY_MS);
  // A page with the history of each of its attempts.
  const LISTED = 700;
  // Today's partition has no index by event, so the subscription's attempts of today are scanned.
  const walked = LISTED + 2 * hotPerDay(sizes);
  const list = (name: string, filter: Partial<AttemptFilter>, bound = LISTED): PlanCase => ({
    name: `attempts, ${name}`,
    bound,
    run: (db) => attemptsOf(db, HOT.id, { ...UNFILTERED, ...filter }, page),
  });
  return [
    list("all", {}),
    list("of an event value", { event: "review_removed" }, walked),
    list("of none", { event: "note_added" }, walked),
    list("of an event", { eventId: eventId(7) }),
    list("failed", { outcome: "failed" }),
    list("retried", { outcome: "retry" }),
    list("retried, since yesterday", { outcome: "retry", since }),
    list("retried, until an hour ago", { outcome: "retry", until: addMs(new Date(), -HOUR_MS) }),
    {
      name: "one delivery",
      // Most blocks are read by the planner, which looks up the extreme values of each day's index.
      bound: 900,
      run: async (db) => {
        await deliveryOf(db, HOT.id, eventId(7));
        await attemptsOfEvent(db, HOT.id, eventId(7), 100);
      },
    },
    {
      name: "undelivered events of a window",
      // A range of the history, and everything about a hundred of its events.
      bound: 40_000,
      run: async (db) => {
        const window = {
          since,
          until: new Date(),
          settledSince: since,
          events: ["review_received"],
        };
        await undelivered(db, HOT, { ...window, limit: 100 });
        const ids = Array.from({ length: 100 }, (_, n) => n + 1);
        await stillMissing(db, HOT.id, ids, since);
      },
    },
    {
      name: "the first of 20 failures",
      bound: LISTED,
      run: (db) => firstOfFailures(db, HOT.id, 20),
    },
    { name: "subscriptions", bound: 20, run: (db) => listSubscriptions(db, HOT.partnerId, page) },
    backlogs("depth", sizes),
    backlogs("age", sizes),
    ...deliveries(),
    ...ofPartner(),
    ...figures(),
  ];
}

/** The operators' list: the ends and first numbers of each queue, and the last attempts of the page. */
function backlogs(order: BacklogOrder, { others }: PlanSizes): PlanCase {
  return {
    name: `backlogs by ${order}`,
    bound: 9_000 + 40 * others,
    run: (db) => listBacklogs(db, order, { limit: 50, after: undefined }),
  };
}

/** One row per event. Most attempts here belong to events that no longer exist, so a page reads up to its limit. */
function deliveries(): PlanCase[] {
  const all: DeliveryFilter = {
    reviewId: undefined,
    externalReviewId: undefined,
    event: undefined,
    eventId: undefined,
    numbers: undefined,
    state: undefined,
    outcome: undefined,
    status: undefined,
    q: undefined,
    since: undefined,
    until: undefined,
  };
  const list = (name: string, bound: number, filter: Partial<DeliveryFilter>): PlanCase => ({
    name: `deliveries, ${name}`,
    bound,
    run: async (db) => {
      const subscription = await hotSubscription(db);
      const page = { limit: 50, after: undefined };
      return createDeliveryList({ db })(subscription, { ...all, ...filter }, page);
    },
  });
  const waiting = (name: string, bound: number, filter: Partial<DeliveryFilter>): PlanCase => ({
    name: `events that wait for a batch, ${name}`,
    bound,
    run: async (db) => {
      const subscription = await subscriptionById(db, HOT_BATCH.partnerId, HOT_BATCH.id);
      if (subscription === undefined) throw new Error("The subscription is gone.");
      const given = { ...all, ...filter, state: WAITING_FOR_BATCH } as const;
      return createDeliveryList({ db })(subscription, given, { limit: 50, after: undefined });
    },
  });
  return [
    list("all", 30_000, {}),
    list("waiting", 700, { state: "waiting" }),
    list("queued", 7_000, { state: "pending" }),
    list("not delivered", 30_000, { outcome: "not_delivered" }),
    list("with a text that is nowhere", 12_000, { q: "nowhere" }),
    list("of a status that is nowhere", 12_000, { status: "404" }),
    list("of an event", 1_500, { eventId: eventId(7) }),
    // The maximum number of events of one review, each looked up in the attempts of every day.
    list("of a review", 60_000, { reviewId: 7 }),
    list("of an external id", 30_000, { externalReviewId: "ext-7" }),
    waiting("unfiltered", 2_000, {}),
    waiting("of a review", 10_000, { reviewId: 7 }),
    list("of 500 numbers", 60_000, { numbers: [{ first: 501, last: 1_000 }] }),
    {
      name: "events of 100 numbers",
      // 17 halves of the range for each, three blocks for a half.
      bound: 10_000,
      run: (db) =>
        eventsOfNumbers(
          db,
          HOT.id,
          Array.from({ length: 100 }, (_, n) => 997 * n + 1),
        ),
    },
  ];
}

/** The reads of partners. In both tables nearly all rows belong to one partner. */
function ofPartner(): PlanCase[] {
  const page = { limit: 50, after: undefined };
  const slice = { partnerId: HOT.partnerId, through: 1e9, limit: 51 };
  const events = Array.from({ length: 20 }, (_, n) => eventId(n + 1));
  const since = new Date(Date.now() - DAY_MS);
  return [
    {
      name: "history of a partner, after a row",
      bound: 100,
      run: (db) => partnerHistory(db, { ...slice, after: "50000", since: undefined }),
    },
    {
      name: "history of a partner, since an instant",
      bound: 100,
      run: (db) => partnerHistory(db, { ...slice, after: undefined, since }),
    },
    {
      name: "history of a review",
      // Each of its 100 rows is in its own block.
      bound: 150,
      run: (db) => historyOf(db, 7),
    },
    {
      name: "attempts of 20 events, as an erasure finds them",
      bound: 20 * 60,
      run: (db) => db.select().from(deliveryAttempts).where(isAttemptOfAny(events)),
    },
    {
      name: "reviews of a partner by their last change",
      bound: 700,
      run: (db) => partnerReviewsOf(db, 2, since, page),
    },
  ];
}

/**
 * Blocks of attempts that no bucket has counted yet. Each row may be in its own block, because rows of other
 * subscriptions lie between them. The actual number depends on the time of day, because today's rows are spread over
 * the part that has passed.
 */
const UNCOUNTED = SLICES * READ_PER_SLICE;

/** The reads of streams, health and charts. */
function figures(): PlanCase[] {
  const hour = bucketFloor(new Date(Date.now() - DAY_MS), HOUR_MS);
  const hours = { since: hour, until: new Date(), stepMs: HOUR_MS, origin: hour };
  return [
    ...Object.entries(PLANS).map(([name, id]) => ({
      name: `accounts of a plan, ${name}`,
      bound: 500,
      run: (db: Db) => companiesOf(db, "account", { plan_id: id }, { limit: 50, after: undefined }),
    })),
    {
      name: "the connections of a page of stores",
      bound: 400,
      run: (db) =>
        linksOfStores(
          db,
          Array.from({ length: 51 }, (_, n) => ({ id: n * 1_000 + 1 })),
        ),
    },
    {
      name: "the latest review of each connection of a store",
      bound: 1_300,
      run: (db) => latestReviews(db, { id: 1 }),
    },
    {
      name: "the latest refused request of each provider",
      bound: 1_200,
      run: latestRefusals,
    },
    {
      name: "poll for streams",
      bound: 700,
      run: (db) => {
        const now = new Date();
        const jtis = Array.from({ length: 40 }, (_, n) => `none-${n}`);
        const ids = [HOT.id, ...[1, 2, 3].map((n) => other(n).id)];
        const firstId = ulidFloor(addMs(now, -30_000));
        return pollStreams(db, { ids, jtis, now, firstId, maxHours: 12, idleMinutes: 15 });
      },
    },
    {
      name: "health",
      bound: UNCOUNTED + 500,
      run: async (db) => showHealth({ db, clock: systemClock }, await hotSubscription(db)),
    },
    {
      name: "health of a busy one",
      bound: UNCOUNTED + 500,
      run: async (db) => {
        const { id, partnerId } = NEIGHBOUR;
        const countedUntil = addMs(systemClock.now(), -BUSY_MS);
        const found = await subscriptionById(db, partnerId, id);
        return found && showHealth({ db, clock: systemClock }, found, { countedUntil });
      },
    },
    {
      name: "the incident",
      bound: UNCOUNTED + 1_000,
      run: async (db) => showIncident({ db, clock: systemClock }, await hotSubscription(db)),
    },
    {
      name: "the past incidents",
      bound: 50 * 1_000,
      run: async (db) => {
        const endedAt = systemClock.now();
        const all = { beganAt: addMs(endedAt, -30 * DAY_MS), endedAt };
        await incidentsOf(db, HOT.id, all.beganAt);
        return failuresWithin(db, HOT.id, [all]);
      },
    },
    {
      name: "check for alerts",
      bound: 600,
      run: async (db) => {
        await findTrouble(db, false);
        await seeSubscriptions(db, [HOT.id, NEIGHBOUR.id, ...[1, 2, 3].map((n) => other(n).id)]);
      },
    },
    {
      name: "stats of a day",
      bound: UNCOUNTED + 500,
      run: (db) => showStats({ db, clock: systemClock }, HOT, hours),
    },
    {
      name: "stats of a day by event",
      bound: UNCOUNTED + READ_BY_EVENT + 500,
      run: (db) => showStats({ db, clock: systemClock }, HOT, { ...hours, isByEvent: true }),
    },
  ];
}
